// SPDX-License-Identifier: MIT
#include "admin/key_walk.hpp"

#include <optional>
#include <utility>
#include <variant>

namespace redlock::admin {
namespace {

constexpr auto* keys_per_scan = "1000";

/// Where the walk over a node's keys goes on; none if it has come to its end.
std::optional<std::string> next_cursor(const wire::Answer& answer,
                                       const std::function<bool(const std::string& key)>& take) {
  const auto* parts = answer ? std::get_if<std::vector<wire::Value>>(&answer->data) : nullptr;
  if (parts == nullptr || parts->size() != 2) return std::nullopt;
  bool more = true;
  for (const auto& key : texts_of((*parts)[1])) more = take(key) && more;
  auto cursor = text_of((*parts)[0]);
  return more && cursor != "0" ? std::move(cursor) : std::nullopt;
}

}  // namespace

Result<std::vector<NodeTrouble>> walk_keys(
    NodeQuery& query, std::vector<NodeTrouble> troubles, const std::string& pattern,
    const std::function<bool(std::size_t node, const std::string& key)>& take) {
  std::vector<std::optional<std::string>> cursors;
  for (const auto& trouble : troubles) {
    cursors.push_back(trouble.cause == Cause::none ? std::optional<std::string>("0")
                                                   : std::nullopt);
  }
  for (bool more = true; more;) {
    std::vector<std::vector<QueryCommand>> commands(cursors.size());
    for (std::size_t i = 0; i < cursors.size(); ++i) {
      if (cursors[i]) {
        commands[i] = {{"SCAN", *cursors[i], "MATCH", pattern, "COUNT", keys_per_scan}};
      }
    }
    const auto answers = query.ask(std::move(commands), query.options().node_timeout);
    if (!answers) return tl::make_unexpected(answers.error());
    more = false;
    for (std::size_t i = 0; i < cursors.size(); ++i) {
      if (!cursors[i]) continue;
      const auto& answer = (*answers)[i].answers[0];
      troubles[i] = trouble_of(answer, query.nodes()[i]);
      cursors[i] = next_cursor(answer, [&](const std::string& key) { return take(i, key); });
      more = more || cursors[i];
    }
  }
  return troubles;
}

}  // namespace redlock::admin
