// SPDX-License-Identifier: MIT
// Watches over the child and the lease at the same time. The authority is Lease::valid_until() by
// CLOCK_BOOTTIME: whatever nodes and network do, the child is dead when the lease is over.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include <redlock/lease.hpp>

#include "cli/child.hpp"
#include "cli/file_descriptor.hpp"
#include "cli/signals.hpp"
#include "cli/terminal.hpp"

namespace redlock::cli {

struct Farewell {
  int signal = SIGTERM;               ///< what the group gets first
  std::chrono::milliseconds grace{};  ///< how long before the end of the validity
};

class Supervisor {
 public:
  Supervisor(Child& child, const Lease& lease, Signals& signals, Terminal& terminal,
             Farewell farewell);

  /// Returns when the child has ended, with the status to exit with.
  int run();

 private:
  using Instant = BootClock::time_point;

  void watch_lease(Instant now);
  void part_with_child(Instant now, Instant over);
  [[nodiscard]] bool hear_child();
  void hear_signals();
  void follow_stop();
  void sleep_until(Instant when);
  [[nodiscard]] Instant next_look(Instant now) const;
  [[nodiscard]] int conclude();

  Child& child_;
  const Lease& lease_;
  Signals& signals_;
  Terminal& terminal_;
  Farewell farewell_;
  BootClock::duration longest_sleep_;
  FileDescriptor timer_;
  Event lost_;
  bool stops_with_child_ = false;
  bool killed_ = false;
  /// When the group is killed, once it has been told to end. A renewal that succeeds after that
  /// changes nothing: a command that is half-way out must not stay in for ever.
  std::optional<Instant> kill_at_;
};

}  // namespace redlock::cli
