// SPDX-License-Identifier: MIT
// The printed output: one line for each event, in the order of events, with the seconds since the
// start. Lines come from several processes and are held back for a moment, so that they can be
// sorted.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <redlock/clock.hpp>

namespace seat_booking {

class Timeline {
 public:
  using Instant = redlock::BootClock::time_point;

  /// Colour only if standard output is a terminal.
  Timeline();

  void add(Instant when, const std::string& who, const std::string& what);
  /// Now, by the stage itself.
  void add(const std::string& what) { add(redlock::BootClock::now(), "", what); }
  void heading(const std::string& what);

  /// Prints the lines that are older than a moment.
  void print_settled();
  /// Prints everything.
  void flush();

 private:
  struct Line {
    Instant when;
    std::string who;
    std::string what;
  };
  void print(const Line& line) const;
  [[nodiscard]] std::string coloured(const std::string& text, int colour) const;

  Instant start_;
  bool colour_;
  std::vector<Line> held_back_;
};

}  // namespace seat_booking
