// SPDX-License-Identifier: MIT
// Lines on their way to a descriptor that another program may read or not. A separate thread writes
// them, so that a stopped reader holds up no other thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <string>

namespace redlock::cli {

/// Never destroyed: its thread writes until the process ends. From any thread.
class LineQueue {
 public:
  /// The most lines that wait; later lines are dropped, because the first ones say more.
  static constexpr std::size_t most_lines = 1'000;

  /// `count_line` makes the line that says how many were dropped. Throws std::system_error if there
  /// is no thread for it.
  LineQueue(int fd, std::function<std::string(std::size_t)> count_line);

  void push(std::string line);
  /// Waits until everything has been written, but no longer than this.
  void drain(std::chrono::milliseconds patience);

 private:
  void keep_writing();
  void push_count();

  const int fd_;
  const std::function<std::string(std::size_t)> count_line_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> lines_;
  std::size_t dropped_ = 0;
  bool is_writing_ = false;
};

/// In one write if the descriptor takes it, so that lines of several programs do not mix. Returns
/// when the line has been taken, or never will be.
void write_whole(int fd, const std::string& text);

}  // namespace redlock::cli
