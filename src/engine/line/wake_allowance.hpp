// SPDX-License-Identifier: MIT
// How many wake-ups of a node are heeded. Each one makes a waiter ask all nodes, and anybody who
// may publish can forge one: so they are heeded without limit only as far as they lead to locks,
// which one node alone cannot bring about. A waiter whose wake-up was not heeded asks again within
// a second all the same.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

#include "engine/types.hpp"

namespace redlock::engine {

class WakeAllowance {
 public:
  // In vain, in a second and of one node. An honest node tells a waiter twice that its turn comes,
  // and after that when it has asked again, or when somebody who barged in is done; now and then
  // votes are split, once a millisecond for a while.
  static constexpr std::size_t for_all = 1'000;
  static constexpr std::size_t for_each_attempt = 4;

  explicit WakeAllowance(std::uint32_t nodes) : in_vain_(nodes) {}

  /// Whether this one is heeded, of a client with so many attempts: each adds four.
  [[nodiscard]] bool take(Instant now, NodeIndex node, std::size_t attempts) {
    if (now - since_ >= std::chrono::seconds(1)) {
      since_ = now;
      std::ranges::fill(in_vain_, 0);
    }
    if (in_vain_[node] >= for_all + for_each_attempt * attempts) return false;
    ++in_vain_[node];
    return true;
  }
  /// A waiter has its lock: what woke it was not in vain.
  void won() {
    for (std::size_t& count : in_vain_) count -= std::min(count, for_each_attempt);
  }

 private:
  Instant since_{};
  std::vector<std::size_t> in_vain_;  // by node
};

}  // namespace redlock::engine
