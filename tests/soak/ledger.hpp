// SPDX-License-Identifier: MIT
// Who held which lock, and when: written by several processes into shared memory, as they see it,
// and judged afterwards without asking the library.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include <redlock/clock.hpp>

namespace redlock::soak {

inline constexpr std::size_t most_workers = 16;
inline constexpr std::size_t nodes = 5;
inline constexpr std::size_t most_holds = 1'000'000;

/// A lease was valid at both moments, and so between them.
struct Hold {
  std::size_t name = 0;
  BootClock::time_point from;
  BootClock::time_point to;
  std::uint64_t token = 0;
};

struct Ledger {
  std::atomic<bool> ended;
  std::atomic<std::uint64_t> renewals;
  std::atomic<std::uint64_t> failed_renewals;
  std::atomic<std::uint64_t> lost;
  std::atomic<std::uint64_t> given_up;        // acquisitions that waited in vain
  std::atomic<std::int64_t> longest_wait_ms;  // of an acquisition that was granted
  /// When the last attempt began in which this worker counted the vote of this node.
  std::array<std::array<std::atomic<BootClock::rep>, nodes>, most_workers> voted;
  std::atomic<std::size_t> hold_count;
  std::array<Hold, most_holds> holds;

  /// One of this process and all that it forks. Zero in every byte.
  static Ledger& make_shared();

  void write(const Hold& hold);
  /// The same while it lasts: `to` may be put off, until the lease is given back or its process is
  /// killed. Null if there is no room.
  Hold* open(const Hold& hold);
};

struct Judgement {
  std::size_t overlaps = 0;        // of two holds of one name
  std::size_t falling_tokens = 0;  // a later hold with a token that is not larger
  std::size_t longer_than_a_second = 0;
};

/// Throws if there were more holds than could be written.
Judgement judge(const Ledger& ledger);

}  // namespace redlock::soak
