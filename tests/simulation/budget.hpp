// SPDX-License-Identifier: MIT
// How many of the fixed seeds a test takes: all, or as many as there is time for.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace redlock::simulation {

/// With REDLOCK_SIMULATE_FOR=SECONDS in the environment, a test that has run for so long ends with
/// the seed that it is at, but has then judged `least` of them. Without it, it runs all.
class SeedBudget {
 public:
  explicit SeedBudget(std::uint64_t least) : least_(least) {
    const char* const seconds = std::getenv("REDLOCK_SIMULATE_FOR");
    if (seconds != nullptr) limit_ = std::chrono::seconds(std::stoul(seconds));
  }

  /// False once `done` seeds are enough.
  [[nodiscard]] bool goes_on(std::uint64_t done) const {
    return limit_ == std::chrono::seconds(0) || done < least_ || Clock::now() - start_ < limit_;
  }

 private:
  using Clock = std::chrono::steady_clock;

  std::uint64_t least_;
  std::chrono::seconds limit_{0};
  Clock::time_point start_ = Clock::now();
};

}  // namespace redlock::simulation
