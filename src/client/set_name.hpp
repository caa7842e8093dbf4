// SPDX-License-Identifier: MIT
// The name of a set, as operators give and compare it: by the rule of engine::SetMembership, a name
// that fewer than a quorum of the listed nodes have is that of another set.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/nodes/set_membership.hpp"

namespace redlock::client {

/// What the nodes show of their set. `markers` has for each node what its marker says; nothing if
/// it has none or did not answer.
[[nodiscard]] engine::SetMembership set_of(std::vector<std::optional<engine::Membership>> markers);

/// Why a node with this name does not count beside that of a quorum (none: there is none).
[[nodiscard]] std::string another_set(const std::string& name,
                                      const std::optional<std::string>& of_quorum);

}  // namespace redlock::client
