// SPDX-License-Identifier: MIT
// All orders in which the loop thread, callers and a poster can take, leave and ask for the loop's
// seat. The protocol is the product's own LoopSeat; what surrounds it (core.cpp) is spelled again
// in seat_model.cpp, as programs of single steps. A step is one access to shared memory or one
// system call. A program is run again from its beginning for each of its steps, with the results
// that its earlier steps had: so it may be any code, and a state of it is the list of these
// results.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace testing {

/// What is broken on purpose.
enum class SeatBug {
  none,
  alarm_never_set,           // the bit says so, and no alarm follows
  alarm_set_before_bit,      // it may go off before anybody can see that it was set
  alarm_bit_never_cleared,   // the next one who leaves relies on an alarm that is over
  never_armed,               // the loop thread sleeps beside what is ready
  polled_once_only,          // what is to be watched since the last poll is not watched
  bell_stopped_by_caller,    // it was meant for the loop thread
  bell_stopped_after_tasks,  // a task that comes between is not run
  bell_before_task,          // the loop thread finds nothing and sleeps again
  bell_claimed,              // a caller leaves as if it had rung
  bell_only_a_hint,          // the loop thread does not wait for the caller that is leaving
  hand_over_not_woken,       // the loop thread has the seat and sleeps
  sleep_without_looking,     // the seat may be free by then
  seat_not_exclusive,        // looked at and taken in two steps
};

struct SeatCast {
  std::size_t callers = 1;
  std::size_t calls_each = 1;
  std::size_t posted = 1;  ///< tasks of a thread that does not wait for them
  std::size_t events = 1;  ///< that arrive at some time, and concern no call
};

struct SeatFindings {
  std::size_t states = 0;
  std::size_t ends = 0;
  std::string problem;  ///< the first one, empty if there is none
};

[[nodiscard]] SeatFindings explore_seat(const SeatCast& cast, SeatBug bug);

}  // namespace testing
