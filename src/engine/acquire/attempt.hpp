// SPDX-License-Identifier: MIT
// One attempt to take the lock: asks nodes, counts their votes, and settles the token when the
// nodes gave different ones. It ends with a granted lease or with a failure; what it leaves on
// nodes is for the engine to release.
//
// It does not decide when a vote is lost: the call whose attempt it is may ask nodes that refused
// once more (see Acquisition), and otherwise gives it up.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/electorate.hpp"
#include "engine/lease/node_grants.hpp"
#include "engine/messages.hpp"
#include "engine/outbox.hpp"

namespace redlock::engine {

class Attempt {
 public:
  struct Plan {
    GrantId grant = 0;
    RequestId request = 0;  ///< the call whose attempt it is
    Name name;
    OwnerId owner;
    std::chrono::milliseconds lease{};
    Duration min_validity{};
    Token floor = 0;
    Token ceiling = 0;      ///< tokens beyond it are believed only of a quorum of nodes
    bool in_order = false;  ///< overtakes no call that waits
    bool waits = false;     ///< in line: the time of each question counts for itself
    NodeSet silent{};       ///< nodes that were out of reach before, so are not waited for
  };

  /// The places of the call, and of the next one of its client, in the nodes' lines.
  struct LinePlaces {
    std::uint64_t line = 0;  ///< 0: in none
    Instant began{};         ///< the call
    Duration turn{};
    std::optional<Instant> next_began{};  ///< the next call
    NodeSet new_at{};  ///< nodes that may yet stand the client there for the call before
  };

  /// voting: asking. settling: a quorum granted, with different tokens. failing: decided, to be
  /// released, but it is not known yet whether a quorum can vote. won, failed: the end.
  enum class Phase : std::uint8_t { voting, settling, failing, won, failed };

  Attempt(const Electorate& electorate, Plan plan, Instant now);

  /// The line, waiting times and turn that messages name from now on.
  void stand(const LinePlaces& standing) { standing_ = standing; }
  /// Asks these nodes, but for those that have granted the lock, have a question, or may still
  /// carry one out whose answer was lost. Returns those that were sent a question.
  NodeSet ask(Instant now, NodeSet nodes, Outbox& out);
  /// An answer to acquire or settle.
  void on_reply(Instant now, NodeIndex node, const Tag& tag, const Reply& reply, Outbox& out);
  void on_deadline(Instant now, Outbox& out);
  /// The lock is out of reach, or the call is over.
  void give_up();
  /// The token below which no node must go, as it is estimated now.
  void raise_floor(Token floor) { plan_.floor = std::max(plan_.floor, floor); }
  /// The node's clock ran ahead of ours by this much.
  void node_ran_ahead(NodeIndex node, Duration by) { nodes_.shorten(node, by); }
  /// See Leases.
  void node_removed(NodeIndex node);
  /// True if what it was granted is a quorum now. That it can be none any more is not decided here:
  /// a member that is new was not asked yet.
  bool members_changed(Instant now, Outbox& out);
  /// It is waited for again, also if it was asked before.
  void node_up(Instant now, NodeIndex node);

  [[nodiscard]] Phase phase() const { return phase_; }
  /// Whether it votes, and cannot win by the answers that are still to come.
  [[nodiscard]] bool out_of_reach() const {
    return phase_ == Phase::voting && electorate_.out_of_reach(tally());
  }
  /// It was given up, or won too late.
  [[nodiscard]] bool lost_the_vote() const {
    return phase_ == Phase::failing || phase_ == Phase::failed;
  }
  /// True once: every node that may have granted it must be released now.
  [[nodiscard]] bool take_release() { return lost_the_vote() && !std::exchange(released_, true); }
  [[nodiscard]] bool ended() const { return phase_ == Phase::won || phase_ == Phase::failed; }
  [[nodiscard]] Instant deadline() const;
  /// Nodes with a question that they have not answered, silent ones too.
  [[nodiscard]] NodeSet asked() const;
  [[nodiscard]] bool is_asked(NodeIndex node) const { return per_node_[node].asked != never; }
  /// Nodes that this owner cannot ask any more: they may carry out a question whose answer was
  /// lost, or have the lock for another process of the same owner.
  [[nodiscard]] NodeSet spent() const { return spent_; }
  /// Nodes that did not answer within the node timeout, or could not be reached, and have not
  /// answered or been reached since.
  [[nodiscard]] NodeSet silent() const { return silent_; }

