// SPDX-License-Identifier: MIT
#include "cli/redlock/wait_progress.hpp"

#include <algorithm>
#include <cstddef>
#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <utility>

#include "cli/duration.hpp"
#include "cli/event_log.hpp"
#include "cli/screen.hpp"

namespace redlock::cli {
namespace {

using std::chrono::seconds;

constexpr seconds between_reasons(5);
constexpr seconds longest_pause(600);

std::string in_words(BootClock::duration time) {
  const auto s = std::chrono::round<seconds>(time).count();
  if (s < 120) return fmt::format("{}s", s);
  return s < 7200 ? fmt::format("{}m", s / 60) : fmt::format("{}h", s / 3600);
}

std::string in_words(std::optional<std::size_t> place) {
  if (!place) return {};
  return *place == 0 ? ", next in line" : fmt::format(", {} before it", *place);
}

}  // namespace

WaitProgress::WaitProgress(BootClock::time_point began)
    : began_(began), due_(began), reason_due_(began) {}

WaitProgress::~WaitProgress() {
  if (drawn_) write_to_stderr("\r\x1b[K");
}

// In the background the line would disturb the output of another program.
bool WaitProgress::on_terminal() const {
  return log_format() == LogFormat::text && can_redraw(STDERR_FILENO) &&
         ::tcgetpgrp(STDERR_FILENO) == ::getpgrp();
}

void WaitProgress::move_to(BootClock::time_point now, std::optional<std::size_t> place) {
  if (place == place_) return;
  place_ = place;
  if (drawn_ && on_terminal()) due_ = now;
}

Json WaitProgress::fields_of(BootClock::time_point now, const std::string& name,
                             std::optional<BootClock::time_point> until) const {
  const auto in_ms = [](BootClock::duration time) {
    return std::chrono::round<std::chrono::milliseconds>(time).count();
  };
  return {{"name", name},
          {"waited_ms", in_ms(now - began_)},
          {"left_ms", until ? Json(in_ms(*until - now)) : Json(nullptr)},
          {"before_it", place_ ? Json(*place_) : Json(nullptr)},
          {"reason", reason_}};
}

void WaitProgress::show(BootClock::time_point now, const std::string& name,
                        std::optional<std::string> reason,
                        std::optional<BootClock::time_point> until) {
  if (reason) {
    reason_ = std::move(*reason);
    reason_due_ = now + between_reasons;
  }
  // The first line says the whole time as it was asked for, to the millisecond.
  const bool begins = now - began_ < seconds(1);
  std::string how_long;
  if (begins && until) {
    const auto whole = std::chrono::round<std::chrono::milliseconds>(*until - began_);
    how_long = " up to " + format_duration(whole);
  } else if (!begins) {
    how_long = " since " + in_words(now - began_);
    if (until) how_long += " up to " + in_words(*until - now) + " more";
  }
  const auto line =
      fmt::format("waiting{} for {}{} ({})", how_long, name, in_words(place_), reason_);
  if (on_terminal()) {
    winsize size{};
    const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20;
    const std::size_t width = known ? size.ws_col - 1U : 79;
    // A line that wraps could not be written over.
    write_to_stderr("\r\x1b[K" + clipped("redlock: " + printable(line), width));
    drawn_ = true;
    due_ = now + seconds(1);
  } else {
    note({LogLevel::info, "waiting", line, fields_of(now, name, until)});
    due_ = now + pause_;
    pause_ = std::min(2 * pause_, longest_pause);
  }
}

}  // namespace redlock::cli
