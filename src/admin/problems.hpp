// SPDX-License-Identifier: MIT
// From what was found to what is wrong with it: the knowledge behind `doctor`, apart from asking,
// so that it can be read as a list of rules.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <redlock/admin.hpp>

#include "wire/node_marker.hpp"

namespace redlock::client {

/// What a client takes its nodes for.
struct Expectation {
  wire::SetTerms set;
  std::chrono::nanoseconds drift_allowance{};
  /// The name that a quorum of the markers have, perhaps empty; none if they share no name.
  std::optional<std::string> set_name{};
  /// They share none, and nodes that were not reached may name it.
  bool set_open = false;
};

/// What is wrong with one node.
[[nodiscard]] std::vector<Problem> problems_of_node(const NodeHealth& node,
                                                    const Expectation& expected);

/// What is wrong with the set as a whole, beyond its nodes.
[[nodiscard]] std::vector<Problem> problems_of_set(const std::vector<NodeHealth>& nodes,
                                                   const Expectation& expected);

}  // namespace redlock::client
