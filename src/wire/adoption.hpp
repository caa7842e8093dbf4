// SPDX-License-Identifier: MIT
// The commands that look for a node's marker and write it, and what the node's replies mean.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/types.hpp"
#include "wire/node_marker.hpp"
#include "wire/value.hpp"

namespace redlock::wire {

/// 128 random bits in hexadecimal.
[[nodiscard]] std::string random_id(engine::RandomSource& random);
/// One of those by which a marker comes to say what it is to say.
struct AdoptionStep {
  std::string seen = {};  ///< NodeMarker::state() of the marker that it replaces; empty: none
  enum class Kind {
    joins,
    leaves,  ///< the marker is removed
    forms,   ///< other members have to agree before it counts
    asks,    ///< whether the node would take it; it promises `change` then, and is told nothing
  } kind = Kind::joins;
  std::string change = {};  ///< a random id, of a change of the members; empty: it is none
};
/// With which id a node that has no marker must still be pending, and the new one that it gets if
/// it is not.
struct StillPending {
  std::string id;
  std::string next;
};
/// `promotion`: of a server that was a replica; otherwise empty. `pending`: none if an operator
/// adopts the node. The number of members is changed once in `rules::over_everywhere`. What is
/// noted at the node is kept by the longest lease in `set`.
[[nodiscard]] std::vector<std::string> adoption_command(const SetTerms& set,
                                                        const engine::Membership& marker,
                                                        const AdoptionStep& step,
                                                        std::string_view promotion,
                                                        const StillPending* pending = nullptr);
/// Marks a node that has no marker as pending.
[[nodiscard]] std::vector<std::string> pending_command(engine::RandomSource& random,
                                                       const SetTerms& set);
/// Asks whether there is a marker, or a client that will write one.
[[nodiscard]] std::vector<std::string> look_command(const SetTerms& set);
[[nodiscard]] bool found_any(const Answer& answer);
/// The marker was written by this very command.
[[nodiscard]] bool was_adopted(const Answer& answer);
/// It was not, because the number of members was changed not long ago: how long it has to stay.
[[nodiscard]] std::optional<std::chrono::milliseconds> stays_for(const Answer& answer);
/// Asks which change of the members has the node's promise: the reply is its id.
[[nodiscard]] std::vector<std::string> change_command(const SetTerms& set);
/// It was not, because another change of the members has the node's promise.
[[nodiscard]] bool promised_another(const Answer& answer);
/// There is no marker: the id with which the node is pending.
[[nodiscard]] std::optional<std::string> pending_id(const Answer& answer);

}  // namespace redlock::wire
