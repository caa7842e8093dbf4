// SPDX-License-Identifier: MIT
// What the runs of the program `soak` have in common. Each is a subcommand with a file of its own.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fmt/format.h>
#include <functional>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <redlock/redlock.hpp>

#include "cluster/fleet.hpp"

namespace redlock::soak {

using namespace std::chrono_literals;
using cluster::Fleet;
using std::chrono::milliseconds;
using std::chrono::seconds;

inline constexpr std::size_t nodes = 5;

/// What was chosen on the command line; true if all was as promised.
using Run = std::function<bool()>;

/// They add their subcommands, which put what they do into `chosen`.
void add_holding(CLI::App& soak, Run& chosen);
void add_forgetting(CLI::App& soak, Run& chosen);
void add_rolling(CLI::App& soak, Run& chosen);
void add_replacing(CLI::App& soak, Run& chosen);
void add_load(CLI::App& soak, Run& chosen);
void add_returning(CLI::App& soak, Run& chosen);
void add_waiting(CLI::App& soak, Run& chosen);

/// Options for a length of time, of which the plan has the number of seconds.
CLI::Option* add_length(CLI::App& run, int& length, const std::string& help);

/// Prints at once, so that no process that is forked later prints it again.
template <typename... Args>
void say(fmt::format_string<Args...> form, Args&&... args) {
  fmt::print(form, std::forward<Args>(args)...);
  std::fflush(stdout);
}

inline double seconds_since(BootClock::time_point start) {
  return std::chrono::duration<double>(BootClock::now() - start).count();
}

/// Throws if the options are refused. $REDLOCK_TRACE names a file for its messages.
Client start_client(ClientOptions options);

/// Makes a set of its nodes, with this longest lease.
void adopt(const Fleet& fleet, milliseconds max_lease);

/// Looks every two milliseconds, and throws if it is not so in time.
void await(const std::function<bool()>& is_so, milliseconds patience, const char* otherwise);

/// Of locks and lines, on all nodes.
std::size_t keys_left(const Fleet& fleet);

/// That the node has accepted since its start, by its INFO stats.
std::uint64_t connections_in(const std::string& info);

/// Where every name that is no address leads from now on, such as "127.0.0.2": the C library's
/// look-up is replaced for the whole program.
void set_address(const std::string& address);
std::size_t look_ups();

template <typename Number>
void raise(std::atomic<Number>& largest, Number to) {
  Number known = largest;
  while (known < to && !largest.compare_exchange_weak(known, to)) {
  }
}

class Random {
 public:
  explicit Random(std::uint32_t seed) : engine_(seed) {}
  std::size_t below(std::size_t end) {
    return std::uniform_int_distribution<std::size_t>(0, end - 1)(engine_);
  }
  milliseconds below(milliseconds end) {
    return milliseconds(below(static_cast<std::size_t>(end.count())));
  }
  std::uint32_t seed() { return static_cast<std::uint32_t>(engine_()); }

 private:
  std::mt19937 engine_;
};

/// True every so often.
class Every {
 public:
  Every(milliseconds period, BootClock::time_point first) : period_(period), next_(first) {}
  bool is_due() {
    if (BootClock::now() < next_) return false;
    next_ = std::max(next_ + period_, BootClock::now() - period_);
    return true;
  }

 private:
  milliseconds period_;
  BootClock::time_point next_;
};

/// How long this process did not run although it was to: of what the machine took from it nothing
/// is promised.
class Stalls {
 public:
  Stalls() : thread_([this](const std::stop_token& stop) { watch(stop, sum_); }) {}

  /// In all, until now.
  [[nodiscard]] milliseconds sum() const { return milliseconds(sum_.load()); }

  static void watch(const std::stop_token& stop, std::atomic<std::int64_t>& sum) {
    constexpr milliseconds step(5);
    while (!stop.stop_requested()) {
      const auto before = BootClock::now();
      std::this_thread::sleep_for(step);
      const auto late = BootClock::now() - before - 2 * step;
      if (late > late.zero()) sum += std::chrono::ceil<milliseconds>(late).count();
    }
  }

 private:
  std::atomic<std::int64_t> sum_{0};
  std::jthread thread_;
};

}  // namespace redlock::soak
