// SPDX-License-Identifier: MIT
// The stage: starts every customer as a process of its own, receives what it says, tells it when to
// go on, stops and continues it. Whatever is said goes to the timeline.
#pragma once

#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

#include "timeline.hpp"

namespace seat_booking {

/// Something did not happen as told.
class StoryError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Stage {
 public:
  explicit Stage(Timeline& timeline) : timeline_(timeline) {}
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;
  /// Ends everybody who is still there.
  ~Stage();

  /// Starts this program again in the role of a customer.
  void enter(const std::string& who, std::vector<std::string> arguments);
  /// Waits until `who` says a line of one of these kinds; the answer is the kind. Kinds that were
  /// said before count, each line once.
  std::string await(const std::string& who, const std::vector<std::string>& kinds);
  /// The text of the line that await() found last.
  [[nodiscard]] const std::string& text() const { return text_; }
  /// Lets somebody go on who waits for a word.
  void tell(const std::string& who);
  void signal(const std::string& who, int number);
  /// Waits until the process has been stopped by a signal.
  void await_stopped(const std::string& who);
  /// Waits for the end, which must be a good one.
  void await_exit(const std::string& who);

 private:
  struct Said {
    std::string kind;
    std::string text;
  };
  struct Actor {
    pid_t pid = -1;
    int to = -1;
    int from = -1;
    std::string unread;
    std::vector<Said> said;
  };

  Actor& actor(const std::string& who);
  void listen();
  void read_from(const std::string& who, Actor& actor);
  void receive_line(const std::string& who, Actor& actor, std::string_view line);
  static void close_ends(Actor& actor);

  Timeline& timeline_;
  std::map<std::string, Actor> actors_;
  std::string text_;
};

}  // namespace seat_booking
