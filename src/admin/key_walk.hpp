// SPDX-License-Identifier: MIT
// Walks over the keys of all nodes (SCAN): what there is can be known in no other way.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include <redlock/admin.hpp>
#include <redlock/client.hpp>

#include "admin/node_query.hpp"

namespace redlock::admin {

/// Gives `take` each key that matches the pattern, with the place of its node, all nodes in step;
/// a key may come twice. A node is left when `take` returns false, or once it does not answer, or
/// if it is in trouble from the start. Returns the troubles of the nodes, or fails as
/// NodeQuery::ask() does.
[[nodiscard]] Result<std::vector<NodeTrouble>> walk_keys(
    NodeQuery& query, std::vector<NodeTrouble> troubles, const std::string& pattern,
    const std::function<bool(std::size_t node, const std::string& key)>& take);

}  // namespace redlock::admin
