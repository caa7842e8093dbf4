// SPDX-License-Identifier: MIT
// Times of one thing, measured in turns with those of another, so that noise hits both.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

#include <redlock/clock.hpp>

namespace bench {

class Samples {
 public:
  /// Does it and notes how long it took.
  template <typename Work>
  void time(Work&& work) {
    const auto start = redlock::BootClock::now();
    work();
    add(redlock::BootClock::now() - start);
  }
  void add(std::chrono::nanoseconds time) { times_.push_back(time); }

  [[nodiscard]] bool empty() const { return times_.empty(); }
  [[nodiscard]] std::size_t size() const { return times_.size(); }
  /// In microseconds.
  [[nodiscard]] double median() const { return quantile(0.5); }
  [[nodiscard]] double quantile(double part) const {
    std::vector<std::chrono::nanoseconds> sorted = times_;
    std::ranges::sort(sorted);
    const auto last = static_cast<double>(sorted.size() - 1);
    const auto nearest = sorted[static_cast<std::size_t>(part * last + 0.5)];
    return std::chrono::duration<double, std::micro>(nearest).count();
  }

 private:
  std::vector<std::chrono::nanoseconds> times_;
};

}  // namespace bench
