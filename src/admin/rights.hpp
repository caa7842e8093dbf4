// SPDX-License-Identifier: MIT
// Which rights of cluster/users.acl the user lacks. Each is tried by itself, by a command that
// changes nothing: inside a script some servers do not name the refused command, and a missing
// right that only the queues need would not show at all.
#pragma once

#include <string>
#include <vector>

#include "admin/node_query.hpp"

namespace redlock::admin {

/// The same for every node that is an independent master; none for another one.
[[nodiscard]] std::vector<QueryCommand> questions_of_rights(const NodeHealth& node);
/// As ACL SETUSER has them: "+hset", "&redlock:wake:*".
[[nodiscard]] std::vector<std::string> missing_rights(const NodeAnswers& answers);

}  // namespace redlock::admin
