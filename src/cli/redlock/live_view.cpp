// SPDX-License-Identifier: MIT
#include "cli/redlock/live_view.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <climits>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <fmt/core.h>
#include <map>
#include <poll.h>
#include <string_view>
#include <thread>
#include <unistd.h>

#include <redlock/clock.hpp>

#include "cli/duration.hpp"
#include "cli/exit_code.hpp"
#include "cli/file_descriptor.hpp"
#include "cli/screen.hpp"
#include "cli/signals.hpp"
#include "cli/timestamp.hpp"

namespace redlock::cli {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds shortest_interval{100};
constexpr auto* default_watch = "--watch=2s";

/// Which nodes stopped answering since the look before, and which came back.
class Changes {
 public:
  /// Lines without a time.
  std::vector<std::string> since_last(const Look& look) {
    std::vector<std::string> lines;
    for (const auto& [node, trouble] : look.nodes) {
      const auto [known, is_new] = silent_.try_emplace(node, !trouble.empty());
      const bool was_silent = std::exchange(known->second, !trouble.empty());
      if (is_new || was_silent == known->second) continue;
      lines.push_back(node + (was_silent ? painted(Colour::green, " answers again")
                                         : painted(Colour::red, " went away: ") + trouble));
    }
    return lines;
  }

 private:
  std::map<std::string, bool> silent_;
};

/// A block of lines that is drawn over the one before it. It hides no cursor and changes no setting
/// of the terminal, so that nothing has to be restored, however the command ends. Nothing is
/// cleared first, so that nothing flickers.
class ScreenBlock {
 public:
  /// The text to write for these lines.
  std::string drawn(const std::string& text) {
    const auto size = screen_size();
    auto lines = lines_of(text);
    const std::size_t most = std::max<std::size_t>(size.lines, 3) - 1;
    if (lines.size() > most) {
      const auto hidden = lines.size() - most + 1;
      lines.resize(most - 1);
      lines.push_back(fmt::format("… {} more lines; make the terminal higher", hidden));
    }
    std::string out;
    // The drawn lines have moved: begin on an empty screen.
    const bool has_moved =
        drawn_ > 0 && (size.columns != size_.columns || size.lines != size_.lines);
    if (has_moved) out += "\x1b[H\x1b[2J";
    if (drawn_ > 0 && !has_moved) out += fmt::format("\r\x1b[{}A", drawn_);
    // A line that wraps could not be drawn over.
    const auto width = std::max<std::size_t>(size.columns, 2) - 1;
    for (const auto& line : lines) out += clipped(line, width) + "\x1b[K\n";
    drawn_ = lines.size();
    size_ = size;
    return out + "\x1b[J";
  }

  /// Other output has come meanwhile: the next block is drawn below it.
  void leave() { drawn_ = 0; }

 private:
  static std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    for (std::size_t begin = 0; begin < text.size();) {
      const auto end = std::min(text.find('\n', begin), text.size());
      lines.push_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
    return lines;
  }

  std::size_t drawn_ = 0;  // lines; the cursor is in the one below
  ScreenSize size_;        // when it was drawn
};

/// Whether another program uses the terminal behind stdout, and would be drawn over.
bool is_in_background() {
  const pid_t in_front = ::tcgetpgrp(STDOUT_FILENO);
  return in_front > 0 && in_front != ::getpgrp();
}

class LiveView {
 public:
  LiveView(const Signals& signals, std::function<Look()> look, Format format, milliseconds interval)
      : signals_(signals),
        look_(std::move(look)),
        format_(format),
        interval_(interval),
        redraws_(format == Format::table && can_redraw(STDOUT_FILENO)) {}
  ~LiveView() {
    if (worker_.joinable()) worker_.join();
  }
  LiveView(const LiveView&) = delete;
  LiveView& operator=(const LiveView&) = delete;

  [[noreturn]] void run() {
    for (;;) {
      take_signals();
      if (!worker_.joinable() && BootClock::now() >= due_) begin_look();
      std::array<pollfd, 2> waiting{{{signals_.fd(), POLLIN, 0}, {done_.fd(), POLLIN, 0}}};
      ::poll(waiting.data(), waiting.size(), until_next());
      if ((waiting[1].revents & POLLIN) != 0) finish_look();
    }
  }

 private:
  // On a thread of its own: nodes that hang must not keep Ctrl-C waiting.
  void begin_look() {
    due_ = BootClock::now() + interval_;
    worker_ = std::thread([this] {
      try {
        seen_ = look_();
      } catch (...) {
        failure_ = std::current_exception();
      }
      done_.notify();
    });
  }

  void finish_look() {
    done_.clear();
    worker_.join();
    if (failure_) std::rethrow_exception(failure_);
    shown_ = std::move(seen_);
    time_ = std::chrono::floor<milliseconds>(std::chrono::system_clock::now());
    for (auto& line : changes_.since_last(shown_)) {
      news_.push_back(fmt::format("{}  {}", in_utc(time_), line));
    }
    show();
  }

