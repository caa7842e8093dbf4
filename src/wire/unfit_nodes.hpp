// SPDX-License-Identifier: MIT
// What to do with a node that no quorum may count: a replica, a cluster node, a server that is too
// old, whose marker names another set, or that is listed twice.
#pragma once

#include <cstdint>

namespace redlock::wire {

enum class UnfitNodes : std::uint8_t {
  refuse,  ///< close the connection: the node does not vote, and the reason is its error
  report,  ///< keep the connection, with the reason as a warning: for questions only
};

}  // namespace redlock::wire
