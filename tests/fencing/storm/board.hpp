// SPDX-License-Identifier: MIT
// What the worker processes of the storm and its supervisor tell each other, in shared memory: a
// process that is stopped cannot answer questions.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include <redlock/clock.hpp>

namespace redlock::storm {

inline constexpr std::size_t counters = 3;
inline constexpr std::size_t most_workers = 16;
inline constexpr std::size_t most_grants = 200'000;

/// One grant: between `began` (the attempt's first message) and `returned` nobody can say when.
struct Grant {
  BootClock::time_point began;
  BootClock::time_point returned;
  std::uint64_t token = 0;
};

struct Tally {
  std::atomic<std::uint64_t> written;   // acknowledged by the resource
  std::atomic<std::uint64_t> refused;   // writes turned away by the stamp
  std::atomic<std::uint64_t> not_open;  // turned away before they had read anything
};

struct Board {
  std::atomic<bool> ended;
  std::atomic<std::uint64_t> rounds;  // all counters incremented under one grant
  std::atomic<std::uint64_t> failed_acquires;
  std::atomic<std::uint64_t> largest_token;
  std::array<std::atomic<std::uint64_t>, most_workers> inside;  // whose token is at work; 0: nobody
  std::array<Tally, counters> tallies;
  std::atomic<std::size_t> grant_count;
  std::array<Grant, most_grants> grants;

  /// One of this process and all that it forks. Zero in every byte.
  static Board& make_shared();

  void enter(std::size_t worker, const Grant& grant);
  void leave(std::size_t worker) { inside[worker] = 0; }
};

/// Whether the tokens are unique, and larger than each that was returned before their attempt
/// began. An empty text, or what is wrong.
const char* wrong_with_history(const Board& board);

}  // namespace redlock::storm
