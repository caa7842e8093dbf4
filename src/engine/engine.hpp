// SPDX-License-Identifier: MIT
// The engine decides everything that one client does: which messages go to which node, when an
// attempt has won or lost, when a lease is renewed, healed, lost, what is owed to a node. It is a
// pure state machine: inputs are the methods below, each with the time at which it is called;
// outputs are plain values taken with take_outputs() after each input. One thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include <redlock/error.hpp>
#include <redlock/lease.hpp>
#include <redlock/observer.hpp>

#include "engine/messages.hpp"
#include "engine/quorum.hpp"
#include "engine/types.hpp"

namespace redlock::engine {

struct Config {
  std::uint32_t nodes = 0;
  double drift_factor = 0.01;
  Duration node_timeout = std::chrono::milliseconds(250);
  Duration retry_min = std::chrono::milliseconds(50);
  Duration retry_max = std::chrono::milliseconds(150);
  Duration retry_cap = std::chrono::milliseconds(500);
  bool clock_floor = true;
  std::chrono::milliseconds max_lease{60'000};
  /// Whether a node that may have forgotten a grant has to wait before it votes.
  bool quarantine = false;
  /// Attempts under way at once, at first (see Admission); others wait for their turn.
  std::uint32_t attempts_at_once = 128;
  /// The same for rounds that extend or enter a lease.
  std::uint32_t rounds_at_once = 500;
};

/// What is known of a node's marker.
enum class Marker : std::uint8_t {
  there,
  gone,
  gone_anew,  ///< and what this client had noted there as well: it has forgotten once more
};

/// What a new connection shows of a node.
struct NodeFacts {
  bool marker = false;    ///< it has one that agrees with this set
  bool durable = false;   ///< it writes to disk before it answers, as far as it can be asked
  bool promoted = false;  ///< it was a replica, and its marker does not vouch for it
  Duration uptime{};      ///< zero if it is not known
  std::string run = {};   ///< its run id, another with every start
  std::string set = {};   ///< the set that its marker names; empty if it names none
};

/// One acquisition. `wait` ends the retries; `deadline` ends the call whatever it does. The first
/// attempt is made whatever `wait` says, also if it has to wait for its turn.
struct AcquireRequest {
  Name name;
  std::chrono::milliseconds lease{};
  Duration min_validity{};
  bool renew = false;
  std::optional<Duration> max_hold;
  Duration wait{};  ///< zero: one attempt; Duration::max(): no end
  Instant deadline = never;
};

struct AttachRequest {
  Name name;
  OwnerId owner;
  Token token = 0;
  std::chrono::milliseconds lease{};
  bool renew = false;
  std::optional<Duration> max_hold;
};

/// One more level of a lease of ours, for at least `lease` from now.
struct EnterRequest {
  GrantId grant = 0;
  std::chrono::milliseconds lease{};
  bool renew = false;  ///< from now on, unless the lease is renewed already
};

/// One node's part in a decision, before it has a name.
struct Ballot {
  Vote vote = Vote::pending;
  Cause cause = Cause::none;
  std::string detail;
};

// Outputs.

struct Send {
  NodeIndex node = 0;
  Tag tag;
  Command command;
  Form form = Form::digest;
};

/// When a lease is lost unless it is confirmed before, and why it will be then.
struct LossDeadline {
  Instant lost_at{};
  LossReason reason{};
};

struct AcquireSucceeded {
  GrantId grant = 0;
  OwnerId owner;
  Token token = 0;
  Instant valid_until{};
  LossDeadline loss_deadline{};
};
struct ReleaseDone {
  Released outcome{};
};
/// Done if a quorum confirmed. What each node said: granted, it turns the owner away from now on.
/// None is pending.
struct ForceDone {
  NodeSet removed;              ///< nodes that had the lock for this owner
  std::uint32_t confirmed = 0;  ///< nodes that have it for this owner no more, and will not again
  std::vector<Ballot> ballots;
};
struct ExtendSucceeded {
  Instant valid_until{};
};
struct EnterSucceeded {
  std::uint32_t count = 0;  ///< how many levels are held now, this one included
  Instant valid_until{};
};
struct Failed {
  Errc code{};
  std::string detail;  ///< what happened, for the message; may be empty
  std::vector<Ballot> ballots;
};

/// A request has ended. Exactly one for every request.
struct Finish {
  RequestId request = 0;
  std::variant<AcquireSucceeded, ReleaseDone, ExtendSucceeded, EnterSucceeded, ForceDone, Failed>
      result;
};
/// A lease's validity was confirmed anew, or shortened because a node took back its vote or its
/// clock went ahead. After a loss it is only shortened.
struct ValidityChanged {
  GrantId grant = 0;
  Instant valid_until{};
  LossDeadline loss_deadline{};
};
/// Nothing more will be confirmed for this lease. At most once for a lease, never after its
/// release.
struct LeaseLost {
  GrantId grant = 0;
  LossReason reason{};
};
/// For observers only.
struct AttemptDecided {
  Name name;
  std::optional<Errc> failure;
  std::vector<Ballot> ballots;
  Duration elapsed{};
};
struct RenewalDecided {
  GrantId grant = 0;
  bool ok = false;
  Instant valid_until{};
};

/// A quarantined node's marker is to be looked for, and our note left if there is none; or, its
/// time being over and our note still there, to be written. To be answered with on_marker(), if the
/// node can be asked at all. Without quarantine: any node is to be asked whether there is a marker
/// or a note, and on_marker(there) says that there is.
struct TendMarker {
  NodeIndex node = 0;
  bool write = false;
  std::string set = {};  ///< what the marker written is to name; may be empty
};

/// A node's clock jumped or runs. It does not count for max_lease from now, unless a quorum of
/// nodes moved by as much: then it is our own clock that stood still or ran.
struct NodeClockMoved {
  NodeIndex node = 0;
  Duration by{};         ///< against our clock; positive: the node's went ahead
  bool ours = false;     ///< as far as the nodes read so far can tell
  bool ask_all = false;  ///< every clock is to be read at once, to know whose fault it is
};

using Output = std::variant<Send, Finish, ValidityChanged, LeaseLost, AttemptDecided,
                            RenewalDecided, TendMarker, NodeClockMoved>;

class Engine {
 public:
  Engine(const Config& config, RandomSource& random);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Requests. Their arguments have been checked by the caller.
  void acquire(Instant now, RequestId request, AcquireRequest what);
  void attach(Instant now, RequestId request, AttachRequest what);
  /// Ends an acquire or attach with this code (cancelled, closed) unless it has ended already.
  void cancel(Instant now, RequestId request, Errc why);
  /// Confirm and lengthen a lease of ours.
  void extend(Instant now, RequestId request, GrantId grant, std::chrono::milliseconds lease);
  /// Re-entry: hold a lease of ours once more, confirmed by a quorum; the same token. A failure
  /// leaves the count as it was and releases nothing.
  void enter(Instant now, RequestId request, const EnterRequest& what);
  /// Hold a lease of ours once less. Nobody is told when the nodes know; the last level is left by
  /// a release.
  void leave(Instant now, GrantId grant);
  /// Release a lease of ours; request 0 asks for no Finish.
  void release(Instant now, RequestId request, GrantId grant);
  /// Release somebody's grant by its name and owner; it was at most this lease long.
  void release(Instant now, RequestId request, Name name, OwnerId owner,
               std::chrono::milliseconds lease);
  /// Take a lock away from this owner, whoever that is; its leases are at most this long. What is
  /// late of this can touch nobody else.
  void force_release(Instant now, RequestId request, Name name, OwnerId owner,
                     std::chrono::milliseconds lease);
  /// The holder has been told that this lease is lost: nothing is confirmed or renewed any more.
  void give_up(Instant now, GrantId grant, LossReason reason);
  /// Forget a lease without releasing it.
  void detach(Instant now, GrantId grant);

