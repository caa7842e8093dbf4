// SPDX-License-Identifier: MIT
// Numbers as Prometheus reads them: the text format, version 0.0.4
// (prometheus.io, "Exposition formats").
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redlock::metrics {

/// Names and values, in the order in which they are written. Values may be any bytes.
using Labels = std::vector<std::pair<std::string, std::string>>;

/// How many durations were no longer than each of some bounds.
class DurationHistogram {
 public:
  /// Bounds for durations of network calls, and for those of human work.
  enum class Range { network, work };

  explicit DurationHistogram(Range range);

  /// A negative duration counts as none.
  void add(std::chrono::nanoseconds duration);

  /// In nanoseconds, ascending.
  [[nodiscard]] const std::vector<std::int64_t>& bounds() const { return *bounds_; }
  /// How many were within the bound with this index and above the one before it; the last one has
  /// those beyond all bounds.
  [[nodiscard]] const std::vector<std::uint64_t>& counts() const { return counts_; }
  [[nodiscard]] double sum_seconds() const { return sum_seconds_; }

 private:
  const std::vector<std::int64_t>* bounds_;
  std::vector<std::uint64_t> counts_;
  double sum_seconds_ = 0;
};

/// Writes one family after the other.
class Exposition {
 public:
  /// All lines up to the next family belong to this one. `type` is counter, gauge or histogram.
  void family(std::string_view name, std::string_view type, std::string_view help);

  void value(const Labels& labels, std::uint64_t value);
  void value(const Labels& labels, const DurationHistogram& histogram);

  [[nodiscard]] std::string take() && { return std::move(text_); }

 private:
  void line(std::string_view suffix, const Labels& labels, std::string_view number);

  std::string family_;
  std::string text_;
};

}  // namespace redlock::metrics
