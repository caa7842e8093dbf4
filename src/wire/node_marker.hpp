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
#include <vector>

#include "engine/nodes/set_configuration.hpp"
#include "wire/key_layout.hpp"
#include "wire/secrets.hpp"
#include "wire/value.hpp"

namespace redlock::wire {

/// The set as a client is configured. Who the members are is said by the markers.
struct SetTerms {
  std::chrono::milliseconds max_lease{};  ///< the longest lease of this client
  KeyLayout layout = redlock_layout;
  double drift_factor = 0.01;
};

struct NodeMarker {
  std::string id;
  std::string layout;
  std::string nodes;
  std::string max_lease_ms;   ///< with a blank and the next one while that is announced
  std::string set_name = {};  ///< random; empty while the set is being formed
  std::string forming = {};   ///< the set that is being formed
  std::string epoch = {};     ///< of `members`
  std::string members = {};   ///< ID=ADDRESS, with blanks between them
  std::string vouched = {};   ///< the promotion of a former replica, if an operator vouched for it

  /// From the answer to HGETALL, or what a script answers in its place; none if the key does not
  /// exist or this is something else.
  [[nodiscard]] static std::optional<NodeMarker> read(const Value& fields);

  /// What it says of the set; nothing while that is being formed: then nobody is of it.
  [[nodiscard]] std::optional<engine::Membership> membership() const;
  /// The members, of a set that is being formed, too.
  [[nodiscard]] engine::SetConfiguration configuration() const;
  /// As adopt.lua compares it.
  [[nodiscard]] std::string state() const;
  /// The text of `max_lease_ms`.
  [[nodiscard]] static std::string max_lease_text(std::chrono::milliseconds max_lease,
                                                  std::chrono::milliseconds announced);
  /// The text of `members`.
  [[nodiscard]] static std::string members_text(const std::vector<engine::Member>& members);

  /// How the marker and this client's set differ: a sentence; none if they agree, which a client
  /// with shorter leases does. Words of the marker in it go through printable() with these secrets.
  [[nodiscard]] std::optional<std::string> disagreement(const SetTerms& set,
                                                        const Secrets& secrets = {}) const;
};

}  // namespace redlock::wire
