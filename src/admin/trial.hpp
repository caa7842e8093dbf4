// SPDX-License-Identifier: MIT
// Takes, holds and releases one lock on a single node, and waits for it: missing permissions, full
// memory and missing replicas show only when the commands are run.
#pragma once

#include <vector>

#include <redlock/admin.hpp>

#include "admin/node_query.hpp"

namespace redlock::admin {

/// The commands in their order, as a client sends them; none for a node that is no independent
/// master.
[[nodiscard]] std::vector<QueryCommand> trial_of(const NodeHealth& node);

/// The problem with the node that the replies show.
[[nodiscard]] NodeTrouble refusal_of(const NodeAnswers& answers, const wire::NodeAddress& node);
/// Whether a waiter is stood in a line there, and told when its turn comes.
[[nodiscard]] bool serves_in_order(const NodeAnswers& answers, const wire::NodeAddress& node);

}  // namespace redlock::admin
