// SPDX-License-Identifier: MIT
// Turns results of the engine (codes, ballots by number of the node) into text for people: one
// sentence that names the lock and the nodes, always in the order of the nodes and of bounded
// length. (The wire layer has removed passwords and control characters from the nodes' replies.)
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <redlock/error.hpp>

#include "engine/engine.hpp"
#include "text/characters.hpp"
#include "wire/node_address.hpp"

namespace redlock::client {

using text::in_quotes;

/// A node's reply, fit to be shown: without password and control characters.
[[nodiscard]] std::string cleaned(std::string_view text, const wire::NodeAddress& node);

[[nodiscard]] std::vector<NodeVote> name_ballots(const std::vector<engine::Ballot>& ballots,
                                                 const std::vector<wire::NodeAddress>& nodes);

/// The rival that holds a name, as far as the client itself can tell: the reply of a node that
/// refuses does not name the holder.
enum class Rival : std::uint8_t { somebody, this_client, anybody };

/// The error of an operation on this name.
[[nodiscard]] Error describe(std::string_view name, const engine::Failed& failed,
                             const std::vector<wire::NodeAddress>& nodes,
                             Rival rival = Rival::somebody);

}  // namespace redlock::client
