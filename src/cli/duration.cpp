// SPDX-License-Identifier: MIT
#include "cli/duration.hpp"

#include <CLI/CLI.hpp>
#include <array>
#include <charconv>
#include <cstdint>
#include <fmt/core.h>

#include <redlock/options.hpp>

namespace redlock::cli {
namespace {

using std::chrono::milliseconds;

struct Unit {
  std::string_view name;
  std::int64_t ms;
};
constexpr std::array<Unit, 4> units{{{"h", 3'600'000}, {"m", 60'000}, {"s", 1'000}, {"ms", 1}}};

// Far more than any lease or wait, and far from where sums of durations overflow.
constexpr std::int64_t longest_ms = 1'000LL * 24 * 3'600'000;

CLI::ValidationError refused(std::string_view option, const std::string& sentence) {
  return CLI::ValidationError(std::string(option), sentence);
}

}  // namespace

milliseconds parse_duration(std::string_view option, std::string_view text, Zero zero,
                            Forever endless) {
  if (text == "forever") {
    if (endless == Forever::allowed) return forever;
    throw refused(option, "has to end; say how long, for example 30s");
  }
  std::int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, problem] = std::from_chars(text.data(), end, number);
  const std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  const bool is_number = problem == std::errc() && rest != text.data();
  const bool is_zero = is_number && number == 0;
  if (is_zero && zero == Zero::allowed && unit.empty()) return milliseconds(0);
  if (is_zero && zero == Zero::refused) {
    throw refused(option, "has to be longer than zero; say 30s");
  }
  if (is_number && unit.empty()) {
    throw refused(option, fmt::format("{} of what? A duration needs its unit: say {}s (or {}ms, "
                                      "{}m, {}h)",
                                      text, text, text, text, text));
  }
  for (const auto& known : units) {
    if (!is_number || unit != known.name) continue;
    if (number < 0) throw refused(option, fmt::format("{} is negative; say 30s", text));
    if (number > longest_ms / known.ms) {
      throw refused(option, fmt::format("{} is too long; 1000 days is the most", text));
    }
    return milliseconds(number * known.ms);
  }
  throw refused(option, fmt::format("'{}' is not a duration; say 30s, 500ms, 2m or 1h{}", text,
                                    endless == Forever::allowed ? ", or forever" : ""));
}

std::string format_duration(milliseconds duration) {
  if (duration == forever) return "forever";
  const auto ms = duration.count();
  for (const auto& unit : units) {
    if (ms != 0 && ms % unit.ms == 0) return fmt::format("{}{}", ms / unit.ms, unit.name);
  }
  return "0";
}

}  // namespace redlock::cli
