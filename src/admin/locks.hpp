// SPDX-License-Identifier: MIT
// What status and list share: the questions about one lock, and reading one node's answers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <redlock/admin.hpp>

#include "admin/node_query.hpp"

namespace redlock::client {

/// HGETALL and PTTL of the lock.
[[nodiscard]] std::vector<Command> lock_questions(const std::string& name);

/// `answers` begins with those to the two questions.
[[nodiscard]] NodeLock read_lock(const wire::NodeAddress& node, const wire::Answer* answers);

/// The owner that the most nodes name, and how many do. A node with several holders names none.
[[nodiscard]] std::pair<std::string, std::uint32_t> leading_owner(
    const std::vector<NodeLock>& nodes);

/// What the first node that has the lock for this owner says of its holder.
[[nodiscard]] std::optional<Holder> holder_of(const std::vector<NodeLock>& nodes,
                                              const std::string& owner);

}  // namespace redlock::client
