// SPDX-License-Identifier: MIT
// The messages between the engine and the nodes, and the engine's decisions, in words: a line each
// of ClientOptions::trace, and of the simulator's log. Names of locks are escaped; passwords were
// removed from the nodes' replies when they were read.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "engine/engine.hpp"
#include "wire/node_address.hpp"
#include "wire/wake.hpp"

namespace redlock::wire {

/// Of all nodes, whose labels then stand behind their numbers; or none.
using NodeAddresses = std::span<const NodeAddress>;

[[nodiscard]] std::string in_words(const engine::Reply& reply);

/// "node 2 (redis://10.0.0.3:6379) <- acquire for grant 5: ...": a message to the node.
[[nodiscard]] std::string in_words(const engine::Send& send, NodeAddresses nodes = {});
/// "node 2 (...) -> granted 17 (acquire for grant 5, 312 us)": a reply of the node, or of the
/// driver.
[[nodiscard]] std::string in_words(engine::Instant now, engine::NodeIndex node,
                                   const engine::Tag& tag, const engine::Reply& reply,
                                   NodeAddresses nodes = {});
/// "node 2 (...) -> wakes line 3": what it pushes.
[[nodiscard]] std::string in_words(engine::NodeIndex node, const Wake& wake,
                                   NodeAddresses nodes = {});
/// "node 2 (...) may vote", and what is unsafe about it.
[[nodiscard]] std::string in_words(engine::NodeIndex node, std::string_view warning,
                                   NodeAddresses nodes = {});
/// "node 2 (...) cannot vote: timed_out: ...".
[[nodiscard]] std::string in_words(engine::NodeIndex node, const engine::Unavailable& why,
                                   NodeAddresses nodes = {});
/// A decision. Votes are in the order of the nodes.
[[nodiscard]] std::string in_words(engine::Instant now, const engine::ClientOutput& output,
                                   NodeAddresses nodes = {});

}  // namespace redlock::wire
