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

/// Whether enough could be read that they can be carried to this node, its own among them.
[[nodiscard]] bool can_be_carried(const std::vector<NodeFences>& fences, std::size_t to,
                                  std::uint32_t enough);

/// Raises the fences of a node to those of the others, when members change: a later quorum with it
/// may have no node that knows the newest token of a former one. A fence that no grant explains is
/// not carried: one so far ahead of the clocks that fewer than `explain` others have reached it.
/// False if they cannot be carried, or the node refused.
[[nodiscard]] Result<bool> carry_fences(NodeQuery& query, const std::vector<NodeHealth>& nodes,
                                        std::size_t to, std::uint32_t enough,
                                        std::uint32_t explain);

}  // namespace redlock::admin
