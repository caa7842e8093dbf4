// SPDX-License-Identifier: MIT
// What a client may at most believe about one grant, from the answers that it was given: the rule
// of the design page, written a second time and independently of the engine.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <vector>

#include "engine/messages.hpp"

namespace redlock::simulation {

using engine::Duration;
using engine::Instant;

/// Of the node that answers.
struct Circumstances {
  bool trusted = true;       ///< its clock keeps time, as far as the client knows
  std::uint64_t order = 0;   ///< the answer's place among all that was received
  bool quarantined = false;  ///< it forgot what it had, and grants nothing as yet
};

class Belief {
 public:
  /// `members`: a majority of so many is a quorum.
  Belief(std::uint32_t nodes, std::uint32_t members, std::int64_t drift_ppm)
      : nodes_(nodes), members_(members), drift_ppm_(drift_ppm) {}

  void sent(std::uint32_t node, const engine::Tag& tag);
  void answered(std::uint32_t node, const engine::Tag& tag, const engine::Reply& reply,
                Circumstances circumstances = {});
  /// The node ends what it confirmed that much earlier.
  /// Of what it confirmed before the reading of its clock that shows it, by their order.
  void ran_ahead(std::uint32_t node, Duration by, std::uint64_t order);
  /// A hold with this count is on its way; answers come in the order of messages.
  void sent_count(std::uint32_t node, std::uint32_t count) { nodes_[node].sent.push_back(count); }
  /// Whether a quorum of nodes confirmed at least this count.
  [[nodiscard]] bool counted(std::uint32_t count) const;

  /// The latest end of validity that a quorum of confirmations allows; Instant::min() if too few
  /// nodes confirmed.
  [[nodiscard]] Instant valid_until() const;
  [[nodiscard]] std::uint32_t confirmed() const;
  /// Whether a quorum vouches for the token: each granted this attempt at most that token itself,
  /// still has the lock for it, and its fence has reached the token.
  [[nodiscard]] bool settled(engine::Token token) const;
  /// Whether the node was asked for the lock, may have it, and was not told to delete it.
  [[nodiscard]] bool left_behind(std::uint32_t node) const {
    const Node& at = nodes_[node];
    return at.may_hold && !at.released && (at.granted != 0 || !owner_is_shared_);
  }
  /// Whether the node's confirmation counts; or still does, by the client's clock.
  [[nodiscard]] bool counts(std::uint32_t node) const { return nodes_[node].ours; }
  [[nodiscard]] bool counts(std::uint32_t node, Instant now) const {
    return nodes_[node].ours && nodes_[node].until > now;
  }
  [[nodiscard]] bool owner_is_shared() const { return owner_is_shared_; }
  [[nodiscard]] bool released(std::uint32_t node) const { return nodes_[node].released; }
  /// How many nodes deleted the lock when it was released, and how many may have had it then.
  [[nodiscard]] std::uint32_t removed() const;
  [[nodiscard]] std::uint32_t may_have_had() const;
  /// Whether the node may still run a question for the lock.
  [[nodiscard]] bool owes_an_answer(std::uint32_t node) const {
    return nodes_[node].asked || nodes_[node].spent;
  }
  /// Whether it said, before the answer with this place, that the lock there is another process's.
  [[nodiscard]] bool shared(std::uint32_t node, std::uint64_t order) const {
    return nodes_[node].shared != 0 && nodes_[node].shared < order;
  }
  /// Whether it was known before the answer with this place that the node has nothing of the grant.
  [[nodiscard]] bool has_nothing(std::uint32_t node, std::uint64_t order) const {
    return nodes_[node].has_nothing != 0 && nodes_[node].has_nothing < order;
  }
  [[nodiscard]] std::uint32_t granted() const { return granted_; }
  /// How many nodes refused when they were last asked for the lock, or took it back.
  [[nodiscard]] std::uint32_t refused() const;
  /// A lease sent then is trusted until then.
  [[nodiscard]] Instant trusted_until(Instant sent, std::chrono::milliseconds lease) const;

 private:
  struct Node {
    bool ours = false;
    bool healing = false;
    bool may_hold = false;
    bool released = false;
    bool removed = false;  // the release deleted the lock
    bool had_none = false;
    bool no_script = false;         // the release found none, and was not sent again
    bool asked = false;             // for the lock, and did not answer
    bool spent = false;             // asked, and nobody knows whether it will run that
    bool refused = false;           // since it was last asked
    std::uint64_t shared = 0;       // the answer that another process has it by the same owner
    std::uint64_t has_nothing = 0;  // the answer by which it has nothing of the grant
    engine::Token granted = 0;
    engine::Token fence = 0;
    Instant until = Instant::min();
    std::uint64_t confirmed = 0;     // the place of the latest among all that was received
    std::deque<std::uint32_t> sent;  // counts of holds that are not answered
    std::uint32_t count = 1;         // the largest that it confirmed
  };
  void confirm(Node& node, const engine::Tag& tag, Circumstances circumstances);
  static void deny(Node& node, Circumstances circumstances);
  [[nodiscard]] std::size_t quorum() const { return members_ / 2 + 1; }

  std::vector<Node> nodes_;
  std::uint32_t members_;
  std::int64_t drift_ppm_;
  std::uint32_t granted_ = 0;
  bool owner_is_shared_ = false;
};

}  // namespace redlock::simulation
