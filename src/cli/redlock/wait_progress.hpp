// SPDX-License-Identifier: MIT
// Shows a wait for a lock: on a terminal one line that is refreshed every second and goes away with
// the wait; elsewhere a line at once and then ever more rarely.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <redlock/clock.hpp>

#include "cli/output.hpp"

namespace redlock::cli {

class WaitProgress {
 public:
  explicit WaitProgress(BootClock::time_point began);
  /// Clears the line.
  ~WaitProgress();
  WaitProgress(const WaitProgress&) = delete;
  WaitProgress& operator=(const WaitProgress&) = delete;

  /// When there is something to show next.
  [[nodiscard]] BootClock::time_point due() const noexcept { return due_; }
  /// Whether it is also time to find out anew who holds the lock: every few seconds at most.
  [[nodiscard]] bool wants_reason(BootClock::time_point now) const noexcept {
    return now >= reason_due_;
  }

  /// How many waiters are before this one. On a terminal that is shown at once, elsewhere with the
  /// next line.
  void move_to(BootClock::time_point now, std::optional<std::size_t> place);

  /// Shows the reason of the wait, and how much longer it may last (nothing: for ever). `reason`
  /// replaces the last reason, if it is given.
  void show(BootClock::time_point now, const std::string& name, std::optional<std::string> reason,
            std::optional<BootClock::time_point> until);

 private:
  [[nodiscard]] bool on_terminal() const;
  [[nodiscard]] Json fields_of(BootClock::time_point now, const std::string& name,
                               std::optional<BootClock::time_point> until) const;

  BootClock::time_point began_;
  BootClock::time_point due_;
  BootClock::time_point reason_due_;
  std::chrono::seconds pause_{5};
  std::string reason_;
  std::optional<std::size_t> place_;
  bool drawn_ = false;
};

}  // namespace redlock::cli
