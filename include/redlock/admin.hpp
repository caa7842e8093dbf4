// SPDX-License-Identifier: MIT
// Inspects a set of nodes and prepares it: which owner each node reports for a lock, which locks
// there are, whether the nodes are fit to vote. For operators and tools (the redlock command is
// built on it); a program that only takes locks does not need this header.
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

/// Why a node could not be asked. `cause` is none for a node that answered.
struct NodeTrouble {
  Cause cause = Cause::none;  ///< the kind of reason
  std::string detail;         ///< in words: the node's error reply, or the library's own sentence
};

/// One node in a report on all of them.
struct NodeReport {
  std::string node;     ///< as it was configured, without its password
  NodeTrouble trouble;  ///< why the node could not be asked

  /// The node could be asked.
  [[nodiscard]] bool answered() const noexcept { return trouble.cause == Cause::none; }
};

/// Which program took a lock, by its own account: a note for people, stored beside the owner. No
/// part of the protocol reads the note, and any client that may write to the node can forge it.
struct Holder {
  std::string host;       ///< the name of the program's machine
  std::uint64_t pid = 0;  ///< of the process that took the lock, on (or in a container of) that
                          ///< host
  std::string label;      ///< ClientOptions::label
  /// When the attempt that took the lock began, by that host's clock.
  std::chrono::sys_time<std::chrono::milliseconds> since{};
};

/// A node that may have forgotten a grant and does not vote yet.
struct NodeQuarantine {
  std::string why;  ///< as errors say it: "quarantined, votes in 41 s; run redlock adopt if ..."
  /// Rounded up. Zero: the node's marker is about to be written, or it is no member of the set, or
  /// the set is not known, and no time alone makes it vote.
  std::chrono::seconds votes_in{};
};

/// A client that waits for a lock in a node's line, with the first of its calls that wait in order
/// (Ordering::fifo; calls that barge stand in no line). The others wait inside the client.
struct WaitingCall {
  std::string id;  ///< of the client, and the number of its line for this lock
  /// Which program waits, and since when; none if it says nothing of itself.
  std::optional<Holder> who;
  /// How long the call has waited (since its last grant that came too late, if one did), as its
  /// client said; those that have waited longer are served first. None if the node did not tell the
  /// time.
  std::optional<std::chrono::milliseconds> waited{};
  /// This node cannot wake it; if too few others can, it asks again and again.
  bool polls = false;
  bool has_turn = false;  ///< the node keeps the lock, which is free there, for this waiter
};

/// One lock as one node sees it.
struct NodeLock : NodeReport {
  /// One owner of the lock on this node.
  struct OwnerCount {
    std::string owner;        ///< as Lease::owner() returns it
    std::uint64_t count = 0;  ///< how often the owner took the lock; 1 without re-entry
  };
  /// Empty if the node did not answer, or the lock is free there. More than one owner only if
  /// something other than this library wrote the key.
  std::vector<OwnerCount> owners;
  /// The program behind the lock; none if the node has no such note, or an unreadable one.
  std::optional<Holder> holder;
  /// Time until the node frees the lock. None if the lock is free, or if its key never expires by
  /// itself; this library never writes such a key.
  std::optional<std::chrono::milliseconds> remaining;
  /// A key of another type stands in the lock's place; the lock counts as held by another owner.
  bool foreign_type = false;
  /// The counter from which this name's tokens come on this node (other names may share it). None
  /// if the name was never locked on this node.
  std::optional<std::uint64_t> fence;
  /// As this client counts it: the wait began when this client first saw the node like this.
  std::optional<NodeQuarantine> quarantine;
  /// The calls that wait for the lock on this node, in order. None if the client's user may not
  /// read the node's line.
  std::optional<std::vector<WaitingCall>> waiting{};

  /// The node could be asked, and no owner has the lock there.
  [[nodiscard]] bool free() const noexcept { return answered() && owners.empty() && !foreign_type; }
};

/// The state of a lock, derived from the answers of all nodes, each of which was asked separately.
enum class Verdict {
  held,         ///< one owner has the lock on a quorum of nodes
  free,         ///< the lock is free on a quorum of nodes
  no_majority,  ///< neither, whatever the silent nodes would say: an attempt is under way, or left
                ///< grants behind
  unknown,      ///< too few nodes answered to tell
};
/// As `redlock status` prints it: "held", "no_majority".
[[nodiscard]] REDLOCK_EXPORT const char* to_string(Verdict verdict) noexcept;

