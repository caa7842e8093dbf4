// SPDX-License-Identifier: MIT
// Lets any number of threads use something that one thread will destroy. Two atomic additions a
// use.
#pragma once

#include <atomic>
#include <cstdint>

namespace redlock::client {

class Gate {
 public:
  /// False once close() has begun. Otherwise leave() must follow.
  [[nodiscard]] bool enter() noexcept {
    if ((users_.fetch_add(1, std::memory_order_acquire) & closed) == 0) return true;
    leave();
    return false;
  }

  void leave() noexcept {
    if (users_.fetch_sub(1, std::memory_order_release) == (closed | 1)) users_.notify_all();
  }

  /// Admits no further use and waits until those under way have ended.
  void close() noexcept {
    std::uint32_t users = users_.fetch_or(closed, std::memory_order_acq_rel) | closed;
    while (users != closed) {
      users_.wait(users, std::memory_order_acquire);
      users = users_.load(std::memory_order_acquire);
    }
  }

 private:
  static constexpr std::uint32_t closed = 1U << 31;
  std::atomic<std::uint32_t> users_{0};
};

}  // namespace redlock::client
