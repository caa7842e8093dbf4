// SPDX-License-Identifier: MIT
// The engine decides everything that one client does: which messages go to which node, when an
// attempt has won or lost, when a lease is renewed, healed or lost, which releases are owed to a
// node. It is a pure state machine: inputs are the methods below, each with the time at which it is
// called; outputs are plain values, taken with take_outputs() when all inputs that have come are
// dealt with. One thread at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "engine/acquire/acquirer.hpp"
#include "engine/broadcast/broadcasts.hpp"
#include "engine/config.hpp"
#include "engine/electorate.hpp"
#include "engine/lease/leases.hpp"
#include "engine/messages.hpp"
#include "engine/nodes/clock_watch.hpp"
#include "engine/nodes/node_facts.hpp"
#include "engine/nodes/quarantines.hpp"
#include "engine/outbox.hpp"
#include "engine/outputs.hpp"
#include "engine/owners/owners.hpp"
#include "engine/release/releaser.hpp"
#include "engine/requests.hpp"
#include "engine/types.hpp"

namespace redlock::engine {

class Engine {
 public:
  Engine(const Config& config, RandomSource& random);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Requests. Their arguments have been checked by the caller.
  void acquire(Instant now, RequestId request, AcquireRequest what) {
    acquirer_.acquire(now, request, std::move(what));
    admit(now);
  }
  void attach(Instant now, RequestId request, AttachRequest what) {
    leases_.attach(now, request, std::move(what));
  }
  /// Takes a name for an owner: enters the lease that the owner holds, or acquires. Concurrent
  /// calls of one owner for one name are queued. Ends with AcquireSucceeded or EnterSucceeded.
  void take(Instant now, RequestId request, TakeRequest what);
  /// One level less of what an owner holds by take(); the last one releases the lease. Request 0
  /// asks for no Finish. Returns the grant of the lease that is released; 0 if there are levels
  /// left.
  GrantId leave(Instant now, RequestId request, const OwnerKey& key);
  /// Ends an acquire, attach or take with this code (cancelled, closed) unless it has ended.
  void cancel(Instant now, RequestId request, Errc why);
  /// Confirm and lengthen a lease of ours.
  void extend(Instant now, RequestId request, GrantId grant, std::chrono::milliseconds lease) {
    leases_.extend(now, request, grant, lease);
  }
  /// Re-entry: hold a lease of ours once more, confirmed by a quorum; the same token. A failure
  /// leaves the count as it was and releases nothing.
  void enter(Instant now, RequestId request, const EnterRequest& what) {
    leases_.enter(now, request, what);
  }
  /// Hold a lease of ours once less. No output says when the nodes have the new count; the last
  /// level is given back by a release.
  void leave(Instant now, GrantId grant);
  /// Release a lease of ours; request 0 asks for no Finish.
  void release(Instant now, RequestId request, GrantId grant);
  /// Release a grant from elsewhere by its name and owner.
  void release(Instant now, RequestId request, Name name, OwnerId owner) {
    releaser_.release(now, request, std::move(name), owner);
  }
  /// Take a lock away from this owner. Late messages name this owner, so they harm no other.
  void force_release(Instant now, RequestId request, Name name, OwnerId owner);
  /// Has every node execute this command, and ends with what each replied: BroadcastDone.
  void broadcast(Instant now, RequestId request, Tag::Kind kind, const Command& command) {
    broadcasts_.begin(now, request, kind, command);
  }
  /// The loss of this lease has been reported to its holder: the lease is not confirmed or renewed
  /// any more.
  void give_up(Instant now, GrantId grant, LossReason reason);
  /// Forget a lease without releasing it.
  void detach(Instant now, GrantId grant);

