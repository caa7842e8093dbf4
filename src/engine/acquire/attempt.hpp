// SPDX-License-Identifier: MIT
// One attempt to take the lock: asks every node at once, decides at the vote that decides, and
// settles the token when the nodes gave different ones. It ends with a granted lease or with a
// failure; what it leaves on nodes is for the engine to release.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/lease/node_grants.hpp"
#include "engine/messages.hpp"
#include "engine/outbox.hpp"
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
  };

  /// voting: asking. settling: a quorum granted, with different tokens. failing: decided, to be
  /// released, but it is not known yet whether a quorum can vote. won, failed: the end.
  enum class Phase : std::uint8_t { voting, settling, failing, won, failed };

  Attempt(const Terms& terms, Plan plan, Instant now, Outbox& out);

  /// An answer to acquire or settle.
  void on_reply(Instant now, NodeIndex node, const Tag& tag, const Reply& reply, Outbox& out);
  void on_deadline(Instant now, Outbox& out);
  /// The node's clock ran ahead of ours by this much.
  void node_ran_ahead(NodeIndex node, Duration by) { nodes_.shorten(node, by); }

  [[nodiscard]] Phase phase() const { return phase_; }
  /// Whether the lock is out of reach, so that every node must be released now.
  [[nodiscard]] bool lost_the_vote() const {
    return phase_ == Phase::failing || phase_ == Phase::failed;
  }
  [[nodiscard]] bool ended() const { return phase_ == Phase::won || phase_ == Phase::failed; }
  [[nodiscard]] Instant deadline() const { return ended() ? never : deadline_; }

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
  void ask(NodeIndex node, Form form, Outbox& out) const;
  void send_settle(Instant now, NodeIndex node, Form form, Outbox& out);
  void on_acquire_reply(Instant now, NodeIndex node, const Reply& reply, Outbox& out);
  void on_granted(Instant now, NodeIndex node, Token token, Outbox& out);
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
  bool awaits_set_ = false;  // no grant counts before it is known which set the nodes belong to
  std::vector<Ballot> ballots_;
  std::optional<Duration> expires_in_;
};

}  // namespace redlock::engine
