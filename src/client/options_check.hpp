// SPDX-License-Identifier: MIT
// Checks all arguments and options of a caller before anything is sent. Each check that fails
// returns one sentence that names the option and what to do.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include <redlock/error.hpp>
#include <redlock/options.hpp>

#include "engine/types.hpp"
#include "wire/node_address.hpp"

namespace redlock::client {

/// The nodes, parsed, if all options can work together.
[[nodiscard]] Result<std::vector<wire::NodeAddress>> check_client_options(
    const ClientOptions& what);

[[nodiscard]] Result<void> check_name(std::string_view name);

/// No lease of the client is longer; zero: none is longer than the nodes' markers say.
[[nodiscard]] std::chrono::milliseconds own_max_lease(const ClientOptions& what);

/// `minimum` is the validity that a lease of this length must leave.
[[nodiscard]] Result<void> check_lease(std::chrono::milliseconds lease,
                                       std::chrono::milliseconds minimum,
                                       const ClientOptions& client);

/// The lease that an acquisition gets, if its options can work.
[[nodiscard]] Result<std::chrono::milliseconds> check_acquire_options(const AcquireOptions& what,
                                                                      const ClientOptions& client);

/// 32 hexadecimal digits, as Grant::owner has them.
[[nodiscard]] Result<engine::OwnerId> parse_owner(std::string_view text);

}  // namespace redlock::client
