// SPDX-License-Identifier: MIT
// Shared by status and list: the commands that read one lock, and the reading of a node's replies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <redlock/admin.hpp>

#include "admin/node_query.hpp"

namespace redlock::admin {

/// HGETALL and PTTL of the lock, and the ids of its waiters.
constexpr std::size_t questions_per_lock = 3;
[[nodiscard]] std::vector<QueryCommand> lock_questions(const std::string& name);

/// `answers` begins with the replies to these commands. Does not read the waiters: see
/// read_waiting.
[[nodiscard]] NodeLock read_lock(const wire::NodeAddress& node, const wire::Answer* answers);

/// The owner that most nodes have, and how many do. A node with several holders does not count.
[[nodiscard]] std::pair<std::string, std::uint32_t> leading_owner(
    const std::vector<NodeLock>& nodes);

/// The holder's note on the first node that has the lock for this owner.
[[nodiscard]] std::optional<Holder> holder_of(const std::vector<NodeLock>& nodes,
                                              const std::string& owner);

}  // namespace redlock::admin