  void show() {
    if (format_ == Format::json) {
      Json line{{"time", iso_8601(time_)}};
      line.update(shown_.json);
      return write(to_line(line));
    }
    std::string news;
    for (const auto& line : news_) news += line + "\n";
    if (redraws_) {
      while (news_.size() > most_news) news_.pop_front();
      if (is_in_background()) return block_.leave();
      write(block_.drawn(
          fmt::format("{}, every {}; Ctrl-C ends it\n", in_utc(time_), format_duration(interval_)) +
          shown_.text() + news));
    } else {
      write(in_utc(time_) + "\n" + shown_.text() + news + "\n");
      news_.clear();
    }
  }

  void take_signals() {
    hear_signals();
    while (std::exchange(is_stale_, false)) {
      if (redraws_ && time_ != WallTime{}) show();
    }
  }

  /// Ends the command if a signal asks for that.
  void hear_signals() {
    while (const auto signal = signals_.take()) {
      if (asks_to_end(*signal)) end_by(*signal);
      if (*signal == SIGCONT) block_.leave();
      is_stale_ = is_stale_ || *signal == SIGCONT || *signal == SIGWINCH;
    }
  }

  [[noreturn]] void end_by(int signal) const {
    pollfd room{STDOUT_FILENO, POLLOUT, 0};
    if (redraws_ && ::poll(&room, 1, 0) == 1) {
      // Without the terminal's "^C". On a terminal that is gone (SIGHUP) this does no harm.
      constexpr std::string_view erased = "\r\x1b[K";
      [[maybe_unused]] const auto count = ::write(STDOUT_FILENO, erased.data(), erased.size());
    }
    leave_at_once(exit_by_signal + signal);
  }

  /// In pieces, each when there is room for it: a reader that has stopped reading must not keep a
  /// signal waiting.
  void write(std::string_view text) {
    while (!text.empty()) {
      await_room();
      print(text.substr(0, PIPE_BUF));
      text.remove_prefix(std::min<std::size_t>(text.size(), PIPE_BUF));
    }
  }

  void await_room() {
    std::array<pollfd, 2> waiting{{{STDOUT_FILENO, POLLOUT, 0}, {signals_.fd(), POLLIN, 0}}};
    do {
      hear_signals();
    } while (::poll(waiting.data(), waiting.size(), -1) < 0 || waiting[0].revents == 0);
  }

  [[nodiscard]] int until_next() const {
    if (worker_.joinable()) return -1;
    const auto left = std::chrono::ceil<milliseconds>(due_ - BootClock::now());
    return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 3'600'000));
  }

  static constexpr std::size_t most_news = 5;

  const Signals& signals_;
  std::function<Look()> look_;
  Format format_;
  milliseconds interval_;
  bool redraws_;
  Event done_;
  Look seen_;  // of the worker, until it is done
  std::exception_ptr failure_;
  Look shown_;
  WallTime time_{};
  Changes changes_;
  std::deque<std::string> news_;
  ScreenBlock block_;
  bool is_stale_ = false;  // the terminal was resized, or other programs wrote to it
  BootClock::time_point due_ = BootClock::now();
  std::thread worker_;
};

milliseconds parse_interval(const std::string& text) {
  const auto interval = parse_duration("--watch", text, Zero::allowed, Forever::refused);
  if (interval >= shortest_interval) return interval;
  throw CLI::ValidationError(
      "--watch", fmt::format("{} is too often: 100ms is the least, 2s the default", text));
}

}  // namespace

LookOptions::LookOptions(CLI::App& app) {
  add_format_option(app, format_);
  app.add_option_function<std::string>(
         "--watch", [this](const std::string& text) { interval_ = parse_interval(text); },
         "Look again at this interval (default 2s, at least 100ms), until a signal ends "
         "it")
      ->option_text("[INTERVAL]");
}

int LookOptions::show(const std::function<std::function<Look()>()>& prepare) const {
  if (!interval_) {
    const auto look = prepare()();
    print(format_ == Format::json ? to_text(look.json) : look.text());
    return look.status;
  }
  const Signals signals;
  LiveView(signals, prepare(), format_, *interval_).run();
}

void complete_watch_option(std::vector<std::string>& arguments) {
  for (std::size_t i = 1; i < arguments.size() && arguments[i] != "--"; ++i) {
    if (arguments[i] != "--watch") continue;
    const bool has_value = i + 1 < arguments.size() && !arguments[i + 1].empty() &&
                           std::isdigit(static_cast<unsigned char>(arguments[i + 1][0])) != 0;
    if (!has_value) arguments[i] = default_watch;
  }
}

}  // namespace redlock::cli
