// SPDX-License-Identifier: MIT
// The name of a set, as operators give and compare it: by the rule of engine::SetMembership, a name
// that fewer than a quorum of the listed nodes have is that of another set.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <redlock/admin.hpp>

namespace redlock::client {

/// The name that a quorum of the nodes share; none if no quorum does. `names` has for each node its
/// marker's name; nothing if the node has no marker or did not answer.
[[nodiscard]] std::optional<std::string> name_of_quorum(
    const std::vector<std::optional<std::string>>& names);

/// Why a node with this name does not count beside that of a quorum (none: there is none).
[[nodiscard]] std::string another_set(const std::string& name,
                                      const std::optional<std::string>& of_quorum);

}  // namespace redlock::client
