// SPDX-License-Identifier: MIT
// One lock, taken, held and given back on a single node: what permissions, full memory or missing
// replicas keep a client from doing shows only when it is done.
#pragma once

#include <vector>

#include <redlock/admin.hpp>

#include "admin/node_query.hpp"

namespace redlock::client {

/// The commands in their order, as a client would put them; none for a node that is no independent
/// master.
[[nodiscard]] std::vector<Command> trial_of(const NodeHealth& node);

/// What one of the answers says against the node.
[[nodiscard]] NodeTrouble refusal_of(const wire::Answer& answer, const wire::NodeAddress& node);

}  // namespace redlock::client
