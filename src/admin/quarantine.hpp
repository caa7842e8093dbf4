// SPDX-License-Identifier: MIT
// The quarantine of a node, for reports. Whether a node is in quarantine is decided by the engine;
// here the decision is turned into the public type.
#pragma once

#include <optional>

#include <redlock/admin.hpp>
#include <redlock/options.hpp>

#include "engine/messages.hpp"

namespace redlock::admin {

/// Nothing if the objection is none or another one.
[[nodiscard]] std::optional<NodeQuarantine> quarantine_of(
    const std::optional<engine::Unavailable>& objection);

/// The quarantine of a node, for a client with these options that sees the node for the first time.
[[nodiscard]] std::optional<NodeQuarantine> quarantine_at_first_sight(const NodeHealth& node,
                                                                      const ClientOptions& options);

}  // namespace redlock::admin
