// SPDX-License-Identifier: MIT
#include "admin/quarantine.hpp"

#include <chrono>
#include <variant>

#include "admin/marker.hpp"
#include "client/options_check.hpp"
#include "engine/nodes/quarantines.hpp"
#include "wire/objection_text.hpp"

namespace redlock::admin {

std::optional<NodeQuarantine> quarantine_of(const std::optional<engine::Unavailable>& objection) {
  if (!objection || objection->cause != Cause::quarantined) return std::nullopt;
  const auto* why = std::get_if<engine::InQuarantine>(&objection->objection);
  const auto votes_in = why != nullptr ? why->votes_in : engine::Duration::zero();
  return NodeQuarantine{wire::sentence_of(objection->objection),
                        std::chrono::ceil<std::chrono::seconds>(votes_in)};
}

void quarantine_at_first_sight(std::vector<NodeHealth>& nodes,
                               const std::vector<wire::NodeAddress>& addresses,
                               const ClientOptions& options) {
  engine::Config config;
  config.nodes = static_cast<std::uint32_t>(nodes.size());
  for (const auto& node : addresses) config.addresses.push_back(node.address);
  config.drift_factor = options.drift_factor;
  config.max_lease = client::own_max_lease(options);
  config.quarantine = options.quarantine == Quarantine::on;
  engine::Quarantines quarantines(config);
  const auto now = BootClock::now();
  const auto can_vote = [](const NodeHealth& node) {
    return node.answered() && !node.cluster && node.role.value_or("master") == "master";
  };
  for (engine::NodeIndex i = 0; i < config.nodes; ++i) {
    const NodeHealth& node = nodes[i];
    if (!can_vote(node)) continue;
    const bool durable = node.append_only.value_or(false) && node.append_fsync == "always";
    quarantines.on_node_facts(
        now, i,
        {.marker = node.marker ? as_written(*node.marker).membership() : std::nullopt,
         .durable = durable,
         .promoted = node.promoted && !node.vouched,
         .uptime = node.uptime.value_or(std::chrono::seconds::zero())});
  }
  for (engine::NodeIndex i = 0; i < config.nodes; ++i) {
    if (can_vote(nodes[i])) nodes[i].quarantine = quarantine_of(quarantines.objection(now, i));
  }
}

}  // namespace redlock::admin