/// One lock as the nodes see it, each at a slightly different moment: true when it was read, and
/// perhaps no longer when it is printed. Never base the entry to a critical section on a report.
struct LockReport {
  std::string name;                    ///< of the lock
  Verdict verdict = Verdict::unknown;  ///< what the answers of all nodes add up to
  std::string owner;                   ///< that of the most nodes; empty if no node names one
  std::uint32_t nodes_of_owner = 0;    ///< how many nodes name this owner
  std::optional<Holder> holder;        ///< of that owner, as the first of these nodes says
  std::uint32_t quorum = 0;            ///< how many nodes must agree
  std::vector<NodeLock> nodes;         ///< all of them, in the order of the configuration
  /// The calls that wait on any node, in the order in which they are to get the lock. If a client
  /// has many calls for this name, only the first that waits is in the lines. A call whose process
  /// was killed stays listed for 2.5 s at most.
  std::vector<WaitingCall> waiting{};
};

/// What stands in a lock's place, on the nodes that answered.
enum class ListedAs {
  lock,            ///< a lock with a known owner
  several_owners,  ///< a hash with more than one owner, which this library never writes
  foreign_type,    ///< a key of another type; the lock counts as held by another owner
  unread,          ///< a node listed the key, and then did not name its owner
};
/// For logs: "lock", "foreign_type".
[[nodiscard]] REDLOCK_EXPORT const char* to_string(ListedAs kind) noexcept;

/// The outcome of a forced release.
enum class Forced {
  released,      ///< the owner has lost the lock, for good
  nothing_held,  ///< no owner had a quorum; or the owner that was found no longer had the lock,
                 ///< which may have another owner now
  unknown,       ///< too few nodes answered; changes on the nodes that did answer stay
};
/// As `redlock release --force` prints it: "released", "nothing_held".
[[nodiscard]] REDLOCK_EXPORT const char* to_string(Forced outcome) noexcept;

/// What a forced release did on one node.
enum class ForcedHere {
  removed,      ///< the node deleted the owner's grant, and refuses that owner from now on
  not_held,     ///< the node had no grant of that owner, and refuses the owner from now on
  not_told,     ///< the node answered, but no owner was found to be forced out
  unreachable,  ///< the node did not answer, or refused: a grant there may last as long as its
                ///< lease
};
/// For logs: "removed", "unreachable".
[[nodiscard]] REDLOCK_EXPORT const char* to_string(ForcedHere what) noexcept;

struct NodeForced : NodeReport {
  ForcedHere what = ForcedHere::unreachable;
};

struct ForcedRelease {
  std::string name;
  Forced outcome = Forced::unknown;
  std::string owner;            ///< the owner that lost the lock; empty if none was found
  std::uint32_t removed = 0;    ///< nodes that deleted a grant of this owner
  std::uint32_t confirmed = 0;  ///< nodes that refuse this owner from now on
  std::uint32_t quorum = 0;
  std::vector<NodeForced> nodes;  ///< all of them, in the order of the configuration
};

struct ListedLock {
  std::string name;
  ListedAs kind = ListedAs::lock;
  std::string owner;                 ///< that of the most nodes; empty if `kind` is not lock
  std::uint32_t nodes_of_owner = 0;  ///< how many nodes name this owner; the lock is held if they
                                     ///< are a quorum
  std::optional<Holder> holder;      ///< of that owner, as the first of these nodes says
  /// The shortest remaining time that one of these nodes reports; none if the lock expires on none
  /// of them, or if that is unknown (unread).
  std::optional<std::chrono::milliseconds> remaining;
  /// How many clients wait for the lock, on the node that has the most.
  std::size_t waiting = 0;
};

struct LockList {
  std::vector<ListedLock> locks;  ///< by name
  bool truncated = false;         ///< there are more locks than the limit
  std::uint32_t quorum = 0;
  /// Every node, in the order of the configuration. A node that left even some questions unanswered
  /// has a cause of trouble, too: its locks may be missing from the list.
  std::vector<NodeReport> nodes;
};

/// What a node's data says about itself (the hash redlock:node).
struct Marker {
  std::string id;            ///< the node's own, random
  std::string layout;        ///< of keys and scripts: "redlock-3"
  std::string nodes;         ///< as written: how many nodes the set has
  std::string max_lease_ms;  ///< as written, with the announced one, if there is one, behind it
  std::string set = {};      ///< the random name of its set; empty while that is being formed
  std::string epoch = {};    ///< as written: it grows when the members change
  std::string members = {};  ///< as written: ID=ADDRESS, with blanks between them

