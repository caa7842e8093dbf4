// SPDX-License-Identifier: MIT
#include "cli/holder.hpp"

#include <array>
#include <chrono>
#include <ctime>
#include <fmt/core.h>

namespace redlock::cli {

std::string program_of(const std::optional<Holder>& holder) {
  if (!holder) return "?";
  return fmt::format("{}, pid {} on {}", printable(holder->label), holder->pid,
                     printable(holder->host));
}

std::string in_words(const std::optional<Holder>& holder) {
  if (!holder) return "unknown";
  const std::time_t seconds =
      std::chrono::floor<std::chrono::seconds>(holder->since).time_since_epoch().count();
  std::tm parts{};
  std::array<char, 32> text{};
  if (gmtime_r(&seconds, &parts) == nullptr ||
      std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S UTC", &parts) == 0) {
    return program_of(holder);
  }
  return fmt::format("{}, since {}", program_of(holder), text.data());
}

Json holder_as_json(const std::optional<Holder>& holder) {
  if (!holder) return nullptr;
  return {{"label", holder->label},
          {"pid", holder->pid},
          {"host", holder->host},
          {"since_unix_ms", holder->since.time_since_epoch().count()}};
}

Json waiting_as_json(const std::vector<QueuedCall>& waiting) {
  Json calls = Json::array();
  for (const auto& call : waiting) {
    calls.push_back({{"id", call.id}, {"who", holder_as_json(call.who)}});
  }
  return calls;
}

}  // namespace redlock::cli
