// SPDX-License-Identifier: MIT
// The stage: starts every customer as a process of its own, receives its lines, tells it when to go
// on, stops and continues it. Every line goes to the timeline.
#pragma once

#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

#include "timeline.hpp"

namespace seat_booking {

/// A step did not happen as the story tells it.
class StoryError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Stage {
 public:
  explicit Stage(Timeline& timeline) : timeline_(timeline) {}
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;
  /// Ends all customers that still run.
  ~Stage();

  /// Starts this program again in the role of a customer.
  void enter(const std::string& who, std::vector<std::string> arguments);
  /// Waits until `who` sends a line of one of these kinds; the result is the kind. Earlier lines
  /// count, each once.
  std::string await(const std::string& who, const std::vector<std::string>& kinds);
  /// The text of the line that await() found last.
  [[nodiscard]] const std::string& text() const { return text_; }
  /// Lets a customer go on who waits for a word.
  void tell(const std::string& who);
  void signal(const std::string& who, int number);
  /// Waits until the process has been stopped by a signal.
  void await_stopped(const std::string& who);
  /// Waits for the end of the process, which must succeed.
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
