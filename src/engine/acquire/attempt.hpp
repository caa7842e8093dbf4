// SPDX-License-Identifier: MIT
// One attempt to take the lock: asks every node at once, decides at the vote that decides, and
// settles the token when the nodes gave different ones. It ends with a granted lease or with a
// failure; what it leaves on nodes is for the engine to release.
//
// An attempt of a call that waits does not fail while others have the lock: it asks nodes again
// (see AskSchedule) and gathers their votes one by one. What it was granted and cannot complete it
// gives back soon, by failing.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "engine/lease/node_grants.hpp"
#include "engine/messages.hpp"
#include "engine/outbox.hpp"
#include "engine/queue/ask_schedule.hpp"
#include "engine/terms.hpp"

namespace redlock::engine {

class Attempt {
 public:
  struct Plan {
    GrantId grant = 0;
    RequestId request = 0;  ///< who waits for it
    Name name;
    OwnerId owner;
    std::chrono::milliseconds lease{};
    Duration min_validity{};
    Token floor = 0;
    bool in_order = false;  ///< does not overtake who waits
    Waiter waiter{};        ///< whose attempt it is, if the call waits
    NodeSet silent{};       ///< nodes that did not answer earlier attempts
    NodeSet enters_at{};    ///< nodes that are not asked: a release enters the waiter there
  };

  /// voting: asking. settling: a quorum granted, with different tokens. failing: decided, to be
  /// released, but it is not known yet whether a quorum can vote. won, failed: the end.
  enum class Phase : std::uint8_t { voting, settling, failing, won, failed };

  /// The source must outlive the attempt.
  Attempt(const Terms& terms, Plan plan, RandomSource& random, Instant now, Outbox& out);

  /// An answer to acquire or settle.
  void on_reply(Instant now, NodeIndex node, const Tag& tag, const Reply& reply, Outbox& out);
  /// An answer to the release that was to enter the waiter.
  void on_entry_reply(Instant now, NodeIndex node, const Reply& reply, Outbox& out);
  void on_deadline(Instant now, Outbox& out);
  /// A node tells the waiter that its turn has come there, or will after this time.
  void on_wake(Instant now, NodeIndex node, Duration after, Outbox& out);
  /// A call of this client that was before it has been granted the lock.
  void moved_up() { asks_.moved_up(); }
  /// This client gives the lock back, in messages before what is sent now. Asks for it at once if
  /// nobody is between.
  void on_release(Instant now, Outbox& out);
  /// A connection to the node is new: what it has of the waiter is not known.
  void on_node_up(Instant now, NodeIndex node, Outbox& out);
  /// The call waits no longer: what is under way is decided as it comes.
  void stop_waiting(Instant now, Outbox& out);
  /// The token below which no node must go, as it is estimated now.
  void raise_floor(Token floor) { plan_.floor = std::max(plan_.floor, floor); }
  /// Its place from now on; what was asked before said another.
  void take_ticket(std::int64_t ticket) { plan_.waiter.ticket = ticket; }
  /// The node's clock ran ahead of ours by this much.
  void node_ran_ahead(NodeIndex node, Duration by) { nodes_.shorten(node, by); }

  [[nodiscard]] Phase phase() const { return phase_; }
  /// Whether the lock is out of reach, so that every node must be released now.
  [[nodiscard]] bool lost_the_vote() const {
    return phase_ == Phase::failing || phase_ == Phase::failed;
  }
  [[nodiscard]] bool ended() const { return phase_ == Phase::won || phase_ == Phase::failed; }
  [[nodiscard]] Instant deadline() const;
  /// Whether it waits for others, with no question under way.
  [[nodiscard]] bool idle() const { return gathers() && asks_.is_idle(); }
  [[nodiscard]] bool has_waited() const { return has_waited_; }
  [[nodiscard]] const AskSchedule& asks() const { return asks_; }

  [[nodiscard]] const Plan& plan() const { return plan_; }
  [[nodiscard]] Instant started() const { return started_; }
  /// Of a won attempt.
  [[nodiscard]] Token token() const { return token_; }
  [[nodiscard]] const NodeGrants& nodes() const { return nodes_; }
  /// Of a failed attempt.
  [[nodiscard]] Errc failure() const { return failure_; }
  /// Another process has the same owner: only what was granted to this one is its to release.
  [[nodiscard]] bool owner_is_shared() const { return owner_is_shared_; }
  [[nodiscard]] NodeSet granted() const;
  [[nodiscard]] NodeSet unanswered() const;
  /// How soon one of the nodes that refused will be free by itself, as far as any said.
  [[nodiscard]] std::optional<Duration> expires_in() const { return expires_in_; }
  [[nodiscard]] const std::vector<Ballot>& ballots() const { return ballots_; }
  [[nodiscard]] Tally tally() const;

 private:
  void ask(Instant now, NodeIndex node, Outbox& out);
  void await_entry(Instant now, NodeIndex node);
  void count_as_silent(Instant now, NodeIndex node);
  void ask_again(Instant now, NodeIndex node, Outbox& out);
  void ask_all_again(Instant now, Outbox& out);
  void send_acquire(Instant sent, NodeIndex node, Form form, Outbox& out) const;
  /// Also when it waits no longer: each question may put it into a queue, which it must leave.
  [[nodiscard]] bool in_queues() const { return plan_.waiter.number != 0; }
  [[nodiscard]] bool gathers() const { return patient_ && phase_ == Phase::voting; }
  [[nodiscard]] bool may_wait(Instant now, const Tally& votes);
  void look_ahead(Instant now);
  void look_ahead_due(Instant now, Outbox& out);
  void send_settle(Instant now, NodeIndex node, Form form, Outbox& out);
  void on_acquire_reply(Instant now, NodeIndex node, const Tag& tag, const Reply& reply,
                        Outbox& out);
  void on_granted(Instant now, NodeIndex node, const Tag& tag, Token token, Outbox& out);
  void on_settle_reply(Instant now, NodeIndex node, const Reply& reply, Outbox& out);
  void forced_out(NodeIndex node);
  void on_shared_owner(NodeIndex node);
  void judge_far_fences();
  void begin_settling(Instant now, Outbox& out);
  void judge_sets();
  void decide(Instant now, Outbox& out);
  void decide_settling(Instant now);
  void decide_failing();
  void win_or_be_late(Instant now);
  void fail(Errc why);
  [[nodiscard]] std::uint32_t quorum() const;
  void withdraw(NodeIndex node);
  void lose_vote(NodeIndex node, Vote vote, Cause cause, std::string detail);
  void lose_vote(NodeIndex node, Unavailable why);

  const Terms& terms_;
  Plan plan_;
  Instant started_;
  Instant deadline_;
  Phase phase_ = Phase::voting;
  bool owner_is_shared_ = false;
  Errc failure_ = Errc::no_quorum;
  Token token_ = 0;
  NodeGrants nodes_;
  std::vector<Token> granted_;  // by each node to this owner; 0 if none is known
  NodeSet settled_;             // nodes that count towards the token
  NodeSet settle_pending_;
  RandomSource* random_;
  bool patient_;
  bool has_waited_ = false;
  AskSchedule asks_;           // of one that is patient
  NodeSet spent_;              // that may execute an acquire of this owner at any time
  Instant give_back_ = never;  // when what cannot become a quorum is given back
  bool awaits_set_ = false;    // no grant counts before it is known which set the nodes belong to
  std::vector<Ballot> ballots_;
  std::optional<Duration> expires_in_;
};

}  // namespace redlock::engine
