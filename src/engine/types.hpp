// SPDX-License-Identifier: MIT
// Names of the small values that the whole engine uses. Nothing here reads a clock:
// an Instant always comes in from outside.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <redlock/clock.hpp>

namespace redlock::engine {

using Instant = BootClock::time_point;
using Duration = BootClock::duration;
inline constexpr Instant never = Instant::max();

/// A node by its place in the client's list.
using NodeIndex = std::uint32_t;

using Token = std::uint64_t;
/// Tokens end here: Redis scripts count in doubles, which are exact below 2^53.
inline constexpr Token token_limit = Token{1} << 53;
/// No floor is above this; clocks in microseconds reach it in 2112.
inline constexpr Token floor_limit = token_limit / 2;
/// A fence that is further ahead of a quorum's fences and clocks is the damage of its node: some
/// 400 days in microseconds, and as many grants.
inline constexpr Token fence_lead = Token{1} << 45;

/// The number of a caller's request; chosen by the caller, never 0 and never used again.
using RequestId = std::uint64_t;
/// Larger numbers are requests between machines of the engine.
inline constexpr RequestId first_inner_request = RequestId{1} << 63;
/// One attempt and, if it is granted, its lease; chosen by the engine, never used again.
using GrantId = std::uint64_t;

/// Where machines that begin a grant get its id.
class GrantIds {
 public:
  GrantId next() { return ++last_; }

 private:
  GrantId last_ = 0;
};

/// 128 random bits, new for every attempt.
struct OwnerId {
  std::array<std::uint64_t, 2> bits{};
  friend bool operator==(const OwnerId&, const OwnerId&) = default;
};

/// 32 lower-case hexadecimal digits: the hash field on a node.
[[nodiscard]] std::array<char, 32> hex_digits(const OwnerId& owner);
[[nodiscard]] std::string to_hex(const OwnerId& owner);

/// Names are shared by every message of a grant.
using Name = std::shared_ptr<const std::string>;

/// Where the engine gets its random numbers; the driver's is the kernel's, the simulator's its
/// seed.
class RandomSource {
 public:
  virtual ~RandomSource() = default;
  virtual std::uint64_t next() = 0;
  /// Different every time, in every process of every copy of this machine.
  virtual OwnerId next_owner() {
    const std::uint64_t first = next();
    return {{first, next()}};
  }
};

/// Between the two, both included, each value as likely.
[[nodiscard]] Duration random_between(Duration least, Duration most, RandomSource& random);

}  // namespace redlock::engine
