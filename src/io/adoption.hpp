// SPDX-License-Identifier: MIT
// The command that gives a node its marker, unless it has one, and what the node says to it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/types.hpp"
#include "io/node_marker.hpp"
#include "io/value.hpp"

namespace redlock::io {

/// `vouched_run`: of a server that was a replica; otherwise empty.
[[nodiscard]] std::vector<std::string> adoption_command(engine::RandomSource& random,
                                                        const NodeSet& set,
                                                        std::string_view vouched_run);
/// The marker was written by this very command.
[[nodiscard]] bool was_adopted(const Answer& answer);
/// A field of the marker in the answer to HGETALL; empty if there is none.
[[nodiscard]] std::string marker_field(const Answer& answer, std::string_view field);

}  // namespace redlock::io
