// SPDX-License-Identifier: MIT
// Finds nodes of the list that are one server. Equal run ids are a suspicion, as a node may report
// that of another; a random key that is written through one and read through the other decides.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <redlock/client.hpp>

#include "admin/node_query.hpp"

namespace redlock::admin {

/// For each node the first one that is the same server; none if there is no such node. Where the
/// check cannot be made, equal run ids count. `run_ids`: empty for a node that does not tell it.
[[nodiscard]] Result<std::vector<std::optional<std::size_t>>> find_twins(
    NodeQuery& query, const std::vector<std::string>& run_ids);

}  // namespace redlock::admin
