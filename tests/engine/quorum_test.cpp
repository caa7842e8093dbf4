// SPDX-License-Identifier: MIT
// Quorum arithmetic, the smallest unit and the one that everything rests on.
#include "engine/quorum.hpp"

#include <doctest/doctest.h>

using namespace redlock::engine;

TEST_CASE("a quorum is more than half of the configured nodes, and two quorums share a node") {
  for (std::uint32_t nodes = 1; nodes <= NodeSet::max_nodes; ++nodes) {
    CHECK(2 * quorum_of(nodes) > nodes);
    CHECK(2 * (quorum_of(nodes) - 1) <= nodes);
  }
  CHECK(quorum_of(1) == 1);
  CHECK(quorum_of(2) == 2);
  CHECK(quorum_of(4) == 3);
  CHECK(quorum_of(5) == 3);
}

TEST_CASE("first(n) is the set of n nodes, also of none and of 64") {
  for (std::uint32_t nodes = 0; nodes <= NodeSet::max_nodes; ++nodes) {
    NodeSet odd;
    NodeSet even;
    for (NodeIndex node = 0; node < nodes; ++node) (node % 2 == 0 ? even : odd).insert(node);
    CHECK((odd | even) == NodeSet::first(nodes));
    CHECK(NodeSet::first(nodes).size() == nodes);
    even.erase(0);
    CHECK_FALSE(even.contains(0));
    CHECK((nodes < 2 || (odd | even).contains(nodes - 1)));
  }
}