  // What comes back from the nodes. Exactly one on_reply for every Send.
  void on_reply(Instant now, NodeIndex node, const Tag& tag, const Reply& reply);
  /// A new connection shows this. To be told before anything is sent on it; until the first time
  /// a node is asked without more ado.
  void on_node_facts(Instant now, NodeIndex node, const NodeFacts& facts);
  /// `set`: what the marker names, if it is there.
  void on_marker(Instant now, NodeIndex node, Marker marker, std::string set = {});
  /// Why the node may not be asked for a lock now; nothing if it may. For commands that waited for
  /// the connection.
  [[nodiscard]] std::optional<Unavailable> objection(Instant now, NodeIndex node) const;
  /// A new connection is ready; nothing sent on an older one can be executed any more.
  void on_node_up(Instant now, NodeIndex node);
  /// This machine's own wall clock at `now`, for the floor of tokens until a node's is known.
  void on_own_clock(Instant now, std::int64_t unix_us);
  /// The node's TIME as it stands at `now` on this client's clock, in microseconds since 1970, give
  /// or take half the round trip that brought it.
  void on_node_clock(Instant now, NodeIndex node, std::int64_t unix_us, Duration uncertainty = {});

  /// When on_deadline must be called again, at the latest; `never` if there is nothing to wait for.
  [[nodiscard]] Instant deadline() const;
  void on_deadline(Instant now);

  /// What is to be done, in this order. Swapped with the caller's vector, which must be empty.
  void take_outputs(std::vector<Output>& out);

  /// How many releases were sent and not answered (for a shutdown that waits for them), and by how
  /// many nodes.
  [[nodiscard]] std::size_t releases_under_way() const;
  [[nodiscard]] std::uint32_t nodes_releasing() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace redlock::engine
