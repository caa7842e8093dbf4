// SPDX-License-Identifier: MIT
#include "cli/bench/assertion.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fmt/core.h>
#include <optional>
#include <utility>

namespace redlock::cli {
namespace {

constexpr std::string_view how =
    "write as p99<5ms, release.max<=20ms, errors<1% or throughput>=100";

struct Quantile {
  std::string_view name;
  double part;
};
constexpr std::array quantiles{Quantile{"p50", 0.5}, Quantile{"p90", 0.9}, Quantile{"p99", 0.99},
                               Quantile{"p99.9", 0.999}};

[[noreturn]] void refuse(std::string_view text, std::string_view why) {
  throw CLI::ValidationError("--assert", fmt::format("'{}': {}; {}", text, why, how));
}

std::string without_blanks(std::string_view text) {
  std::string result;
  std::copy_if(text.begin(), text.end(), std::back_inserter(result),
               [](char c) { return c != ' '; });
  return result;
}

}  // namespace

std::string short_time(std::chrono::nanoseconds time) {
  const double us = std::chrono::duration<double, std::micro>(time).count();
  if (us < 1'000) return fmt::format("{:.0f}us", us);
  if (us < 1'000'000) return fmt::format("{:.3g}ms", us / 1'000);
  return fmt::format("{:.3g}s", us / 1'000'000);
}

Assertion Assertion::parse(const std::string& text) {
  Assertion result;
  result.text_ = without_blanks(text);
  const std::string_view all = result.text_;
  const auto at = all.find_first_of("<>");
  if (at == std::string_view::npos) refuse(text, "there is no <, <=, > or >= in it");
  std::string_view rest = all.substr(at);
  result.take_comparison(rest);
  result.take_quantity(all.substr(0, at));
  result.take_limit(rest);
  return result;
}

void Assertion::take_comparison(std::string_view& rest) {
  const bool less = rest.front() == '<';
  rest.remove_prefix(1);
  const bool equal = rest.starts_with('=');
  if (equal) rest.remove_prefix(1);
  if (less) {
    comparison_ = equal ? Comparison::at_most : Comparison::less;
  } else {
    comparison_ = equal ? Comparison::at_least : Comparison::more;
  }
}

void Assertion::take_quantity(std::string_view words) {
  for (const auto& [name, statistic] :
       {std::pair{"throughput", Statistic::throughput}, std::pair{"errors", Statistic::errors},
        std::pair{"one-round-trip", Statistic::settled},
        std::pair{"unstarted", Statistic::unstarted}}) {
    if (words != name) continue;
    statistic_ = statistic;
    return;
  }
  for (const auto timed : all_timed) {
    const auto prefix = std::string(to_string(timed)) + ".";
    if (!words.starts_with(prefix)) continue;
    of_ = timed;
    words.remove_prefix(prefix.size());
    break;
  }
  if (words == "max" || words == "mean") {
    statistic_ = words == "max" ? Statistic::max : Statistic::mean;
    return;
  }
  for (const auto& [name, part] : quantiles) {
    if (words != name) continue;
    quantile_ = part;
    return;
  }
  refuse(text_, fmt::format("'{}' is not measured", words));
}

bool Assertion::is_time() const {
  return statistic_ == Statistic::quantile || statistic_ == Statistic::max ||
         statistic_ == Statistic::mean;
}

void Assertion::take_limit(std::string_view limit) {
  const auto [end, error] = std::from_chars(limit.data(), limit.data() + limit.size(), limit_);
  const std::string_view unit = limit.substr(static_cast<std::size_t>(end - limit.data()));
  if (error != std::errc() || !(limit_ >= 0) || std::isinf(limit_))
    refuse(text_, "the limit is not a number");
  if (is_time()) {
    if (unit == "ms") limit_ *= 1'000;
    if (unit == "s") limit_ *= 1'000'000;
    if (unit != "us" && unit != "ms" && unit != "s") {
      refuse(text_, "the limit of a time needs a unit: us, ms or s");
    }
    return;
  }
  const bool percent = unit == "%";
  if (statistic_ == Statistic::errors && percent) statistic_ = Statistic::error_part;
  const bool takes_percent =
      statistic_ == Statistic::error_part || statistic_ == Statistic::settled;
  if (percent != takes_percent || (!percent && !unit.empty())) {
    refuse(text_, takes_percent ? "the limit is a percentage, as 99%" : "the limit is a number");
  }
}

Assertion::Judgement Assertion::judge(const Measurements& all) const {
  double value = 0;
  std::string measured;
  if (is_time()) {
    const Histogram& times = all.of(of_);
    if (times.count() == 0) return {false, fmt::format("no {} was measured", to_string(of_))};
    const auto time = statistic_ == Statistic::max    ? times.max()
                      : statistic_ == Statistic::mean ? times.mean()
                                                      : times.quantile(quantile_);
    value = std::chrono::duration<double, std::micro>(time).count();
    measured = short_time(time);
  } else if (statistic_ == Statistic::throughput) {
    value = all.throughput();
    measured = fmt::format("{:.1f}", value);
  } else if (statistic_ == Statistic::errors || statistic_ == Statistic::unstarted) {
    const auto number = statistic_ == Statistic::errors ? all.failed() : all.unstarted;
    value = static_cast<double>(number);
    measured = std::to_string(number);
  } else {
    const bool settled = statistic_ == Statistic::settled;
    if (settled && all.grants == 0) return {false, "no lock was granted"};
    value = 100 * (settled ? all.settled_at_once() : all.failed_part());
    measured = fmt::format("{:.4g}%", value);
  }
  switch (comparison_) {
    case Comparison::less:
      return {value < limit_, measured};
    case Comparison::at_most:
      return {value <= limit_, measured};
    case Comparison::more:
      return {value > limit_, measured};
    case Comparison::at_least:
      break;
  }
  return {value >= limit_, measured};
}

}  // namespace redlock::cli
