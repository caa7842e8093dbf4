// SPDX-License-Identifier: MIT
// Looking at a set of nodes and preparing it: who holds a lock according to each node, which locks
// there are, whether the nodes are fit to vote. For operators and tools (the redlock command is
// built on it); a program that only takes locks does not need it.
#pragma once

#include <redlock/cpp20.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <redlock/client.hpp>
#include <redlock/error.hpp>
#include <redlock/export.hpp>

namespace redlock {

/// Why a node could not be asked. `cause` is none for one that answered.
struct NodeTrouble {
  Cause cause = Cause::none;  ///< the kind of reason
  std::string detail;         ///< in words: the node's error reply, or a sentence of ours
};

/// Which program took a lock, as it says itself: a note for people beside the owner. No part of the
/// protocol reads it, and whoever may write to a node may have written it.
struct Holder {
  std::string host;       ///< the name of its machine
  std::uint64_t pid = 0;  ///< of the process that took it, on (or in a container of) that host
  std::string label;      ///< ClientOptions::label
  /// When the attempt began that took it, by that host's clock.
  std::chrono::sys_time<std::chrono::milliseconds> since{};
};

/// A node that may have forgotten a grant and does not vote yet.
struct NodeQuarantine {
  std::string why;  ///< as errors say it: "quarantined, votes in 41 s; run redlock adopt if ..."
  std::chrono::seconds votes_in{};  ///< rounded up; zero: its marker is about to be written
};

/// A client that waits for a lock in a node's line, with the first of its calls that wait in order
/// (Ordering::fifo; calls that barge stand in no line). The others wait inside the client.
struct QueuedCall {
  std::string id;  ///< of the client, and the number of its line for this lock
  /// Which program waits, and since when; none if it says nothing of itself.
  std::optional<Holder> who;
  /// How long the call has waited, as its client said; those that have waited longer are served
  /// first. None if the node did not tell the time.
  std::optional<std::chrono::milliseconds> waited{};
  bool polls = false;     ///< the node cannot wake it, so it asks again and again
  bool has_turn = false;  ///< the node keeps the lock, which is free there, for this waiter
};

/// One lock as one node sees it.
struct NodeLock {
  std::string node;     ///< as it was configured, without its password
  NodeTrouble trouble;  ///< why it could not be asked
  /// One owner of the lock there.
  struct OwnerCount {
    std::string owner;        ///< as Lease::owner() says it
    std::uint64_t count = 0;  ///< how often the owner took it; 1 without re-entry
  };
  /// Empty if the node did not answer, or the lock is free there. More than one only if somebody
  /// else wrote the key.
  std::vector<OwnerCount> owners;
  /// None if the node has no such note, or none that can be read.
  std::optional<Holder> holder;
  /// Until the node frees the lock. None if it is free, or if it never expires by itself, which
  /// this library never writes.
  std::optional<std::chrono::milliseconds> remaining;
  /// A key of another type stands in the lock's place; it counts as held by somebody else.
  bool foreign_type = false;
  /// The counter that this name's tokens come from on this node (other names may share it). None
  /// if the name was never locked here.
  std::optional<std::uint64_t> fence;
  /// As this client counts it: it has waited since it first saw the node like this.
  std::optional<NodeQuarantine> quarantine;
  /// Who waits for it here, in order. None if the node's user may not read its line.
  std::optional<std::vector<QueuedCall>> waiting{};

