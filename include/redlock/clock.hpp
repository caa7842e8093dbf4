// SPDX-License-Identifier: MIT
// The clock that leases are measured with. CLOCK_BOOTTIME goes on while the machine sleeps, which
// CLOCK_MONOTONIC (std::chrono::steady_clock) does not: a suspended holder must not think that no
// time has passed.
#pragma once

#include <redlock/cpp20.hpp>

#include <chrono>

#include <redlock/export.hpp>

namespace redlock {

/// CLOCK_BOOTTIME as a standard clock: monotonic, and running through suspend.
/// Its epoch is the start of this machine, so its time points mean nothing to another one.
struct REDLOCK_EXPORT BootClock {
  using duration = std::chrono::nanoseconds;              ///< of the clock: nanoseconds
  using rep = duration::rep;                              ///< a count of nanoseconds
  using period = duration::period;                        ///< a nanosecond
  using time_point = std::chrono::time_point<BootClock>;  ///< of this clock alone
  static constexpr bool is_steady = true;                 ///< it never goes back

  /// Reads the clock. Never fails on Linux; may be called from any thread.
  [[nodiscard]] static time_point now() noexcept;
};

}  // namespace redlock
