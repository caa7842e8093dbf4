// SPDX-License-Identifier: MIT
// How often each length of time was measured, in little memory: 128 classes for each doubling, so
// that what is read from it is at most 0.8 % too long. The classes are those of HdrHistogram, which
// Debian has for Go and Java only.
#pragma once

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace redlock::cli {

class Histogram {
 public:
  /// A negative time counts as zero.
  void record(std::chrono::nanoseconds time) {
    time = std::max(time, std::chrono::nanoseconds::zero());
    const auto at = index_of(static_cast<std::uint64_t>(time.count()));
    if (at >= counts_.size()) counts_.resize(at + 1);
    ++counts_[at];
    ++count_;
    sum_ += time;
    max_ = std::max(max_, time);
  }

  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  /// Exact; zero if nothing was recorded.
  [[nodiscard]] std::chrono::nanoseconds max() const noexcept { return max_; }
  [[nodiscard]] std::chrono::nanoseconds mean() const noexcept {
    return count_ == 0 ? max_ : sum_ / static_cast<std::int64_t>(count_);
  }

  /// The time that this part of all (0 to 1) did not exceed; zero if nothing was recorded.
  [[nodiscard]] std::chrono::nanoseconds quantile(double part) const {
    const auto wanted = std::ceil(part * static_cast<double>(count_));
    auto left = std::clamp<std::uint64_t>(static_cast<std::uint64_t>(std::max(wanted, 1.0)), 1,
                                          std::max<std::uint64_t>(count_, 1));
    for (std::size_t at = 0; at < counts_.size(); ++at) {
      if (counts_[at] >= left) {
        return std::min(max_, std::chrono::nanoseconds(largest_in(at)));
      }
      left -= counts_[at];
    }
    return max_;
  }

 private:
  static constexpr int bits = 7;

  // Below 256 each nanosecond is a class; above, the eight leading bits are.
  static std::size_t index_of(std::uint64_t value) {
    const int shift = std::max(0, static_cast<int>(std::bit_width(value)) - bits - 1);
    return (static_cast<std::size_t>(shift) << bits) + static_cast<std::size_t>(value >> shift);
  }
  static std::int64_t largest_in(std::size_t at) {
    const auto octave = at >> bits;
    const auto shift = octave > 0 ? octave - 1 : 0;
    const auto leading = at - (shift << bits);
    return static_cast<std::int64_t>(((leading + 1) << shift) - 1);
  }

  std::vector<std::uint64_t> counts_;
  std::uint64_t count_ = 0;
  std::chrono::nanoseconds sum_{0};
  std::chrono::nanoseconds max_{0};
};

}  // namespace redlock::cli
