// SPDX-License-Identifier: MIT
// How long this process did not run although it was to: of what the machine took from it nothing is
// promised.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include <redlock/clock.hpp>

namespace redlock::soak {

class Stalls {
 public:
  Stalls() : thread_([this](const std::stop_token& stop) { watch(stop); }) {}

  /// In all, until now.
  [[nodiscard]] std::chrono::milliseconds sum() const {
    return std::chrono::milliseconds(sum_.load());
  }

 private:
  void watch(const std::stop_token& stop) {
    constexpr std::chrono::milliseconds step(5);
    while (!stop.stop_requested()) {
      const auto before = BootClock::now();
      std::this_thread::sleep_for(step);
      const auto late = BootClock::now() - before - 2 * step;
      if (late > late.zero()) {
        sum_ += std::chrono::ceil<std::chrono::milliseconds>(late).count();
      }
    }
  }

  std::atomic<std::int64_t> sum_{0};
  std::jthread thread_;
};

}  // namespace redlock::soak