  friend bool operator==(const Marker&, const Marker&) = default;
};

/// What most of the markers found say about their set: every client of the set has to agree.
struct MarkedSet {
  std::size_t nodes = 0;                            ///< how many nodes the set has
  std::chrono::milliseconds max_lease{};            ///< the longest lease that a client may have
  std::chrono::milliseconds announced_max_lease{};  ///< a longer one that is not in force yet: its
                                                    ///< raising was interrupted; zero: none
  std::string set{};                                ///< its random name
  std::uint64_t epoch = 0;                          ///< grows when a member is replaced
  std::vector<std::string> members{};  ///< their addresses, as the operator adopted them

  friend bool operator==(const MarkedSet&, const MarkedSet&) = default;
};

/// How bad a problem is.
enum class Severity {
  error,    ///< a guarantee is broken, or cannot be confirmed, or no lock can be granted at all
  warning,  ///< all guarantees hold and locks are granted, but an operator should fix this
  hint,     ///< an improvement is possible
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
  bool of_authority = false;          ///< an authority's certificate, not the one that is presented
};

/// A counter of tokens that is not what grants have made it: no number, or so far ahead of the
/// clocks and of the other nodes' counters that it would use up their tokens. Its node does not
/// vote on locks whose names share this counter.
struct DamagedFence {
  std::uint32_t stripe = 0;  ///< which counter: its key is redlock:fence:STRIPE
  std::string value;         ///< as it stands there; empty if it is no number
  /// What Admin::mend_fences() sets the counter to; none if too few other nodes answered to tell.
  std::optional<std::uint64_t> mended{};
};

/// One node, examined. An optional member is empty if the node did not report it.
struct NodeHealth : NodeReport {
  std::optional<std::chrono::nanoseconds> round_trip;  ///< of one PING
  std::optional<std::string> version;                  ///< of Redis, as the server says it
  std::optional<std::string> run_id;                   ///< random, new at each start of the server
  std::string same_as{};  ///< an earlier node of the list that is the same server; empty: none
  std::optional<std::string> role;  ///< "master", "slave"
  bool promoted = false;            ///< the node was a replica at some time
                                    ///< since its start
  bool vouched = false;             ///< its marker was written after that, so the node votes all
                                    ///< the same
  bool cluster = false;             ///< cluster-enabled
  std::optional<bool> append_only;  ///< appendonly
  std::optional<std::string> append_fsync;     ///< "always", "everysec", "no"
  std::optional<std::string> append_error;     ///< why the append-only file cannot be written
  std::optional<std::string> eviction;         ///< maxmemory-policy
  std::optional<std::uint64_t> max_memory;     ///< bytes; 0: no limit
  std::optional<std::chrono::seconds> uptime;  ///< since the start of the server
  /// The node's clock minus this machine's, known to within half the round trip.
  std::optional<std::chrono::microseconds> clock_offset;
  /// For how long clients that start now do not count the node, because another client has seen
  /// its clock move; zero: they do.
  std::chrono::milliseconds clock_noted{};
  std::optional<Marker> marker;  ///< none if the node has no marker
  /// Why the node could not grant, hold and release the lock "redlock-doctor"; no cause if it
  /// could, or if the node is no independent master and was not asked.
  NodeTrouble refusal;
  /// The rights of cluster/users.acl that the client's user lacks, as ACL SETUSER spells them:
  /// "+hset". Empty too if the node could not be asked.
  std::vector<std::string> missing_rights;
  /// Clients on other machines can connect and delete locks without a password or a certificate:
  /// the default user is on, and protected-mode does not keep them out.
  bool open = false;
  /// The passwords that the client's user may read by CONFIG GET: "requirepass", "masterauth".
  std::vector<std::string> readable_passwords;
  /// Whether waiters for a lock on this node are served in order, and woken; none if the node
  /// refused the lock.
  std::optional<bool> serves_in_order;
  /// For a client that starts now; a client that has seen the node before waits less.
  std::optional<NodeQuarantine> quarantine;
  /// By stripe.
  std::vector<DamagedFence> damaged_fences{};
  /// Whether the node's counters were read, and enough of the other nodes' to compare them.
  bool fences_compared = false;
  /// Of the certificates by which the node is trusted, the one that ends first; none without TLS.
  std::optional<CertificateHealth> certificate{};
  std::vector<Problem> problems;  ///< what is wrong with it, and what to do
};

