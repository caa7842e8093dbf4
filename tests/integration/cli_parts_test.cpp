// SPDX-License-Identifier: MIT
// Parts of the command by themselves: the histogram of `redlock bench`, against the sorted numbers,
// and lines for a reader that has stopped, which are bounded, and those that were dropped counted.
#include <array>
#include <chrono>
#include <cmath>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <random>
#include <string>
#include <unistd.h>

#include "cli/bench/histogram.hpp"
#include "cli/line_queue.hpp"

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

TEST_CASE("a reader that stopped gets the first lines, and the number of those that were dropped") {
  std::array<int, 2> pipe{};
  REQUIRE(::pipe2(pipe.data(), O_CLOEXEC) == 0);
  // It is never destroyed: its thread lasts as long as the process.
  auto& queue = *new LineQueue(
      pipe[1], [](std::size_t count) { return std::to_string(count) + " dropped\n"; });
  // The pipe does not take it whole. Once it has begun the others stay in the queue.
  queue.push(std::string(1 << 20, '.') + "\n");
  std::array<char, 4096> buffer{};
  REQUIRE(::read(pipe[0], buffer.data(), 1) == 1);
  constexpr auto too_many = 2 * LineQueue::most_lines;
  for (std::size_t i = 0; i < too_many; ++i) queue.push(std::to_string(i) + "\n");
  queue.drain(std::chrono::milliseconds(1));  // returns, though nobody reads
  std::string text;
  while (text.find("dropped\n") == std::string::npos) {
    const auto count = ::read(pipe[0], buffer.data(), buffer.size());
    REQUIRE(count > 0);
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  CHECK(text.find(".\n0\n1\n2\n") == (1 << 20) - 2);
  CHECK(text.ends_with("\n999\n1000 dropped\n"));
  queue.push("once more\n");
  queue.drain(std::chrono::seconds(30));
  const auto count = ::read(pipe[0], buffer.data(), buffer.size());
  CHECK(std::string(buffer.data(), static_cast<std::size_t>(count)) == "once more\n");
}

}  // namespace
}  // namespace redlock::cli
