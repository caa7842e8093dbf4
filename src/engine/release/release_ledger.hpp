// SPDX-License-Identifier: MIT
// The releases that are owed: for every node, the grants that it may still hold and that nobody
// wants any more. An entry stays until the node says that it is gone, or until the lease has ended
// by itself. What was lost with a connection is sent again on the next one.
#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "engine/id_table.hpp"
#include "engine/messages.hpp"
#include "engine/outbox.hpp"
#include "engine/quorum.hpp"
#include "engine/rules.hpp"

namespace redlock::engine {

class ReleaseLedger {
 public:
  explicit ReleaseLedger(std::uint32_t nodes) : owed_(nodes) {}

  struct OwedGrant {
    GrantId id = 0;
    Name name;
    OwnerId owner;
    std::chrono::milliseconds lease{};
    NodeSet may_answer_late;  ///< nodes that may execute an acquire or hold of it at any time
    /// If somebody else may have sent what comes late, too: for how long its owner is turned away.
    std::chrono::milliseconds keep_out{};
    /// Of those that may answer late, nodes where that is one hold, whose answer is to come.
    NodeSet awaits_hold = {};
    /// Where its client goes on waiting. Said once.
    Place place = {};
    NodeSet tell_first_only = {};  ///< nodes that need not tell the second waiter
  };

  /// Tells these nodes to delete the grant, and remembers it until they have.
  void release(Instant now, const OwedGrant& grant, NodeSet nodes, Outbox& out);

  /// The same for nodes that have not answered its acquire: only if they answer that they granted
  /// it, as the lock that they have may be another's of the same owner.
  void release_if_granted(Instant now, const OwedGrant& grant, NodeSet nodes);

  /// A node's answer to a release. True if it is asked again at once.
  bool on_reply(Instant now, NodeIndex node, const Tag& tag, const Reply& reply, Outbox& out);
  /// The node answered the acquire or heal of a grant that is owed to it.
  void on_acquire_reply(Instant now, NodeIndex node, const Tag& tag, const Reply& reply,
                        Outbox& out);
  /// The same for a hold that was under way when the grant was released.
  void on_hold_reply(Instant now, NodeIndex node, const Tag& tag, const Reply& reply);
  /// A new connection: says again what is still owed and not under way, a part at a time: many
  /// debts at once would keep the node from everything else.
  void on_node_up(Instant now, NodeIndex node, Outbox& out);

  /// The node is no member any more: what it has ends with its leases.
  void forget(NodeIndex node) { owed_[node] = {}; }

  [[nodiscard]] Instant deadline() const { return next_look_; }
  void on_deadline(Instant now, Outbox& out);

  /// Releases that were sent and not answered.
  [[nodiscard]] std::size_t under_way() const;
  /// How many nodes have to answer one.
  [[nodiscard]] std::uint32_t nodes_under_way() const;
  /// Whether one of these is for a grant that another client took.
  [[nodiscard]] bool taken_elsewhere_under_way() const;

 private:
  enum class State : std::uint8_t {
    awaits_grant,  // nothing is sent unless the acquire is answered: granted
    waits,         // for the next connection, or until few enough are repeated there
    sent,          // an answer is to come
    repeated,      // the same, one of the few repeated at once
    refused,       // the node answered with an error, over a connection that goes on
  };
  /// What the node may still execute, until the next connection is up.
  enum class Late : std::uint8_t { nothing, one_hold, anything };
  struct Debt {
    GrantId grant = 0;
    Name name;
    OwnerId owner;
    Instant until{};  // by then the lease has ended by itself
    std::chrono::milliseconds lease{};
    std::chrono::milliseconds keep_out{};
    State state = State::waits;
    Late late = Late::nothing;
    bool alone = false;  // refused before, perhaps because of another release of the same call

    [[nodiscard]] GrantId id() const { return grant; }
    [[nodiscard]] bool taken_elsewhere() const { return rules::is_turned_away(keep_out); }
    [[nodiscard]] bool under_way() const {
      return state == State::sent || state == State::repeated;
    }
  };
  struct Owed {
    IdTable<Debt> debts;
    std::deque<GrantId> to_repeat;  // in their order; only while others are under way
    std::size_t repeats_under_way = 0;
    std::size_t under_way = 0;
    std::size_t taken_elsewhere_under_way = 0;
  };

  /// What a release says of waiters, when it is sent for the first time.
  struct ForWaiters {
    Place place = {};
    bool first_only = false;
  };
  static Debt& owe(Owed& owed, Debt debt);
  void send(Instant now, NodeIndex node, Debt& debt, Form form, Outbox& out,
            const ForWaiters& waiters);
  void send(Instant now, NodeIndex node, Debt& debt, Form form, Outbox& out) {
    send(now, node, debt, form, out, ForWaiters());
  }
  static void extend_for_late(Instant now, Debt& debt);
  static void answered(Owed& owed, Debt& debt, State next);
  void repeat_next(Instant now, NodeIndex node, Outbox& out);
  void look_again_by(Instant when) { next_look_ = std::min(next_look_, when); }

  std::vector<Owed> owed_;  // by node
  Instant next_look_ = never;
};

}  // namespace redlock::engine
