// SPDX-License-Identifier: MIT
// The simulator's own random numbers: splitmix64 (Steele, Lea, Flood), integers only, so that one
// seed means one run with every compiler and library. For the same reason no expression may draw
// twice: compilers differ in what they evaluate first.
#pragma once

#include <cassert>
#include <cstdint>
#include <span>

#include "engine/types.hpp"

namespace redlock::simulation {

class Random final : public engine::RandomSource {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() override {
    state_ += 0x9e3779b97f4a7c15U;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  }

  /// 0 to n-1.
  std::uint32_t below(std::uint32_t n) {
    assert(n > 0);
    return static_cast<std::uint32_t>(((next() >> 32) * n) >> 32);
  }
  /// True this many times in a thousand.
  bool chance(std::uint32_t per_mille) { return below(1000) < per_mille; }

  /// From low to high, both possible.
  engine::Duration between(engine::Duration low, engine::Duration high) {
    const auto span = static_cast<std::uint64_t>((high - low).count()) + 1;
    return low + engine::Duration(static_cast<engine::Duration::rep>(next() % span));
  }
  std::int32_t between(std::int32_t low, std::int32_t high) {
    return low + static_cast<std::int32_t>(below(static_cast<std::uint32_t>(high - low) + 1));
  }
  /// Short durations as often as long ones: every halving from `high` down is equally likely.
  engine::Duration up_to(engine::Duration high) {
    const engine::Duration length = between(high / 4096, high);  // in this order everywhere
    return length / (1 << below(12));
  }

  template <typename T>
  const T& pick(std::span<const T> from) {
    return from[below(static_cast<std::uint32_t>(from.size()))];
  }
  template <typename T, std::size_t n>
  const T& pick(const T (&from)[n]) {
    return from[below(static_cast<std::uint32_t>(n))];
  }

 private:
  std::uint64_t state_;
};

}  // namespace redlock::simulation
