// SPDX-License-Identifier: MIT
// Compares the fences of all nodes: which of them no grant explains, and what they may be set to.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <redlock/admin.hpp>

#include "admin/node_query.hpp"
#include "engine/types.hpp"

namespace redlock::admin {

/// The fences of one node, by stripe, as text; what is no number of up to 20 digits is empty. None
/// if the node could not be asked.
using NodeFences = std::optional<std::map<std::uint32_t, std::string>>;

/// Asks the nodes that are not in trouble for all their fences. Fails as NodeQuery::ask() does.
[[nodiscard]] Result<std::vector<NodeFences>> read_fences(NodeQuery& query,
                                                          const std::vector<NodeHealth>& nodes);

/// Notes the damaged fences at their nodes. `remembers`: which nodes have kept their fences, as far
/// as is known; the others say nothing of what tokens there were. `clock`: the median of the nodes'
/// clocks, since 1970. Sends nothing.
void compare_fences(std::vector<NodeHealth>& nodes, const std::vector<NodeFences>& fences,
                    const std::vector<bool>& remembers, std::chrono::microseconds clock);

/// Whether so many could be read that they can be carried to this node: its own, and those of a
/// quorum of the others.
[[nodiscard]] bool can_be_carried(const std::vector<NodeFences>& fences, std::size_t to);

/// Raises the fences of a new member, which does not vote yet, to those of the others: a quorum
/// with it may have no node that knows the newest token of a quorum without it. A fence that no
/// grant explains is not carried. False if they cannot be carried, or it refused.
[[nodiscard]] Result<bool> carry_fences(NodeQuery& query, const std::vector<NodeHealth>& nodes,
                                        std::size_t to);

}  // namespace redlock::admin
