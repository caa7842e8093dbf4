// SPDX-License-Identifier: MIT
// The marker: a hash on each node, redlock:node, that says which set of nodes it belongs to. All
// programs of a set must mean the same set, or two quorums need not share a node. Whether the nodes
// of a client name the same set is judged over all of them, by engine::SetMembership.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "wire/key_layout.hpp"
#include "wire/secrets.hpp"
#include "wire/value.hpp"

namespace redlock::wire {

/// The set as a client is configured.
struct SetTerms {
  std::size_t nodes = 0;
  std::chrono::milliseconds max_lease{};
  KeyLayout layout = redlock_layout;
};

struct NodeMarker {
  std::string id;
  std::string layout;
  std::string nodes;
  std::string max_lease_ms;
  std::string set_name = {};  ///< random; empty if it has none
  std::string vouched = {};   ///< the promotion of a former replica, if an operator vouched for it

  /// From the answer to HGETALL, or what a script answers in its place; none if the key does not
  /// exist or this is something else.
  [[nodiscard]] static std::optional<NodeMarker> read(const Value& fields);

  /// How the marker and this client's set differ: a sentence; none if they agree. Words of the
  /// marker in it go through printable() with these secrets.
  [[nodiscard]] std::optional<std::string> disagreement(const SetTerms& set,
                                                        const Secrets& secrets = {}) const;
};

}  // namespace redlock::wire
