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

/// That of a node which somebody with these options sees like this, and has not seen before.
[[nodiscard]] std::optional<NodeQuarantine> quarantine_at_first_sight(const NodeHealth& node,
                                                                      const ClientOptions& options);

}  // namespace redlock::admin
