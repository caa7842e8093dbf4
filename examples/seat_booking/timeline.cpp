// SPDX-License-Identifier: MIT
#include "timeline.hpp"

#include <algorithm>
#include <cstdio>
#include <fmt/format.h>
#include <functional>
#include <unistd.h>

namespace seat_booking {

namespace {

constexpr auto moment = std::chrono::milliseconds(20);
constexpr int grey = 90;

/// The same colour for the same person, one of six that any terminal has.
int colour_of(const std::string& who) {
  return 31 + static_cast<int>(std::hash<std::string>{}(who) % 6);
}

}  // namespace

Timeline::Timeline() : start_(redlock::BootClock::now()), colour_(::isatty(STDOUT_FILENO) == 1) {}

void Timeline::add(Instant when, const std::string& who, const std::string& what) {
  held_back_.push_back({when, who, what});
}

void Timeline::heading(const std::string& what) {
  flush();
  fmt::print("\n{}\n", colour_ ? "\x1b[1m" + what + "\x1b[0m" : what);
  std::fflush(stdout);
}

void Timeline::print_settled() {
  std::ranges::stable_sort(held_back_, {}, &Line::when);
  const auto settled = redlock::BootClock::now() - moment;
  const auto end = std::ranges::upper_bound(held_back_, settled, {}, &Line::when);
  std::for_each(held_back_.begin(), end, [this](const Line& line) { print(line); });
  held_back_.erase(held_back_.begin(), end);
  std::fflush(stdout);
}

void Timeline::flush() {
  std::ranges::stable_sort(held_back_, {}, &Line::when);
  for (const Line& line : held_back_) print(line);
  held_back_.clear();
  std::fflush(stdout);
}

void Timeline::print(const Line& line) const {
  const std::chrono::duration<double> elapsed = line.when - start_;
  const std::string who = fmt::format("{:<9}", line.who.empty() ? "--" : line.who);
  fmt::print("{}  {} {}\n", coloured(fmt::format("{:8.3f} s", elapsed.count()), grey),
             coloured(who, line.who.empty() ? grey : colour_of(line.who)), line.what);
}

std::string Timeline::coloured(const std::string& text, int colour) const {
  return colour_ ? fmt::format("\x1b[{}m{}\x1b[0m", colour, text) : text;
}

}  // namespace seat_booking
