// SPDX-License-Identifier: MIT
// The one timer for all deadlines of the engine. It runs on CLOCK_BOOTTIME, so that leases that
// expired while the machine slept are expired when it wakes up.
#pragma once

#include <functional>
#include <memory>
#include <uv.h>

#include "engine/types.hpp"
#include "net/loop.hpp"

namespace redlock::net {

/// Sets a timerfd of CLOCK_BOOTTIME.
void set_alarm(int descriptor, engine::Instant when) noexcept;

class BootTimer {
 public:
  /// None if the system has no descriptor left.
  [[nodiscard]] static std::unique_ptr<BootTimer> create(Loop& loop, std::function<void()> expired);
  ~BootTimer();
  BootTimer(const BootTimer&) = delete;
  BootTimer& operator=(const BootTimer&) = delete;

  /// Makes sure that the timer expires by then. It may also expire earlier, for an earlier setting:
  /// postponing costs a system call, and most deadlines are postponed again and again.
  void expire_by(engine::Instant when);

 private:
  struct Handle;

  BootTimer() = default;

  Handle* handle_ = nullptr;  // libuv frees it a turn after it is closed
  engine::Instant armed_ = engine::never;
};

}  // namespace redlock::net
