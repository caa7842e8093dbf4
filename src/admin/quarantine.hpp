// SPDX-License-Identifier: MIT
// The quarantine of a node, for reports. Whether a node is in quarantine is decided by the engine;
// here the decision is turned into the public type.
#pragma once

#include <optional>
#include <vector>

#include <redlock/admin.hpp>
#include <redlock/options.hpp>

#include "engine/messages.hpp"
#include "wire/node_address.hpp"

namespace redlock::admin {

/// Nothing if the objection is none or another one.
[[nodiscard]] std::optional<NodeQuarantine> quarantine_of(
    const std::optional<engine::Unavailable>& objection);

/// Sets the quarantine of each node, for a client with these options that sees the nodes for the
/// first time.
void quarantine_at_first_sight(std::vector<NodeHealth>& nodes,
                               const std::vector<wire::NodeAddress>& addresses,
                               const ClientOptions& options);

}  // namespace redlock::admin