/// The result of an examination: the worst severity that it found.
enum class Fitness {
  healthy,   ///< nothing worse than a hint
  degraded,  ///< a warning, such as a minority of nodes that does not vote, or does not vote yet
  unsafe,    ///< an error
};
/// As `redlock doctor` prints it: "healthy", "degraded", "unsafe".
[[nodiscard]] REDLOCK_EXPORT const char* to_string(Fitness fitness) noexcept;

struct Examination {
  std::vector<NodeHealth> nodes;
  std::vector<Problem> problems;  ///< of the set as a whole
  std::uint32_t quorum = 0;
  /// Of the certificates in TlsOptions::certificate, the one that ends first; none if the client
  /// has no certificate.
  std::optional<CertificateHealth> client_certificate{};

  [[nodiscard]] REDLOCK_EXPORT Fitness fitness() const noexcept;
  /// Nothing of severity error was found.
  [[nodiscard]] REDLOCK_EXPORT bool safe() const noexcept;
};

/// What adopt() found or did on a node.
enum class Adoption {
  written,        ///< the node had no marker and has one now
  already_there,  ///< the node has a marker of this set, which names its members by now
  disagrees,      ///< the node has a marker of another set, or of former members of this one, or
                  ///< of later ones, or takes part in another change; nothing was changed
  unconfirmed,    ///< the node is no member: `replaced` does not name it, its address is that of
                  ///< no member (or another node has that member's data), or it could not be given
                  ///< the fences, or keeps the marker of an earlier membership; or the other nodes
                  ///< of a new set, or a quorum of an old one, could not be asked
  waits,          ///< the node is a member by now, and gets its marker when all leases are over
                  ///< that others may have confirmed without it
  failed,         ///< the node did not answer, refused, or is no lock node: a replica, in a Redis
                  ///< Cluster, or a server that is listed twice; nothing was changed
};
/// As `redlock adopt` prints it: "written", "disagrees".
[[nodiscard]] REDLOCK_EXPORT const char* to_string(Adoption adoption) noexcept;

/// The name of the lock that `redlock set` holds while it changes the set: a second operator waits,
/// and is told who has it. A program that calls replace(), add(), remove() or set_max_lease() takes
/// this lock for the same purpose. No guarantee rests on it: what one of two changes at once tells
/// is not taken by a member that has promised the other one (docs/safety.md, A6).
inline constexpr const char* set_change_lock = "redlock-set";

/// What an operator knows of the leases confirmed by a member that is to be replaced.
enum class OldLeases {
  may_live,  ///< nothing: it may be running, and confirm leases until it is replaced
  are_over,  ///< it is stopped for good, and has been for one longest lease
};

struct NodeAdoption {
  std::string node;
  Adoption adoption = Adoption::failed;
  Cause cause = Cause::none;         ///< why the adoption failed
  std::string detail;                ///< in words, empty if there is nothing to add
  std::chrono::milliseconds left{};  ///< until the same call can go on, if `waits` says when
};

/// A damaged counter that mend_fences() was to mend.
struct MendedFence {
  std::string node;     ///< its address, as it was given
  DamagedFence fence;   ///< the counter as it was found
  std::string problem;  ///< why it was not mended; empty if it was
};

/// Asks all nodes of a client in parallel. Every call blocks, at most one node timeout for each
/// round of questions (inspect and marked_set need one; list one for each thousand keys and each
/// 200 locks; examine six, one for each thousand keys and each thousand counters of tokens, two
/// where nodes report one run id, and one where a node seems to be open; mend_fences one more;
/// force_release two; adopt three, five if members are told of a change, and those two for one run
/// id; replace two to seven more, and those for keys and counters twice; add, remove and
/// set_max_lease as many, those for each member, and one or two for each), and must not be made in
/// a callback of the client or with a client on a loop of the program's own (it answers
/// would_deadlock). A node that does not answer is part of the report, not an error. Thread-safe.
class REDLOCK_EXPORT Admin {
 public:
  /// The client must live as long as this object.
  explicit Admin(const Client& client);

  /// The state of this lock on each node. Nodes that do not answer within `timeout` (none: the node
  /// timeout) are reported as timed out. Fails with invalid_argument for a bad name.
  [[nodiscard]] Result<LockReport> inspect(
      std::string_view name, std::optional<std::chrono::milliseconds> timeout = {}) const;

