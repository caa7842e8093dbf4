// SPDX-License-Identifier: MIT
#include "client/stderr_warning.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <poll.h>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <unistd.h>

#include <redlock/clock.hpp>

#include "client/fork.hpp"
#include "client/sentence.hpp"
#include "net/signals.hpp"

namespace redlock::client {

namespace {

constexpr BootClock::duration pause_between = std::chrono::seconds(10);
constexpr std::size_t longest_sentence = 400;
constexpr std::size_t longest_count = 60;
static_assert(longest_sentence + longest_count <= PIPE_BUF);

/// Shared by all clients: the program has one stderr.
class Pace {
 public:
  /// Whether a line is due now. The child of a fork has had none, whatever its parent printed.
  bool take(BootClock::time_point now) noexcept {
    const std::uint64_t ours = process_generation() % generations;
    const auto in_ms = [](BootClock::time_point time) {
      return static_cast<std::uint64_t>(
          std::chrono::floor<std::chrono::milliseconds>(time.time_since_epoch()).count());
    };
    auto next = next_.load();
    const bool is_first = next % generations != ours;
    if (is_first) left_out_ = 0;
    const bool is_due = is_first || in_ms(now) >= next / generations;
    if (!is_due ||
        !next_.compare_exchange_strong(next, in_ms(now + pause_between) * generations + ours)) {
      left_out_.fetch_add(1);
      return false;
    }
    return true;
  }
  /// Since this was asked last.
  unsigned left_out() noexcept { return left_out_.exchange(0); }

 private:
  static constexpr std::uint64_t generations = 1'024;
  /// When the next line is due, in ms, and of which generation of the process: in one value, as two
  /// threads may come at once.
  std::atomic<std::uint64_t> next_{0};
  std::atomic<unsigned> left_out_{0};
};

constinit Pace pace;

/// Dropped if there is no room for it now. A pipe that can be written to has room for a line,
/// unless another thread fills it in that moment.
void write_at_once(std::string_view line) noexcept {
  // The line, which the program did not ask for, must not end the program when a reader has gone,
  // nor stop it in the background of a terminal (SIGTTOU).
  const net::NoBrokenPipe not_ended;
  const net::AllSignalsBlocked not_stopped;
  if (::send(STDERR_FILENO, line.data(), line.size(), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) return;
  if (errno != ENOTSOCK) return;
  pollfd state{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  if (::poll(&state, 1, 0) != 1 || state.revents != POLLOUT) return;
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
}

void warn(const std::string& sentence) {
  if (!pace.take(BootClock::now())) return;
  std::string line = "redlock: " + sentence;
  if (line.size() > longest_sentence) {
    auto end = longest_sentence - 3;
    while ((static_cast<unsigned char>(line[end]) & 0xC0U) == 0x80U) --end;  // within a character
    line.replace(end, std::string::npos, "...");
  }
  if (const auto left_out = pace.left_out(); left_out > 0) {
    line += " (and " + std::to_string(left_out) + " more warnings before)";
  }
  write_at_once(line + "\n");
}

}  // namespace

void warn_of_loss(std::string_view name, LossReason reason) noexcept {
  try {
    warn("the lease of " + in_quotes(name) + " was lost (" + to_string(reason) +
         ") and nothing in the program listens for that: tie the work to lost(), or set "
         "ClientOptions::observer");
  } catch (const std::exception&) {
    // No memory is left for a warning.
  }
}

void warn_of_failure(const char* sentence) noexcept {
  std::array<char, longest_sentence> line{};
  const int size = std::snprintf(line.data(), line.size(), "redlock: %s\n", sentence);
  write_at_once({line.data(), std::min(static_cast<std::size_t>(size), line.size() - 1)});
}

void warn_of_release(const Error& error) noexcept {
  try {
    const bool late = error.code == Errc::lost;
    warn("unlock: " + error.message + (late ? ": stop the work when lost() is requested" : ""));
  } catch (const std::exception&) {
    // As above.
  }
}

}  // namespace redlock::client
