// SPDX-License-Identifier: MIT
// Decides which thread runs the loop. A blocking caller that is alone takes the seat and runs the
// loop itself until its answer is there, which saves the two thread switches of asking the loop
// thread. In all other cases the loop thread has the seat. It leaves the seat when nothing is under
// way, and then sleeps until one of three events:
//
//   the bell   a task was posted, or a caller leaves before its answer is there. It goes on ringing
//              until the loop thread, in the seat, takes the tasks. A caller that drives leaves
//              when it rings: it runs no task but its own.
//   readiness  of the loop's own descriptor, reported once, and only if that was armed. The loop
//              thread arms it when it leaves; a caller disarms it, because it reads by itself.
//   the alarm  a moment after a caller has left. A caller does not arm: most come back at once, and
//              would have to disarm again. So nothing that is due waits longer than that moment.
//
// Why nothing is slept through: whenever the seat is free, either the descriptor is armed, or the
// alarm is set, or the bell rings, or the loop thread is about to ask for the seat. A caller that
// leaves sees to it: it gives the seat to a loop thread that waits for it, and otherwise leaves
// only if the bell rings or the alarm is set. The alarm's bit is set before the alarm and cleared
// after it went off, so a bit that is set means that the loop thread is going to look at the seat
// once more.
//
// The system calls are the Kernel's. The tests give it one that stops between any two of its
// operations, and run all their orders (tests/net/loop_seat_test.cpp).
#pragma once

#include <cstdint>

namespace redlock::net {

template <typename Kernel>
class LoopSeat {
 public:
  explicit LoopSeat(Kernel& kernel) : kernel_(kernel) {}

  /// A caller: whether it has the seat now; then it must leave the seat.
  [[nodiscard]] bool take() {
    std::uint32_t word = kernel_.load();
    do {
      if ((word & sitters) != nobody) return false;
    } while (!kernel_.exchange_if(word, (word & alarm) | caller));
    if ((word & armed) != 0) kernel_.disarm();
    return true;
  }

  /// The caller that has the seat. `rings`: it found the bell ringing.
  void leave(bool rings) {
    std::uint32_t word = kernel_.load();
    for (;;) {
      if ((word & wanted) != 0) {
        if (!kernel_.exchange_if(word, (word & alarm) | loop_thread)) continue;
        return kernel_.wake();
      }
      if (rings || (word & alarm) != 0) {
        if (kernel_.exchange_if(word, word & alarm)) return;
      } else if (kernel_.exchange_if(word, word | alarm)) {
        kernel_.set_alarm();
        word |= alarm;
      }
    }
  }

  /// The loop thread, in the seat, once it has polled the loop for what is to be watched: leaves it
  /// and sleeps until it is needed there, and has it again.
  void sleep_beside() {
    kernel_.arm();
    std::uint32_t word = kernel_.load();
    while (!kernel_.exchange_if(word, (word & alarm) | armed)) {
    }
    for (;;) {
      const auto event = kernel_.await_event();
      if (event.alarm) stop_alarm();
      if (event.bell) return sit_down();
      // A caller that drives reads ready descriptors itself, and its leaving sets the alarm.
      if (sit_down_if_free()) return;
    }
  }

  static constexpr std::uint32_t initially = 2;  ///< the loop thread has it

 private:
  static constexpr std::uint32_t nobody = 0;
  static constexpr std::uint32_t caller = 1;
  static constexpr std::uint32_t loop_thread = initially;
  static constexpr std::uint32_t sitters = caller | loop_thread;
  static constexpr std::uint32_t armed = 4;
  static constexpr std::uint32_t alarm = 8;
  static constexpr std::uint32_t wanted = 16;

  void stop_alarm() {
    std::uint32_t word = kernel_.load();
    while (!kernel_.exchange_if(word, word & ~alarm)) {
    }
  }

  bool sit_down_if_free() {
    std::uint32_t word = kernel_.load();
    do {
      if ((word & sitters) != nobody) return false;
    } while (!kernel_.exchange_if(word, (word & alarm) | loop_thread));
    return true;
  }

  void sit_down() {
    std::uint32_t word = kernel_.load();
    for (;;) {
      if ((word & sitters) == nobody) {
        if (kernel_.exchange_if(word, (word & alarm) | loop_thread)) return;
      } else if ((word & sitters) == loop_thread) {
        return;  // the caller gave it
      } else if (kernel_.exchange_if(word, word | wanted)) {
        kernel_.sleep(word | wanted);
        word = kernel_.load();
      }
    }
  }

  Kernel& kernel_;
};

}  // namespace redlock::net
