// SPDX-License-Identifier: MIT
// From what was found to what is wrong with it: the knowledge behind `doctor`, apart from asking,
// so that it can be read as a list of rules.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include <redlock/admin.hpp>

namespace redlock::api {

/// What a client takes its nodes for.
struct Expectation {
  std::size_t nodes = 0;
  std::chrono::milliseconds max_lease{};
  std::chrono::nanoseconds drift_allowance{};
};

/// Whether the marker is that of the expected set. If not, a sentence says how it differs.
[[nodiscard]] std::string disagreement(const Marker& marker, const Expectation& expected);

/// What is wrong with one node.
[[nodiscard]] std::vector<Problem> problems_of_node(const NodeHealth& node,
                                                    const Expectation& expected);

/// What is wrong with the set as a whole, beyond its nodes.
[[nodiscard]] std::vector<Problem> problems_of_set(const std::vector<NodeHealth>& nodes,
                                                   const Expectation& expected);

}  // namespace redlock::api
