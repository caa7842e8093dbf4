// SPDX-License-Identifier: MIT
// What a peer's program in C++ reads and prints; README.md has it in words.
#pragma once

#include <chrono>
#include <cstdint>
#include <fcntl.h>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include <redlock/clock.hpp>

namespace peers {

using Clock = redlock::BootClock;
using std::chrono::milliseconds;

inline std::int64_t micros_since(Clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start).count();
}

/// run MS CALLERS SECTION_MS NAME GUARD
struct Run {
  explicit Run(std::istream& words) {
    int length = 0;
    int pause = 0;
    words >> length >> callers >> pause >> name >> guard;
    end = Clock::now() + milliseconds(length);
    section = milliseconds(pause);
  }
  [[nodiscard]] std::string name_of(std::size_t caller) const {
    return name.ends_with('-') ? name + std::to_string(caller) : name;
  }

  Clock::time_point end;
  std::size_t callers = 0;
  milliseconds section{0};
  std::string name;
  std::string guard;
};

/// What one caller had.
struct Calls {
  std::vector<std::int64_t> acquired;
  std::vector<std::int64_t> released;
  std::uint64_t in_time = 0;
  std::uint64_t failed = 0;
  std::uint64_t overlaps = 0;
  std::string error;

  void fail(const std::string& why) {
    ++failed;
    if (error.empty()) error = why;
  }
  void granted(Clock::time_point start, Clock::time_point end) {
    acquired.push_back(micros_since(start));
    if (Clock::now() < end) ++in_time;
  }
  /// Two that hold one lock meet at the guard's file.
  void hold(const Run& run) {
    const bool guarded = run.guard != "-";
    const int file = guarded ? ::open(run.guard.c_str(), O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;
    if (guarded && file < 0) ++overlaps;
    if (run.section.count() > 0) std::this_thread::sleep_for(run.section);
    if (file < 0) return;
    ::close(file);
    ::unlink(run.guard.c_str());
  }
};

inline nlohmann::json to_json(const std::vector<Calls>& all) {
  nlohmann::json sum = {{"acquire_us", nlohmann::json::array()},
                        {"release_us", nlohmann::json::array()},
                        {"grants", nlohmann::json::array()},
                        {"error", ""}};
  std::uint64_t failed = 0;
  std::uint64_t overlaps = 0;
  for (const Calls& one : all) {
    for (const auto time : one.acquired) sum["acquire_us"].push_back(time);
    for (const auto time : one.released) sum["release_us"].push_back(time);
    sum["grants"].push_back(one.in_time);
    failed += one.failed;
    overlaps += one.overlaps;
    if (sum["error"] == "") sum["error"] = one.error;
  }
  sum["failed"] = failed;
  sum["overlaps"] = overlaps;
  return sum;
}

inline void say(const nlohmann::json& what) {
  std::cout << what.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << std::endl;
}

/// How one call went: why it failed, or nothing.
inline void say_outcome(const char* word, Clock::time_point start, const std::string& error) {
  say({{word, error.empty()}, {"us", micros_since(start)}, {"error", error}});
}

/// Serves orders until there are no more. The peer has run(Run) -> vector<Calls>, and hold(NAME)
/// and release(), which return why they failed.
template <typename Peer>
void serve(Peer& peer, const std::string& version) {
  say({{"version", version}});
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string order;
    words >> order;
    const auto start = Clock::now();
    if (order == "run") {
      say(to_json(peer.run(Run(words))));
    } else if (order == "hold") {
      std::string name;
      words >> name;
      say_outcome("held", start, peer.hold(name));
    } else if (order == "release") {
      say_outcome("released", start, peer.release());
    }
  }
}

/// One thread for each caller. `make` returns a caller's own peer, with acquire(NAME) and release()
/// that return why they failed.
template <typename Make>
std::vector<Calls> run_on_threads(const Run& run, Make&& make) {
  std::vector<Calls> all(run.callers);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < run.callers; ++i) {
    threads.emplace_back([&, i] {
      Calls& calls = all[i];
      auto caller = make();
      const std::string name = run.name_of(i);
      auto start = Clock::now();
      while (Clock::now() < run.end) {
        if (const std::string error = caller.acquire(name); !error.empty()) {
          calls.fail(error);
          continue;
        }
        calls.granted(start, run.end);
        calls.hold(run);
        start = Clock::now();
        if (const std::string error = caller.release(); !error.empty()) {
          calls.fail(error);
        } else {
          calls.released.push_back(micros_since(start));
        }
        start = Clock::now();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return all;
}

}  // namespace peers