  /// It could be asked.
  [[nodiscard]] bool answered() const noexcept { return trouble.cause == Cause::none; }
  /// It could be asked, and nobody has the lock there.
  [[nodiscard]] bool free() const noexcept { return answered() && owners.empty() && !foreign_type; }
};

/// What the nodes come to, each of which is asked for itself.
enum class Verdict {
  held,         ///< one owner has it on a quorum of nodes
  free,         ///< it is free on a quorum of nodes
  no_majority,  ///< neither, however the nodes that did not answer see it: an attempt under way, or
                ///< the rest of one
  unknown,      ///< too few nodes answered to tell
};
/// As `redlock status` prints it: "held", "no_majority".
[[nodiscard]] REDLOCK_EXPORT const char* to_string(Verdict verdict) noexcept;

/// One lock as the nodes see it, each at a slightly different moment: true when it was read, and
/// perhaps no longer when it is printed. Never decide by it whether to enter a critical section.
struct LockReport {
  std::string name;                    ///< of the lock
  Verdict verdict = Verdict::unknown;  ///< what the nodes come to
  std::string owner;                   ///< on the most nodes; empty if on none
  std::uint32_t nodes_of_owner = 0;    ///< how many nodes say so
  std::optional<Holder> holder;        ///< of that owner, as the first of these nodes says
  std::uint32_t quorum = 0;            ///< how many nodes must say so
  std::vector<NodeLock> nodes;         ///< all of them, in the order of the configuration
  /// Who waits on any node, in the order in which they are to have it. Of a client with many calls
  /// for this name only the first two are at the nodes. One that was killed stays for 2.5 s.
  std::vector<QueuedCall> waiting{};
};

/// What stands in a lock's place, on the nodes that answered.
enum class ListedAs {
  lock,            ///< a lock; its owner is known
  several_owners,  ///< a hash with more than one owner, which this library never writes
  foreign_type,    ///< a key of another type; it counts as held by somebody else
  unread,          ///< a node named it, and then did not say whose it is
};
/// For logs: "lock", "foreign_type".
[[nodiscard]] REDLOCK_EXPORT const char* to_string(ListedAs kind) noexcept;

/// What became of a lock that was to be taken away.
enum class Forced {
  released,      ///< the owner has lost it, for good
  nothing_held,  ///< nobody had it on a quorum; or the owner that was found had gone by itself, and
                 ///< somebody else may have it now
  unknown,       ///< too few nodes answered; what was done on those that did stays done
};
/// As `redlock release --force` prints it: "released", "nothing_held".
[[nodiscard]] REDLOCK_EXPORT const char* to_string(Forced outcome) noexcept;

/// What became of a lock on one node that was to give it up by force.
enum class ForcedHere {
  removed,      ///< it had it for that owner and deleted it; it turns that owner away from now on
  not_held,     ///< it had it not for that owner; it turns that owner away from now on
  not_told,     ///< it answered, and no owner was found who could be forced out
  unreachable,  ///< it did not answer, or refused: it may have it until that lease is over
};
/// For logs: "removed", "unreachable".
[[nodiscard]] REDLOCK_EXPORT const char* to_string(ForcedHere what) noexcept;

struct NodeForced {
  std::string node;
  ForcedHere what = ForcedHere::unreachable;
  NodeTrouble trouble;  ///< of one that is unreachable
};

struct ForcedRelease {
  std::string name;
  Forced outcome = Forced::unknown;
  std::string owner;            ///< whom it was taken from; empty if nobody was found
  std::uint32_t removed = 0;    ///< nodes that had it for this owner
  std::uint32_t confirmed = 0;  ///< nodes that turn this owner away from now on
  std::uint32_t quorum = 0;
  std::vector<NodeForced> nodes;  ///< all of them, in the order of the configuration
};

struct ListedLock {
  std::string name;
  ListedAs kind = ListedAs::lock;
  std::string owner;                 ///< on the most nodes; empty if `kind` is not lock
  std::uint32_t nodes_of_owner = 0;  ///< the lock is held if this is a quorum
  std::optional<Holder> holder;      ///< of that owner, as the first of these nodes says
  /// The shortest that one of these nodes reports; none if it expires on none of them, or (unread)
  /// that is not known.
  std::optional<std::chrono::milliseconds> remaining;
  /// How many wait for it, on the node that has most of them.
  std::size_t waiting = 0;
};

struct LockList {
  std::vector<ListedLock> locks;  ///< by name
  bool truncated = false;         ///< there are more than the limit
  std::uint32_t quorum = 0;
  /// Of every node, in the order of the configuration. One that left only some questions without
  /// an answer is in trouble, too: what it has may be missing in the list.
  struct Node {
    std::string node;     ///< as it was configured, without its password
    NodeTrouble trouble;  ///< why it could not be asked
  };
  std::vector<Node> nodes;
};

/// What a node's data says about itself (the hash redlock:node).
struct Marker {
  std::string id;            ///< random, of this node
  std::string layout;        ///< of keys and scripts: "redlock-2"
  std::string nodes;         ///< as written; of how many nodes its set consists
  std::string max_lease_ms;  ///< as written
  std::string set = {};      ///< the random name of its set; empty if it has none

