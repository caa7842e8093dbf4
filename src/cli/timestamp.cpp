// SPDX-License-Identifier: MIT
#include "cli/timestamp.hpp"

#include <array>
#include <ctime>
#include <fmt/core.h>

namespace redlock::cli {
namespace {

std::string formatted(WallTime time, const char* format) {
  const std::time_t seconds =
      std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count();
  std::tm parts{};
  std::array<char, 48> text{};
  if (gmtime_r(&seconds, &parts) == nullptr ||
      std::strftime(text.data(), text.size(), format, &parts) == 0) {
    return "?";
  }
  return text.data();
}

}  // namespace

std::string in_utc(WallTime time) {
  return formatted(time, "%Y-%m-%d %H:%M:%S UTC");
}

std::string iso_8601(WallTime time) {
  const auto part = time - std::chrono::floor<std::chrono::seconds>(time);
  return fmt::format("{}.{:03}Z", formatted(time, "%Y-%m-%dT%H:%M:%S"), part.count());
}

}  // namespace redlock::cli
