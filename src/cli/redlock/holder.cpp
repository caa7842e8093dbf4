// SPDX-License-Identifier: MIT
#include "cli/redlock/holder.hpp"

#include <fmt/core.h>

#include "cli/timestamp.hpp"

namespace redlock::cli {

std::string program_of(const std::optional<Holder>& holder) {
  if (!holder) return "?";
  return fmt::format("{}, pid {} on {}", printable(holder->label), holder->pid,
                     printable(holder->host));
}

std::string in_words(const std::optional<Holder>& holder) {
  if (!holder) return "unknown";
  const auto since = in_utc(holder->since);
  return since == "?" ? program_of(holder) : fmt::format("{}, since {}", program_of(holder), since);
}

Json holder_as_json(const std::optional<Holder>& holder) {
  if (!holder) return nullptr;
  return {{"label", holder->label},
          {"pid", holder->pid},
          {"host", holder->host},
          {"since_unix_ms", holder->since.time_since_epoch().count()}};
}

Json waiting_as_json(const std::vector<WaitingCall>& waiting) {
  Json calls = Json::array();
  for (const auto& call : waiting) {
    calls.push_back({{"id", call.id}, {"who", holder_as_json(call.who)}});
  }
  return calls;
}

}  // namespace redlock::cli
