// SPDX-License-Identifier: MIT
// When an attempt that waits asks which node: at once when the node says that its turn has come, at
// the moment at which the holder's lease ends by itself, and now and then in any case, as neither
// is certain. At most one question to a node is under way.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/quorum.hpp"
#include "engine/types.hpp"

namespace redlock::engine {

class AskSchedule {
 public:
  /// For how long a node keeps the lock for a waiter whose turn it is (the scripts have it, too).
  static constexpr Duration window = std::chrono::milliseconds(20);
  /// A node forgets a waiter that has not asked for 2.5 times this long.
  static constexpr Duration refresh = std::chrono::milliseconds(1'000);
  /// What a waiter that nodes cannot wake pauses before it asks again. Nodes keep the lock for its
  /// turn, and remember it, for no less than the longest.
  [[nodiscard]] static Duration between_polls(RandomSource& random) {
    return random_between(std::chrono::milliseconds(20), std::chrono::milliseconds(60), random);
  }

  /// No node, for an attempt that does not wait.
  AskSchedule() = default;
  AskSchedule(std::uint32_t nodes, NodeSet silent) : nodes_(nodes), silent_(silent) {}

  void sent(Instant now, NodeIndex node);
  /// A release enters the waiter there: to be answered as a question is.
  void entering(Instant now, NodeIndex node);
  [[nodiscard]] bool enters(NodeIndex node) const { return nodes_[node].enters; }
  /// Whether nobody is before this waiter on a quorum of the nodes, as they replied.
  [[nodiscard]] bool is_next(std::uint32_t quorum) const;
  /// Where it is not known yet whether the waiter was entered, a question may follow.
  void await_no_entries();
  /// The node replied, whatever it was. True if it is to be asked once more: its turn came while
  /// the question was under way, which a refusal may not know yet.
  bool replied(Instant now, NodeIndex node);
  /// It replied that the lock is another's for so long, and how many wait before this one.
  void refused(Instant now, NodeIndex node, std::optional<Duration> expires_in,
               std::uint32_t place);
  /// The turn has come, or will after that time. True if the node is to be asked at once.
  bool wake(Instant now, NodeIndex node, Duration after, RandomSource& random);

  [[nodiscard]] bool under_way(NodeIndex node) const { return nodes_[node].under_way; }
  /// Nodes that did not answer within the node timeout, whatever has become of them since.
  [[nodiscard]] NodeSet silent() const { return silent_; }
  [[nodiscard]] NodeSet asked() const;
  /// The shortest round trip so far.
  [[nodiscard]] Duration round_trip() const { return round_trip_; }

  /// Nothing is under way, or only what is silent: asks again when a lease may have ended, by
  /// `polled` at the latest.
  void idle(Instant now, std::uint32_t quorum, Duration polled, RandomSource& random);
  /// How many are before this waiter on a quorum of the nodes that refused it.
  [[nodiscard]] std::uint32_t place(std::uint32_t quorum) const;
  /// Somebody who was before this waiter has had the lock.
  void moved_up();
  [[nodiscard]] bool is_idle() const { return poll_at_ != never; }

  // What is due by now.
  [[nodiscard]] bool silent_by(Instant now, NodeIndex node, Duration node_timeout);
  [[nodiscard]] bool wake_due(Instant now, NodeIndex node);
  [[nodiscard]] bool poll_due(Instant now);
  [[nodiscard]] Instant deadline(Duration node_timeout) const;

 private:
  struct Node {
    Instant sent = never;
    Instant free_at = never;
    Instant wake_at = never;
    std::uint32_t place = 0;
    bool under_way = false;
    bool enters = false;  // what is under way is no question, but is to put the waiter in
    bool woken = false;   // while a question was under way
    bool refused = false;
  };

  std::vector<Node> nodes_;
  NodeSet silent_;
  Instant poll_at_ = never;
  Duration round_trip_ = Duration::max();
};

}  // namespace redlock::engine
