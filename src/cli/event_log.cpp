// SPDX-License-Identifier: MIT
#include "cli/event_log.hpp"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdio>
#include <deque>
#include <fmt/core.h>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>

#include "cli/signals.hpp"
#include "cli/timestamp.hpp"

namespace redlock::cli {
namespace {

LogFormat chosen_format = LogFormat::text;

const char* name_of(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return "debug";
    case LogLevel::info:
      return "info";
    case LogLevel::warning:
      return "warning";
    case LogLevel::error:
      break;
  }
  return "error";
}

// One write, so that lines of several commands on one terminal do not mix.
void write_to_stderr(const std::string& line) {
  std::fwrite(line.data(), 1, line.size(), stderr);
}

std::string line_of(const LogEvent& event) {
  if (chosen_format == LogFormat::text) {
    const auto colour = event.level == LogLevel::error ? Colour::red : Colour::none;
    return fmt::format("{} {}\n", painted(colour, "redlock:", STDERR_FILENO),
                       printable(event.message));
  }
  const auto now = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  Json line{{"time", iso_8601(now)}, {"level", name_of(event.level)}, {"event", event.name}};
  line.update(event.fields);
  line["message"] = event.message;
  return to_line(line);
}

/// Lines on their way to stderr, in order.
class LineQueue {
 public:
  LineQueue() : writer_([this] { keep_writing(); }) { writer_.detach(); }

  void push(std::string line) {
    {
      const std::lock_guard lock(mutex_);
      // Nobody reads: what was there first says more.
      if (lines_.size() >= most_lines) {
        ++dropped_;
        return;
      }
      if (dropped_ > 0) {
        const auto count = std::exchange(dropped_, 0);
        lines_.push_back(line_of({LogLevel::warning,
                                  "dropped",
                                  fmt::format("{} events were left out, as nobody read", count),
                                  {{"count", count}}}));
      }
      lines_.push_back(std::move(line));
    }
    changed_.notify_all();
  }

  void drain() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return lines_.empty() && !is_writing_; });
  }

 private:
  static constexpr std::size_t most_lines = 1'000;

  void keep_writing() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return !lines_.empty(); });
      const auto line = std::move(lines_.front());
      lines_.pop_front();
      is_writing_ = true;
      lock.unlock();
      write_to_stderr(line);
      lock.lock();
      is_writing_ = false;
      if (lines_.empty()) changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> lines_;
  std::size_t dropped_ = 0;
  bool is_writing_ = false;
  std::thread writer_;  // last: it uses the others
};

// Never destroyed, because its thread ends with the process.
LineQueue* line_queue = nullptr;

}  // namespace

void add_log_option(CLI::App& app) {
  // choose_log_format() has read it.
  app.add_option_function<std::string>(
         "--log", [](const std::string& /*text*/) {},
         "What is said on stderr: text (default), or json: one object per line with time, level, "
         "event, what belongs to that, and message")
      ->check(CLI::IsMember({"text", "json"}))
      ->option_text("text|json");
}

void choose_log_format(const std::vector<std::string>& arguments) {
  for (std::size_t i = 1; i < arguments.size() && arguments[i] != "--"; ++i) {
    const bool apart = arguments[i] == "--log" && i + 1 < arguments.size();
    const auto& value = apart ? arguments[i + 1] : arguments[i];
    if (value == (apart ? "json" : "--log=json")) chosen_format = LogFormat::json;
  }
}

LogFormat log_format() noexcept {
  return chosen_format;
}

void note(const LogEvent& event) {
  if (line_queue != nullptr) return line_queue->push(line_of(event));
  write_to_stderr(line_of(event));
}

void log_in_background() {
  if (line_queue != nullptr) return;
  const SignalsKeptOut blocked;
  try {
    line_queue = new LineQueue;
  } catch (const std::system_error&) {
    // No thread is left: lines are written where they are made.
  }
}

void finish_log() {
  if (line_queue != nullptr) line_queue->drain();
}

}  // namespace redlock::cli
