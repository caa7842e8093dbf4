// SPDX-License-Identifier: MIT
// The one place that reads the clock.
#include <ctime>

#include <redlock/clock.hpp>

namespace redlock {

BootClock::time_point BootClock::now() noexcept {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return time_point(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
}

}  // namespace redlock