  friend bool operator==(const Marker&, const Marker&) = default;
};

/// What most of the markers found say of their set: every client of it has to agree.
struct MarkedSet {
  std::size_t nodes = 0;                  ///< of how many nodes it consists
  std::chrono::milliseconds max_lease{};  ///< the longest lease: ClientOptions::max_lease
};

/// How bad a problem is.
enum class Severity {
  error,    ///< a promise does not hold or is not known to hold, or no lock can be granted at all
  warning,  ///< all promises hold, and locks are granted; something is to be mended all the same
  hint,     ///< it could be better
};
/// As `redlock doctor` prints it: "error", "warning", "hint".
[[nodiscard]] REDLOCK_EXPORT const char* to_string(Severity severity) noexcept;

/// One sentence that says what is wrong, and one that says what to do.
struct Problem {
  Severity severity = Severity::error;  ///< how bad it is
  std::string what;                     ///< the two sentences
};

/// A certificate of a connection with TLS.
struct CertificateHealth {
  std::chrono::sys_seconds begins{};  ///< from when it is valid
  std::chrono::sys_seconds ends{};    ///< until when
  bool of_authority = false;  ///< it is not the one that is shown, but one that vouches for that
};

/// One node, examined. Optional members are those that it did not tell.
struct NodeHealth {
  std::string node;     ///< as it was configured, without its password
  NodeTrouble trouble;  ///< why it could not be asked
  std::optional<std::chrono::nanoseconds> round_trip;  ///< of one PING
  std::optional<std::string> version;                  ///< of Redis, as the server says it
  std::optional<std::string> run_id;                   ///< random, new at each start of the server
  std::optional<std::string> role;                     ///< "master", "slave"
  bool promoted = false;                               ///< it was a replica once, since its start
  bool vouched = false;             ///< its marker was written since then: it votes all the same
  bool cluster = false;             ///< cluster-enabled
  std::optional<bool> append_only;  ///< appendonly
  std::optional<std::string> append_fsync;     ///< "always", "everysec", "no"
  std::optional<std::string> append_error;     ///< why the append-only file cannot be written
  std::optional<std::string> eviction;         ///< maxmemory-policy
  std::optional<std::uint64_t> max_memory;     ///< bytes; 0: no limit
  std::optional<std::chrono::seconds> uptime;  ///< since the start of the server
  /// The node's clock less this machine's, known to half the round trip.
  std::optional<std::chrono::microseconds> clock_offset;
  std::optional<Marker> marker;  ///< none if it has none
  /// What kept it from taking, holding and giving back the lock "redlock-doctor"; no cause if
  /// nothing did, or if it is no independent master and was not asked to.
  NodeTrouble refusal;
  /// What the user lacks of the rights of cluster/users.acl, as ACL SETUSER has them: "+hset".
  /// Empty too if the node could not be asked.
  std::vector<std::string> missing_rights;
  /// Clients of other machines are let in and may delete locks without a password or a certificate:
  /// the default user is on, and protected-mode does not keep them out.
  bool open = false;
  /// The passwords of others that the user may read by CONFIG GET: "requirepass", "masterauth".
  std::vector<std::string> readable_passwords;
  /// Whether who waits for a lock there is served in order, and woken; none if it refused the lock.
  std::optional<bool> queues;
  /// For a client that begins now; one that has seen the node before has less to wait.
  std::optional<NodeQuarantine> quarantine;
  /// Of the certificates by which the node is trusted, the one that ends first; none without TLS.
  std::optional<CertificateHealth> certificate{};
  std::vector<Problem> problems;  ///< what is wrong with it, and what to do

  /// It could be asked.
  [[nodiscard]] bool reachable() const noexcept { return trouble.cause == Cause::none; }
};

/// What an examination comes to: the worst severity that it found.
enum class Fitness {
  healthy,   ///< nothing worse than a hint
  degraded,  ///< a warning, such as a minority of nodes that does not vote, or not yet
  unsafe,    ///< an error
};
/// As `redlock doctor` prints it: "healthy", "degraded", "unsafe".
[[nodiscard]] REDLOCK_EXPORT const char* to_string(Fitness fitness) noexcept;

struct Examination {
  std::vector<NodeHealth> nodes;
  std::vector<Problem> problems;  ///< of the set as a whole
  std::uint32_t quorum = 0;
  /// Of the certificates in TlsOptions::certificate, the one that ends first; none if a client has
  /// none.
  std::optional<CertificateHealth> client_certificate{};

  [[nodiscard]] REDLOCK_EXPORT Fitness fitness() const noexcept;
  /// Nothing of severity error was found.
  [[nodiscard]] REDLOCK_EXPORT bool safe() const noexcept;
};

/// What adopt() found or did.
enum class Adoption {
  written,        ///< it had no marker and has one now
  already_there,  ///< it has one that agrees; nothing was changed
  disagrees,      ///< it has one of another set; nothing was changed
  unconfirmed,    ///< it has none, nodes beside it are members of a set, and nobody said that it is
                  ///< to become one of them, or no quorum could be asked; nothing was changed
  failed,         ///< it did not answer, refused, or is no lock node: a replica, in a Redis
                  ///< Cluster, or a server that is named twice; nothing was changed
};
/// As `redlock adopt` prints it: "written", "disagrees".
[[nodiscard]] REDLOCK_EXPORT const char* to_string(Adoption adoption) noexcept;

struct NodeAdoption {
  std::string node;
  Adoption adoption = Adoption::failed;
  Cause cause = Cause::none;  ///< why it failed
  std::string detail;         ///< in words, empty if there is nothing to add
};

/// Asks all nodes of a client in parallel. Every call blocks, at most one node timeout for each
/// round of questions (inspect and marked_set need one; list one for each thousand keys and each
/// 200 locks; examine five; adopt and force_release two), and must not be made in a callback of the
/// client or with a client on a loop of the program's own (it answers would_deadlock). A node that
/// does not answer is part of the report, not an error. Thread-safe.
class REDLOCK_EXPORT Admin {
 public:
  /// The client must live as long as this object.
  explicit Admin(const Client& client);

