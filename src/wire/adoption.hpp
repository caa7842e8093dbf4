// SPDX-License-Identifier: MIT
// The commands that look for a node's marker and write it, and what the node's replies mean.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/types.hpp"
#include "wire/node_marker.hpp"
#include "wire/value.hpp"

namespace redlock::wire {

/// 128 random bits in hexadecimal.
[[nodiscard]] std::string random_id(engine::RandomSource& random);
/// `name`: of the set; may be empty. `promotion`: of a server that was a replica; otherwise empty.
/// `client`: whose note must be there; empty if an operator adopts the node.
[[nodiscard]] std::vector<std::string> adoption_command(engine::RandomSource& random,
                                                        const SetTerms& set, std::string_view name,
                                                        std::string_view promotion,
                                                        std::string_view client = {});
/// Leaves the client's note on a node that has no marker.
[[nodiscard]] std::vector<std::string> note_command(std::string_view client, const SetTerms& set);
/// Asks whether there is a marker, or a note of a client that will write one.
[[nodiscard]] std::vector<std::string> look_command(const SetTerms& set);
[[nodiscard]] bool found_any(const Answer& answer);
/// The marker was written by this very command.
[[nodiscard]] bool was_adopted(const Answer& answer);
/// There is no marker, and this client's note is gone too: the node has lost its data since the
/// note was left.
[[nodiscard]] bool has_forgotten_since(const Answer& answer);

}  // namespace redlock::wire
