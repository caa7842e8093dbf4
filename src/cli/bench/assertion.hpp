// SPDX-License-Identifier: MIT
// --assert of `redlock bench`: a condition on the measurements, such as "p99<5ms".
#pragma once

#include <string>
#include <string_view>

#include "cli/bench/measurements.hpp"

namespace redlock::cli {

class Assertion {
 public:
  /// [OPERATION.]STATISTIC COMPARISON LIMIT, as bench_footer explains. Throws
  /// CLI::ValidationError with a sentence that says what to write instead.
  [[nodiscard]] static Assertion parse(const std::string& text);

  struct Judgement {
    bool holds = false;
    std::string measured;  ///< as the limit is written: "7.21ms", or why there is nothing
  };
  /// Does not hold if nothing of the kind was measured.
  [[nodiscard]] Judgement judge(const Measurements& all) const;
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  enum class Statistic { quantile, max, mean, throughput, errors, error_part, settled, unstarted };
  enum class Comparison { less, at_most, more, at_least };

  Assertion() = default;
  void take_comparison(std::string_view& rest);
  void take_quantity(std::string_view words);
  void take_limit(std::string_view limit);
  [[nodiscard]] bool is_time() const;

  std::string text_;
  Timed of_ = Timed::acquire;
  Statistic statistic_ = Statistic::quantile;
  double quantile_ = 0.5;
  Comparison comparison_ = Comparison::less;
  double limit_ = 0;  ///< in microseconds, percent, or a number
};

/// "850us", "7.21ms", "1.5s".
[[nodiscard]] std::string short_time(std::chrono::nanoseconds time);

}  // namespace redlock::cli
