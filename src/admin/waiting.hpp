// SPDX-License-Identifier: MIT
// Who waits for a lock, as the lines on the nodes have it (src/wire/scripts/line.lua).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <redlock/admin.hpp>

#include "admin/node_query.hpp"

namespace redlock::admin {

/// The line, what is known of those in it, and the node's clock.
[[nodiscard]] std::vector<QueryCommand> waiting_questions(const std::string& name);

/// `answers` begins with the replies to these commands. None if the node refused them, as it does
/// with a user who was given no rights to its lines.
[[nodiscard]] std::optional<std::vector<WaitingCall>> read_waiting(const std::string& name,
                                                                   const wire::NodeAddress& node,
                                                                   const wire::Answer* answers);

/// Every waiter of any of the nodes, once; those that have waited longest come first.
[[nodiscard]] std::vector<WaitingCall> waiting_on_any(const std::vector<NodeLock>& nodes);

/// A text that a program left about itself: HolderText.
[[nodiscard]] std::optional<Holder> read_holder(const std::string& text,
                                                const wire::NodeAddress& node);

}  // namespace redlock::admin
