// SPDX-License-Identifier: MIT
// The waiters of a lock, as the queues on the nodes have them (src/wire/scripts/queue.lua).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <redlock/admin.hpp>

#include "admin/node_query.hpp"

namespace redlock::admin {

/// The queue, the records of its waiters, and the node's clock.
[[nodiscard]] std::vector<QueryCommand> waiting_questions(const std::string& name);

/// `answers` begins with the replies to these commands. None if the node refused them, as it does
/// with a user who was given no rights to its queues.
[[nodiscard]] std::optional<std::vector<QueuedCall>> read_waiting(const wire::NodeAddress& node,
                                                                  const wire::Answer* answers);

/// Every waiter that is on any of the nodes, once, in the order of the tickets.
[[nodiscard]] std::vector<QueuedCall> waiting_on_any(const std::vector<NodeLock>& nodes);

/// A text that a program left about itself: HolderText.
[[nodiscard]] std::optional<Holder> read_holder(const std::string& text,
                                                const wire::NodeAddress& node);

}  // namespace redlock::admin
