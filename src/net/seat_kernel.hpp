// SPDX-License-Identifier: MIT
// The system calls of LoopSeat: an epoll of its own around the loop's descriptor, in which the loop
// thread sleeps while it is not needed in the loop; the bell (an eventfd, which is in the loop too)
// and the alarm (a timerfd).
#pragma once

#include <atomic>
#include <cstdint>

#include "net/futex.hpp"
#include "net/loop_seat.hpp"

namespace redlock::net {

class SeatKernel {
 public:
  SeatKernel() = default;
  ~SeatKernel();
  SeatKernel(const SeatKernel&) = delete;
  SeatKernel& operator=(const SeatKernel&) = delete;

  /// Around this descriptor of a loop. 0 or libuv's error.
  [[nodiscard]] int open(int loop_descriptor);

  /// Readable as long as the bell rings.
  [[nodiscard]] int bell() const { return bell_; }
  /// Any thread.
  void ring() const noexcept;
  /// The loop thread, in the seat.
  void stop_ringing() const noexcept;
  /// For the next time that the loop thread sleeps: when the loop's own timers are due; -1: never.
  void set_timeout(int in_ms) noexcept { timeout_ = in_ms; }

  // What LoopSeat needs.
  struct SeatEvent {
    bool bell = false;
    bool alarm = false;
  };
  [[nodiscard]] std::uint32_t load() const noexcept { return word_.load(); }
  bool exchange_if(std::uint32_t& expected, std::uint32_t desired) noexcept {
    return word_.compare_exchange_strong(expected, desired);
  }
  void arm() const noexcept;
  void disarm() const noexcept;
  void set_alarm() const noexcept;
  [[nodiscard]] SeatEvent await_event() noexcept;
  void sleep(std::uint32_t expected) noexcept { sleep_on(word_, expected); }
  void wake() noexcept { wake_from(word_); }

 private:
  std::atomic<std::uint32_t> word_{LoopSeat<SeatKernel>::initially};
  int loop_ = -1;
  int bell_ = -1;
  int alarm_ = -1;
  int epoll_ = -1;
  int timeout_ = -1;
};

}  // namespace redlock::net