  /// Takes the lock away from the owner that holds it on a quorum of nodes: finds the owner, as
  /// inspect() does, deletes that owner's grants, raises the fences, and has every node refuse that
  /// owner for as long as one of its leases can last. Once a quorum has confirmed this, the owner
  /// cannot get the lock back, and no other owner is affected, however late a message arrives. A
  /// grant on a single node beside a free quorum (left by an attempt) is not touched and ends with
  /// its lease. Waits for every node, at most the node timeout, to report on each.
  ///
  /// The holder is not asked. Its next renewal, extend or confirm ends its lease
  /// (LossReason::forced). Until then the lease stays valid on the holder's side: for the rest of
  /// its validity at most; an unrenewed lease, to its end. Only a resource that compares tokens
  /// turns the holder away, once the resource has seen the next holder's token, which is larger. So
  /// force a release when the holder is known to be dead, or when two holders at once are the
  /// smaller evil.
  ///
  /// Fails with invalid_argument for a bad name, and for a lock that this library did not write.
  [[nodiscard]] Result<ForcedRelease> force_release(std::string_view name) const;

  /// The locks that exist on any node and whose names match `pattern` (`*`, `?`, `[a-c]`, as in
  /// Redis), at most `limit`. The call walks over all keys of every node (SCAN).
  [[nodiscard]] Result<LockList> list(std::string_view pattern = "*",
                                      std::size_t limit = 1000) const;

  /// Whether each node and the set are fit to hold locks. Each node by itself grants, holds and
  /// releases the lock "redlock-doctor"; nothing else is changed. The call makes connections of its
  /// own, and waits for them: up to resolve_timeout and connect_timeout more.
  [[nodiscard]] Result<Examination> examine() const;

  /// Sets the damaged counters that examine() finds to a value that no token of the past has
  /// reached: the largest of the other nodes' counters and the median clock, and an hour of tokens
  /// more. A counter that changes meanwhile is left alone, and so is one for which too few of the
  /// other nodes could be asked. The result has each damaged counter. Locks may be held and taken
  /// while this is done.
  [[nodiscard]] Result<std::vector<MendedFence>> mend_fences() const;

  /// The set to which the nodes belong, by the majority of the markers found, whatever this
  /// client's own list and max_lease are; none if there is no marker, or no majority of markers
  /// agrees. Waits for connections as examine() does.
  [[nodiscard]] Result<std::optional<MarkedSet>> marked_set() const;

  /// Makes a set of the listed nodes, if all of them answer and none is a member of a set: the
  /// operator's word that they may vote at once. Each node is first marked (redlock:node) as
  /// forming the set, and is its member when all are; an adoption that was interrupted is finished
  /// by the next one with the same list. The marker names all members, by the addresses in
  /// ClientOptions::nodes.
  ///
  /// Where a quorum of the nodes are members of a set, a node without a marker may have lost its
  /// data, or may be listed by mistake. At a member's address it becomes that member again only if
  /// `replaced` has it, as in ClientOptions::nodes (otherwise: `unconfirmed`): the operator's word
  /// that the member lost its data, and that every lease that it may have granted is over; so it
  /// is, unnamed, of a promoted member. For a node at another address there is replace(). A node of
  /// another set is left alone (`disagrees`). Fails with invalid_argument if `replaced` names a
  /// node that the client does not have. Waits for connections as examine() does.
  [[nodiscard]] Result<std::vector<NodeAdoption>> adopt(
      const std::vector<std::string>& replaced = {}) const;

  /// Gives the place of the member at the address `from` to the node at `to`, while locks are held
  /// and `from` runs, or is dead. The client's list has at least one of the two, or a member of the
  /// set: the members are those that a majority of them name. The markers of all members name the
  /// new one from then on, under the next epoch, and `from` counts no more; clients that
  /// run move on to `to` by themselves. It grants nothing while leases may live that `from` has
  /// confirmed (`waits`): it gets its marker from a client that has run for max_lease since, or at
  /// once if they `are_over`, which is the operator's word. An interrupted replacement is finished
  /// by the same call; the other way round it is undone. Where `to` is a member already there is
  /// nothing more to replace, whatever `from` is. Clients follow to no other scheme: `to` has to be
  /// redis://, rediss:// or unix:// as `from` is. Fails with invalid_argument, doing nothing, if
  /// neither is a member, or `from` answers as one although its leases are said to be over; with
  /// no_quorum, doing nothing, if too few counters can be read, if `to` belongs to another set or
  /// has the data of another member, if `from` answers and names more members or fewer, or if the
  /// set has fewer than three. Changes nothing where it is not known who the members are, or
  /// another change is made at the same time (`unconfirmed`). If `to` was a member before, its
  /// marker of then is deleted when a quorum names it and it has the fences. Asks as adopt() does,
  /// and those whom the nodes name.
  [[nodiscard]] Result<std::vector<NodeAdoption>> replace(
      std::string_view from, std::string_view to, OldLeases leases = OldLeases::may_live) const;

