// SPDX-License-Identifier: MIT
// Turns what the engine knows (codes and ballots by number) into what a person can use: one
// sentence that names the lock and the nodes, always in the order of the nodes and of bounded
// length. (That no node's words carry a password or control characters is io's promise.)
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <redlock/error.hpp>

#include "engine/engine.hpp"
#include "wire/node_address.hpp"

namespace redlock::client {

/// In single quotes, control characters escaped, cut at 64 bytes.
[[nodiscard]] std::string quoted(std::string_view text);

/// What a node said in answer to a question, fit to be shown: no password, no control characters.
[[nodiscard]] std::string cleaned(std::string_view text, const wire::NodeAddress& node);

[[nodiscard]] std::vector<NodeVote> name_ballots(const std::vector<engine::Ballot>& ballots,
                                                 const std::vector<wire::NodeAddress>& nodes);

/// Who keeps a name from being granted, as far as the client itself can tell: a node that refuses
/// does not say.
enum class Rival : std::uint8_t { somebody, this_client, anybody };

/// The error of an operation on this name.
[[nodiscard]] Error describe(std::string_view name, const engine::Failed& failed,
                             const std::vector<wire::NodeAddress>& nodes,
                             Rival rival = Rival::somebody);

}  // namespace redlock::client
