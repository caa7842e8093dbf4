// SPDX-License-Identifier: MIT
// Watches the child and the lease at the same time. Lease::valid_until(), by CLOCK_BOOTTIME,
// decides: whatever nodes and network do, the child is dead when the lease expires.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include <redlock/lease.hpp>

#include "cli/file_descriptor.hpp"
#include "cli/redlock/child.hpp"
#include "cli/redlock/terminal.hpp"
#include "cli/signals.hpp"

namespace redlock::cli {

/// How the command ends when its lease does.
struct TerminationPolicy {
  int signal = SIGTERM;               ///< sent to the group first; SIGKILL when the lease expires
  std::chrono::milliseconds grace{};  ///< how long before the lease expires `signal` is sent
};

class Supervisor {
 public:
  Supervisor(Child& child, const Lease& lease, Signals& signals, Terminal& terminal,
             TerminationPolicy termination);

  /// Returns when the child has ended, with the status to exit with.
  int run();

  /// Whether a signal that asks to end was forwarded to the child.
  [[nodiscard]] bool asked_to_end() const noexcept { return asked_to_end_; }
  /// Whether it ended the command because of the lease.
  [[nodiscard]] bool lost() const noexcept { return kill_at_.has_value(); }

 private:
  void watch_lease(BootClock::time_point now);
  void begin_termination(BootClock::time_point now, BootClock::time_point over);
  void kill_child(BootClock::time_point now);
  /// Says which processes no signal will end.
  void report_survivors();
  void watch_reach(BootClock::time_point now);
  void watch_guard();
  [[nodiscard]] bool child_ended();
  void forward_signals();
  void follow_stop();
  void sleep_until(BootClock::time_point when);
  [[nodiscard]] BootClock::time_point next_look(BootClock::time_point now) const;
  [[nodiscard]] int conclude();

  Child& child_;
  const Lease& lease_;
  Signals& signals_;
  Terminal& terminal_;
  TerminationPolicy termination_;
  BootClock::duration longest_sleep_;
  FileDescriptor timer_;
  Event lost_;
  bool stops_with_child_ = false;
  bool asked_to_end_ = false;
  bool killed_ = false;
  /// After SIGKILL to the group, which ends the guard too.
  bool kill_tried_ = false;
  std::string survivors_;  ///< as last said
  bool survived_ = false;
  bool is_out_of_reach_ = false;
  /// To read all of /proc is no small thing: ever more rarely.
  BootClock::duration reach_pause_ = std::chrono::milliseconds(250);
  BootClock::time_point reach_due_ = BootClock::now() + reach_pause_;
  Child::Guard guard_ = Child::Guard::watches;
  /// Once the termination has begun: when the group is killed, or, where that did not reach all of
  /// it, killed again. A renewal that succeeds after that
  /// changes nothing, because the command may have ended half of its work already.
  std::optional<BootClock::time_point> kill_at_;
};

}  // namespace redlock::cli
