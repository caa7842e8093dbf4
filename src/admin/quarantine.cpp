// SPDX-License-Identifier: MIT
#include "admin/quarantine.hpp"

#include <chrono>
#include <variant>

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

std::optional<NodeQuarantine> quarantine_at_first_sight(const NodeHealth& node,
                                                        const ClientOptions& options) {
  engine::Config config;
  config.nodes = 1;
  config.drift_factor = options.drift_factor;
  config.max_lease = options.max_lease;
  config.quarantine = options.quarantine == Quarantine::on;
  engine::Quarantines quarantines(config);
  const auto now = BootClock::now();
  const bool durable = node.append_only.value_or(false) && node.append_fsync == "always";
  quarantines.on_node_facts(now, 0,
                            {.marker = node.marker.has_value(),
                             .durable = durable,
                             .promoted = node.promoted && !node.vouched,
                             .uptime = node.uptime.value_or(std::chrono::seconds::zero()),
                             .set = node.marker ? node.marker->set : std::string()});
  return quarantine_of(quarantines.objection(now, 0));
}

}  // namespace redlock::admin
