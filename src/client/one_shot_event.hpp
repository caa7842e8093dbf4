// SPDX-License-Identifier: MIT
// One thread sleeps until another says so, once. As std::binary_semaphore, which first gives the
// processor up several times in the hope that it need not sleep: here the answer is a round trip
// away, and the loop thread needs the processor to get it.
#pragma once

#include <atomic>
#include <cstdint>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace redlock::client {

class OneShotEvent {
 public:
  void give() noexcept {
    if (state_.exchange(given, std::memory_order_release) != sleeping) return;
    // Who was to be woken may be gone by now, and its signal with it: a wake-up for nobody.
    ::syscall(SYS_futex, &state_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  }

  void await() noexcept {
    std::uint32_t expected = idle;
    state_.compare_exchange_strong(expected, sleeping, std::memory_order_acquire);
    while (state_.load(std::memory_order_acquire) != given) {
      ::syscall(SYS_futex, &state_, FUTEX_WAIT_PRIVATE, sleeping, nullptr, nullptr, 0);
    }
  }

 private:
  static constexpr std::uint32_t idle = 0;
  static constexpr std::uint32_t sleeping = 1;
  static constexpr std::uint32_t given = 2;

  std::atomic<std::uint32_t> state_{idle};
};
static_assert(sizeof(OneShotEvent) == sizeof(std::uint32_t));

}  // namespace redlock::client
