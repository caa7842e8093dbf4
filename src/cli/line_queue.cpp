// SPDX-License-Identifier: MIT
#include "cli/line_queue.hpp"

#include <cerrno>
#include <poll.h>
#include <string_view>
#include <thread>
#include <unistd.h>
#include <utility>

#include "cli/signals.hpp"

namespace redlock::cli {

// Not through stdio: its lock would be held for as long as nothing reads, and the flush at the end
// of the process would wait for that lock.
void write_whole(int fd, const std::string& text) {
  std::string_view rest = text;
  while (!rest.empty()) {
    const auto written = ::write(fd, rest.data(), rest.size());
    if (written > 0) {
      rest.remove_prefix(static_cast<std::size_t>(written));
    } else if (written < 0 && errno == EAGAIN) {
      // Another program that has the descriptor set it to non-blocking.
      pollfd room{fd, POLLOUT, 0};
      ::poll(&room, 1, -1);
    } else if (written == 0 || errno != EINTR) {
      return;
    }
  }
}

LineQueue::LineQueue(int fd, std::function<std::string(std::size_t)> count_line)
    : fd_(fd), count_line_(std::move(count_line)) {
  const SignalsKeptOut blocked;
  std::thread([this] { keep_writing(); }).detach();
}

void LineQueue::push(std::string line) {
  {
    const std::lock_guard lock(mutex_);
    if (lines_.size() >= most_lines) {
      ++dropped_;
      return;
    }
    if (dropped_ > 0) push_count();
    lines_.push_back(std::move(line));
  }
  changed_.notify_all();
}

void LineQueue::push_count() {
  lines_.push_back(count_line_(std::exchange(dropped_, 0)));
}

void LineQueue::drain(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, patience, [this] { return lines_.empty() && !is_writing_; });
}

void LineQueue::keep_writing() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return !lines_.empty(); });
    const auto line = std::move(lines_.front());
    lines_.pop_front();
    is_writing_ = true;
    lock.unlock();
    write_whole(fd_, line);
    lock.lock();
    is_writing_ = false;
    if (lines_.empty() && dropped_ > 0) push_count();
    if (lines_.empty()) changed_.notify_all();
  }
}

}  // namespace redlock::cli