  /// Makes a node one more member while locks are held. The client's list has some members, any of
  /// them, or all. The markers of the members name the new ones from then on, under the next epoch;
  /// clients that run follow by themselves (as far as they have room: one begins with room for
  /// seven nodes, or two more than it was given), and no lease is lost by it. A new member is given
  /// the fences of the others, and counts at once: where one joins or leaves, every two quorums of
  /// before and after share a node. Two such changes one after the other would not, so the second
  /// is refused (`waits`) until every lease from before the first is over, and no member is told
  /// while one refuses. Every member has to answer. An interrupted call is undone by remove(), or
  /// finished by the same one; then the new member `waits` as one of replace() does. Fails with
  /// no_quorum, doing nothing, if another change was interrupted; with invalid_argument for an
  /// address that is none. Members are told one after the other.
  [[nodiscard]] Result<std::vector<NodeAdoption>> add(std::string_view node) const;

  /// Ends a node's membership in the same way; undone by add(). The member may be dead; it is not
  /// told. Fails with no_quorum, doing nothing, also if those that are left would be no quorum.
  [[nodiscard]] Result<std::vector<NodeAdoption>> remove(std::string_view node) const;

  /// Raises the longest lease that a client of the set may have, while locks are held. Clients that
  /// run go on as they are; those with a longer ClientOptions::max_lease than the set had begin to
  /// be granted locks when a quorum has the new one. In a first epoch it is announced to all
  /// members, every one of which has to answer: from then on whatever waits until old leases are
  /// over waits for longer ones. In a second one, three seconds later, it is in force: servers that
  /// write to their disks each second do not forget both. An interrupted call is finished by the
  /// same one, or one with a still longer lease; none takes back what a quorum may know of. Fails
  /// with invalid_argument, doing nothing, for one that is shorter than what is in force or known
  /// so; with no_quorum, doing nothing, if a member does not answer, if another change was
  /// interrupted, or if too few members would grant locks for a time, because those that keep no
  /// data have not run for as long. Members are told one after the other, in each epoch.
  [[nodiscard]] Result<std::vector<NodeAdoption>> set_max_lease(
      std::chrono::milliseconds max_lease) const;

 private:
  const Client* client_;
};

/// The options for a client of a set of which `seeds.nodes` are some members, any of them: all
/// members are read from the nodes, and a `lease` that is longer than the set's longest is as long
/// as that. A member's address is as the operator adopted it; the user and password are those of
/// the first seed. The members are believed when a majority of themselves confirm them, so fewer
/// answers are an error (no_quorum). Blocks as Admin::marked_set() does, up to three times. A
/// program that knows all members needs no such call, and can start while nodes are down.
[[nodiscard]] REDLOCK_EXPORT Result<ClientOptions> find_set(ClientOptions seeds);

/// Examinations one after the other, over connections that stay open between them, for a program
/// that watches a set of nodes. One call at a time, from any thread. In the child of a fork every
/// call fails with closed, as those of the client do.
class REDLOCK_EXPORT Examinations {
 public:
  /// The client must live as long as this object.
  explicit Examinations(const Client& client);
  Examinations(const Examinations&) = delete;
  Examinations& operator=(const Examinations&) = delete;
  ~Examinations();

  /// As Admin::examine(): blocks as long, fails in the same cases, and a node that does not answer
  /// is part of the result. The first examination connects. A connection that has ended is made
  /// anew between the calls, after pauses of up to a second; the return of a node may be reported
  /// later by that much. Where nodes have TLS, each examination connects anew, so that it judges
  /// the certificates as a program that starts now does. After a failed examination the next one
  /// may be called.
  [[nodiscard]] Result<Examination> next();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace redlock
