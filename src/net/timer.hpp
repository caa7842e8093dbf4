// SPDX-License-Identifier: MIT
// A timer of the loop. libuv's timers stand still while the machine sleeps, which is right for
// connections; leases are timed by BootTimer.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <uv.h>

#include "net/loop.hpp"

namespace redlock::net {

class Timer {
 public:
  /// `expired` is called on the loop thread, once for each start(), also if the loop has failed. It
  /// may destroy the timer.
  Timer(Loop& loop, std::function<void()> expired);

  /// From now; replaces an earlier start.
  void start(std::chrono::milliseconds after);
  void stop();

 private:
  struct Handle;
  // libuv frees a handle only a turn after it was closed.
  struct Close {
    void operator()(Handle* handle) const;
  };
  std::unique_ptr<Handle, Close> handle_;
};

}  // namespace redlock::net
