// SPDX-License-Identifier: MIT
// The histogram of `redlock bench`, against the sorted numbers themselves.
#include <cmath>
#include <doctest/doctest.h>
#include <random>

#include "cli/bench/histogram.hpp"

namespace redlock::cli {
namespace {

using std::chrono::nanoseconds;

/// The quantile of all of them, by sorting.
nanoseconds exact_quantile(std::vector<std::int64_t> values, double part) {
  std::sort(values.begin(), values.end());
  const auto rank = std::max(std::ceil(part * static_cast<double>(values.size())), 1.0);
  return nanoseconds(values[static_cast<std::size_t>(rank) - 1]);
}

TEST_CASE("a histogram is at most 0.8 % above what sorting all values says, and never below") {
  std::mt19937_64 random(7);
  std::lognormal_distribution<double> times(12, 3);
  std::vector<std::int64_t> values;
  Histogram histogram;
  for (int i = 0; i < 20'000; ++i) {
    values.push_back(static_cast<std::int64_t>(times(random)));
    histogram.record(nanoseconds(values.back()));
  }
  CHECK(histogram.count() == 20'000);
  for (const double part : {0.0, 0.001, 0.25, 0.5, 0.9, 0.99, 0.999, 0.99999, 1.0}) {
    CAPTURE(part);
    const auto exact = exact_quantile(values, part);
    CHECK(histogram.quantile(part) >= exact);
    CHECK(histogram.quantile(part) <= exact + exact / 125);
  }
  CHECK(histogram.max() == exact_quantile(values, 1));
  CHECK(histogram.quantile(1) == histogram.max());
}

TEST_CASE("what is below 256 ns is exact, and each power of two has its place") {
  for (std::int64_t value = 0; value < 256; ++value) {
    Histogram histogram;
    histogram.record(nanoseconds(value));
    histogram.record(nanoseconds(1'000'000));
    CHECK(histogram.quantile(0.5) == nanoseconds(value));
  }
  for (int bit = 8; bit < 60; ++bit) {
    for (const std::int64_t by : {-1, 0, 1}) {
      const auto value = (std::int64_t{1} << bit) + by;
      CAPTURE(value);
      Histogram histogram;
      histogram.record(nanoseconds(value));
      histogram.record(nanoseconds(std::int64_t{1} << 61));
      CHECK(histogram.quantile(0.5).count() >= value);
      CHECK(histogram.quantile(0.5).count() <= value + value / 125);
    }
  }
}

TEST_CASE("an empty histogram answers zero, and a negative time counts as zero") {
  Histogram histogram;
  CHECK(histogram.quantile(0.5) == nanoseconds(0));
  CHECK(histogram.mean() == nanoseconds(0));
  histogram.record(nanoseconds(-5));
  CHECK(histogram.count() == 1);
  CHECK(histogram.quantile(1) == nanoseconds(0));
  histogram.record(nanoseconds(10));
  CHECK(histogram.mean() == nanoseconds(5));
}

}  // namespace
}  // namespace redlock::cli
