// SPDX-License-Identifier: MIT
// Which machine must be called next, and when. A machine that no longer needs its time is not taken
// out: it is asked for its deadline when the time comes, and queued again if that is later.
#pragma once

#include <cstdint>
#include <queue>
#include <vector>

#include "engine/types.hpp"

namespace redlock::engine {

struct Timer {
  enum class Of : std::uint8_t { acquisition, attempt, holding, releasing };
  Instant when{};
  std::uint64_t id = 0;
  Of of{};

  /// Earliest on top of the heap; ids make the order the same in every run.
  friend bool operator<(const Timer& a, const Timer& b) {
    if (a.when != b.when) return a.when > b.when;
    if (a.id != b.id) return a.id > b.id;
    return a.of > b.of;
  }
};

class TimerHeap {
 public:
  void add(const Timer& timer) {
    if (timer.when != never) heap_.push(timer);
  }
  [[nodiscard]] Instant next() const { return heap_.empty() ? never : heap_.top().when; }
  [[nodiscard]] bool due(Instant now) const { return next() <= now && next() != never; }
  Timer pop() {
    const Timer timer = heap_.top();
    heap_.pop();
    return timer;
  }

 private:
  std::priority_queue<Timer> heap_;
};

}  // namespace redlock::engine
