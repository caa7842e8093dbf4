// SPDX-License-Identifier: MIT
// One thread sleeps until another wakes it, once. As std::binary_semaphore, which first gives the
// processor up several times in the hope that it need not sleep: here the answer is a round trip
// away, and the loop thread needs the processor to get it.
#pragma once

#include <atomic>
#include <cstdint>

#include "net/futex.hpp"

namespace redlock::net {

class OneShotEvent {
 public:
  void give() noexcept {
    if (state_.exchange(done, std::memory_order_release) != sleeping) return;
    // The sleeper may be gone by now, and its event with it: then the wake-up reaches no thread.
    wake_from(state_);
  }

  [[nodiscard]] bool given() const noexcept {
    return state_.load(std::memory_order_acquire) == done;
  }

  void await() noexcept {
    std::uint32_t expected = idle;
    state_.compare_exchange_strong(expected, sleeping, std::memory_order_acquire);
    while (state_.load(std::memory_order_acquire) != done) {
      sleep_on(state_, sleeping);
    }
  }

 private:
  static constexpr std::uint32_t idle = 0;
  static constexpr std::uint32_t sleeping = 1;
  static constexpr std::uint32_t done = 2;

  std::atomic<std::uint32_t> state_{idle};
};
static_assert(sizeof(OneShotEvent) == sizeof(std::uint32_t));

}  // namespace redlock::net