  [[nodiscard]] const Plan& plan() const { return plan_; }
  [[nodiscard]] const LinePlaces& standing() const { return standing_; }
  [[nodiscard]] Instant started() const { return started_; }
  /// Of a won attempt.
  [[nodiscard]] Token token() const { return token_; }
  [[nodiscard]] const NodeGrants& nodes() const { return nodes_; }
  /// Of a failed attempt.
  [[nodiscard]] Errc failure() const { return failure_; }
  [[nodiscard]] NodeSet granted() const { return nodes_.ours(); }
  /// The shortest time that a node which refused has named since the attempt began: after it the
  /// lease that it had then would end, or the turn of the waiter that it kept the lock for.
  [[nodiscard]] std::optional<Duration> expires_in() const { return expires_in_; }
  [[nodiscard]] const std::vector<Ballot>& ballots() const { return ballots_; }
  /// Of an attempt that counts no more votes.
  [[nodiscard]] std::vector<Ballot> take_ballots() { return std::exchange(ballots_, {}); }
  [[nodiscard]] Tally tally() const;

 private:
  struct Node {
    Token granted = 0;      // to this owner; 0 if none is known
    Instant asked = never;  // since when an answer of it is awaited; never: none is
  };

  bool ask(Instant now, NodeIndex node, Outbox& out);
  void send_acquire(Instant sent, NodeIndex node, Form form, Outbox& out) const;
  void send_settle(Instant now, NodeIndex node, Form form, Outbox& out);
  void on_acquire_reply(Instant now, NodeIndex node, const Tag& tag, const Reply& reply,
                        Outbox& out);
  void on_no_script(Instant now, NodeIndex node, Instant asked, Outbox& out);
  void on_granted(Instant now, NodeIndex node, const Tag& tag, Token token, Outbox& out);
  void on_settle_reply(Instant now, NodeIndex node, const Reply& reply, Outbox& out);
  void forced_out(NodeIndex node);
  void leaves(NodeIndex node);
  void on_shared_owner(NodeIndex node);
  void judge_fences();
  [[nodiscard]] Token ceiling() const;
  void begin_settling(Instant now, Outbox& out);
  void judge_sets();
  [[nodiscard]] NodeSet without_conflict(NodeSet granted);
  void decide(Instant now, Outbox& out);
  [[nodiscard]] Instant too_late_from() const;
  void decide_settling(Instant now);
  void decide_failing();
  void win_or_be_late(Instant now);
  void fail(Errc why);
  [[nodiscard]] std::uint32_t quorum() const;
  [[nodiscard]] bool is_quorum(NodeSet nodes) const;
  void withdraw(NodeIndex node);
  void lose_vote(NodeIndex node, Vote vote, Cause cause, std::string detail);
  void lose_vote(NodeIndex node, Unavailable why);

  const Electorate& electorate_;
  Plan plan_;
  Instant started_;
  Instant settles_by_ = never;
  Phase phase_ = Phase::voting;
  Errc failure_ = Errc::no_quorum;
  Token token_ = 0;
  NodeSet of_;  // the nodes whose votes count
  NodeGrants nodes_;
  std::vector<Node> per_node_;
  NodeSet settled_;  // nodes that count towards the token
  NodeSet settle_pending_;
  LinePlaces standing_;
  Duration patience_;  // with a question
  NodeSet silent_;
  NodeSet spent_;
  bool released_ = false;
  bool awaits_set_ = false;  // no grant counts before it is known which set the nodes belong to
  std::vector<Ballot> ballots_;
  std::optional<Duration> expires_in_;
};

}  // namespace redlock::engine