  /// Who holds this lock. Nodes that do not answer within `timeout` (none: the node timeout) are
  /// reported so. Fails with invalid_argument for a bad name.
  [[nodiscard]] Result<LockReport> inspect(
      std::string_view name, std::optional<std::chrono::milliseconds> timeout = {}) const;

  /// Takes the lock away from whoever holds it on a quorum of nodes: finds the owner, as inspect()
  /// does, deletes the lock where it is that owner's, raises the fences, and has every node turn
  /// that owner away for as long as one of its leases can last. Once a quorum has confirmed this,
  /// the owner cannot get it back, and nobody else is touched, however late a message comes. What a
  /// single node has beside a free quorum (the rest of an attempt) is left to end with its lease.
  /// Waits for every node, at most the node timeout, to say what became of each.
  ///
  /// The holder is not asked. Its next renewal, extend or confirm ends its lease
  /// (LossReason::forced). Until then the lease stays valid on its side: for the rest of its
  /// validity at most; one that is not renewed, to its end. Only a resource that compares
  /// tokens turns it away, once it has seen the next holder's token, which is larger. So force when
  /// the holder is known to be dead, or when two at once are the smaller evil.
  ///
  /// Fails with invalid_argument for a bad name, and for a holder that is none of this library's.
  [[nodiscard]] Result<ForcedRelease> force_release(std::string_view name) const;

  /// The locks that exist on any node and whose names match `pattern` (`*`, `?`, `[a-c]`, as in
  /// Redis), at most `limit`. It walks over all keys of every node (SCAN).
  [[nodiscard]] Result<LockList> list(std::string_view pattern = "*",
                                      std::size_t limit = 1000) const;

  /// Whether each node and the set are fit to hold locks. Each node takes, holds and gives back the
  /// lock "redlock-doctor", by itself; nothing else is changed. Waits for connections of its own:
  /// up to resolve_timeout and connect_timeout more.
  [[nodiscard]] Result<Examination> examine() const;

  /// Of which set the nodes are, by the markers of most nodes that have one, whatever this client's
  /// own list and max_lease are; none if there is no marker, or no majority of them says the same.
  /// Waits for connections as examine() does.
  [[nodiscard]] Result<std::optional<MarkedSet>> marked_set() const;

  /// Writes the marker (redlock:node) on every node of a new set, if all answer and none has one:
  /// the operator's word that they may vote at once. A node that has one is never changed, but for
  /// the name of the set if it agrees and none of them names one. All nodes get the name that a
  /// quorum of them have, or a new one; a node that has another name belongs to another set
  /// (`disagrees`).
  ///
  /// Where some nodes have a marker, a node without one may have lost its data, may stand in the
  /// place of another, or may be listed by mistake, and then clients with the right list and with
  /// this one could have a quorum each. It is given a marker only if `replaced` has its address, as
  /// in ClientOptions::nodes, and a quorum of the nodes are of one set (otherwise: `unconfirmed`):
  /// the operator's word that it takes a member's place, which is stopped for good, and that every
  /// lease that this member may have granted is over. Fails with invalid_argument if `replaced`
  /// names a node that the client does not have. Waits for connections as examine() does.
  [[nodiscard]] Result<std::vector<NodeAdoption>> adopt(
      const std::vector<std::string>& replaced = {}) const;

 private:
  const Client* client_;
};

/// Examinations one after the other, over connections that stay between them: for who watches a set
/// of nodes. One call at a time, from whichever thread. In a child of fork it fails with closed, as
/// its client does.
class REDLOCK_EXPORT Examinations {
 public:
  /// The client must live as long as this object.
  explicit Examinations(const Client& client);
  Examinations(const Examinations&) = delete;
  Examinations& operator=(const Examinations&) = delete;
  ~Examinations();

  /// As Admin::examine(): blocks as long, fails in the same cases, and a node that does not answer
  /// is part of the result. The first one connects. A node whose connection has ended is connected
  /// anew beside the calls, after pauses of up to a second: when it is back, that shows by so much
  /// later. Where nodes have TLS, each examination connects anew, so that it judges the
  /// certificates as a program that starts now does. One that fails may be followed by another.
  [[nodiscard]] Result<Examination> next();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace redlock