  // Replies from the nodes. Exactly one on_reply for every Send.
  void on_reply(Instant now, NodeIndex node, const Tag& tag, const Reply& reply);
  /// What a new connection shows of the node. Called before anything is sent on the connection;
  /// before the first call, a node is asked without conditions.
  void on_node_facts(Instant now, NodeIndex node, const NodeFacts& facts) {
    quarantines_.on_node_facts(now, node, facts);
    clocks_.on_note(now, node, facts.clock_noted);
    follow_members(now);
  }
  /// The node has a marker, which says this.
  void on_marker(Instant now, NodeIndex node, Membership marker = {}) {
    quarantines_.on_marker(now, node, std::move(marker));
    follow_members(now);
  }
  /// The marker that the node had all the time says this by now, to a question of that time.
  void on_members(Instant now, NodeIndex node, Membership marker, Instant asked) {
    quarantines_.on_members(now, node, std::move(marker), asked);
    follow_members(now);
  }
  /// The node has lost its marker, to a question of that time.
  void on_no_marker(Instant now, NodeIndex node, Instant asked) {
    quarantines_.on_no_marker(now, node, asked);
  }
  /// The node has no marker, to a question of that time. This id is lost with the rest of the
  /// node's data.
  void on_pending_marker(Instant now, NodeIndex node, std::string id, Instant asked) {
    quarantines_.on_pending_marker(now, node, std::move(id), asked);
  }
  /// Why the node may not be asked for a lock now; nothing if it may. For commands that waited for
  /// the connection.
  [[nodiscard]] std::optional<Unavailable> objection(Instant now, NodeIndex node,
                                                     std::chrono::milliseconds lease = {}) const {
    return electorate_.objection(now, node, lease);
  }
  /// Why the node may not be told to hold a lock for so long.
  [[nodiscard]] std::optional<Unavailable> too_long(NodeIndex node,
                                                    std::chrono::milliseconds lease) const {
    return electorate_.sets().other_max_lease(node, lease);
  }
  /// After MoveNode: nothing more comes from the server that the node was.
  void on_moved(Instant now, NodeIndex node);
  /// The client begins to connect to every node.
  void on_connecting() { electorate_.connecting(); }
  /// A connection could not be made, or is lost.
  void on_node_down(Instant now, NodeIndex node) {
    electorate_.not_connected(node);
    electorate_.set_wakes(node, false);
    quarantines_.on_down(node);
    follow_members(now);
  }
  /// A new connection is ready; nothing sent on an older one can be executed any more.
  void on_node_up(Instant now, NodeIndex node);
  /// Whether the node can wake this client's waiters, until the connection is lost.
  void on_wakes(NodeIndex node, bool wakes) { electorate_.set_wakes(node, wakes); }
  /// The turn of this client's line of that number has come at the node, or comes after this time
  /// if the waiter before it does not take the lock until then. A hint: it may be lost, late,
  /// doubled or forged.
  void on_wake(Instant now, NodeIndex node, std::uint64_t line, Duration after) {
    acquirer_.on_wake(now, node, line, after);
    admit(now);
  }
  /// This machine's own wall clock at `now`, for the floor of tokens until a node's is known.
  void on_own_clock(Instant now, std::int64_t unix_us) {
    acquirer_.floors().on_own_clock(now, unix_us);
  }
  /// The node's TIME as it stands at `now` on this client's clock, in microseconds since 1970, give
  /// or take the uncertainty; and how long a message and its answer are on their way.
  void on_node_clock(Instant now, NodeIndex node, std::int64_t unix_us, Duration uncertainty = {},
                     Duration round_trip = {});

  /// When on_deadline must be called again, at the latest; `never` if there is nothing to wait for.
  [[nodiscard]] Instant deadline() const;
  void on_deadline(Instant now);

  /// The outputs to perform: those for the nodes first, each list in its order. Swapped with the
  /// caller's list, which must be empty.
  void take_outputs(Outputs& out) { out_.take(out); }

  /// The nodes that there are, and how many of them are a quorum.
  [[nodiscard]] NodeSet nodes() const { return electorate_.nodes(); }
  [[nodiscard]] std::uint32_t quorum() const { return electorate_.quorum(); }
  [[nodiscard]] std::uint32_t slots() const { return electorate_.slots(); }
  /// The longest lease that any client of the set may have, as far as it is known.
  [[nodiscard]] Duration longest_lease() const { return electorate_.longest_lease(); }

  /// How many releases were sent and not answered (for a shutdown that waits for them), by how many
  /// nodes, and whether one of them is of a grant that another client took.
  [[nodiscard]] std::size_t releases_under_way() const { return releaser_.under_way(); }
  [[nodiscard]] std::uint32_t nodes_releasing() const { return releaser_.nodes_under_way(); }
  [[nodiscard]] bool releases_taken_elsewhere() const {
    return releaser_.taken_elsewhere_under_way();
  }

 private:
  /// Called when more or less may be known of who the members are.
  void follow_members(Instant now);
  /// Called at the end of every input that may have made room for waiting rounds.
  void admit(Instant now);

  Quarantines quarantines_;
  ClockWatch clocks_;
  Electorate electorate_;
  GrantIds ids_;
  Outbox out_;
  Broadcasts broadcasts_;
  Releaser releaser_;
  Leases leases_;
  Acquirer acquirer_;
  Owners owners_;
  NodeSet limited_;        // strangers, to which the leases were told
  Majorities majorities_;  // that the leases know
};

}  // namespace redlock::engine
