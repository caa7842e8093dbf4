// SPDX-License-Identifier: MIT
// Turns what the engine knows (codes and ballots by number) into what a person can use: one
// sentence that names the lock and the nodes. Always in the order of the nodes, of bounded length,
// and never with a password in it, whatever a node says.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <redlock/error.hpp>

#include "engine/engine.hpp"
#include "io/node_address.hpp"

namespace redlock::api {

/// In single quotes, control characters escaped, cut at 64 bytes.
[[nodiscard]] std::string quoted(std::string_view text);

/// A node's own words, fit to be shown: no password of its, no control characters, bounded.
[[nodiscard]] std::string cleaned(std::string_view text, const io::NodeAddress& node);

[[nodiscard]] std::vector<NodeVote> name_ballots(const std::vector<engine::Ballot>& ballots,
                                                 const std::vector<io::NodeAddress>& nodes);

/// The error of an operation on this name.
[[nodiscard]] Error describe(std::string_view name, const engine::Failed& failed,
                             const std::vector<io::NodeAddress>& nodes);

}  // namespace redlock::api
