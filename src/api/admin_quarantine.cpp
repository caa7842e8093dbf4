// SPDX-License-Identifier: MIT
#include "api/admin_quarantine.hpp"

#include <charconv>
#include <string_view>

#include "engine/node_standing.hpp"

namespace redlock::api {

std::optional<NodeQuarantine> quarantine_of(const std::optional<engine::Unavailable>& objection) {
  if (!objection || objection->cause != Cause::quarantined) return std::nullopt;
  NodeQuarantine quarantine{objection->detail, {}};
  constexpr std::string_view before = "votes in ";
  const std::string_view text = objection->detail;
  if (const auto at = text.find(before); at != std::string_view::npos) {
    std::chrono::seconds::rep seconds = 0;
    std::from_chars(text.data() + at + before.size(), text.data() + text.size(), seconds);
    quarantine.votes_in = std::chrono::seconds(seconds);
  }
  return quarantine;
}

std::optional<NodeQuarantine> quarantine_at_first_sight(const NodeHealth& node,
                                                        const ClientOptions& options) {
  engine::Config config;
  config.nodes = 1;
  config.drift_factor = options.drift_factor;
  config.max_lease = options.max_lease;
  config.quarantine = options.quarantine == Quarantine::on;
  engine::NodeStanding standing(config);
  const auto now = BootClock::now();
  const bool durable = node.append_only.value_or(false) && node.append_fsync == "always";
  standing.on_node_facts(now, 0,
                         {.marker = node.marker.has_value(),
                          .durable = durable,
                          .promoted = node.promoted && !node.vouched,
                          .uptime = node.uptime.value_or(std::chrono::seconds::zero())});
  return quarantine_of(standing.objection(now, 0));
}

}  // namespace redlock::api
