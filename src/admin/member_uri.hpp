// SPDX-License-Identifier: MIT
// Members as clients are given them: their addresses with a login.
#pragma once

#include <string>

#include "wire/node_address.hpp"

namespace redlock::admin {

/// The member's address, with the login and the ?name= of another node where it has none.
[[nodiscard]] std::string uri_of(const wire::NodeAddress& member, const wire::NodeAddress& other);

}  // namespace redlock::admin
