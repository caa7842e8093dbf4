// SPDX-License-Identifier: MIT
// What is read from a node, apart from replies to commands.
#pragma once

#include <cstdint>
#include <string>

#include "engine/types.hpp"

namespace redlock::engine {

/// What is known of a node's marker.
enum class MarkerState : std::uint8_t {
  there,
  gone,
  gone_anew,  ///< this client's note is gone as well: the node has lost its data once more
};

/// What a new connection shows of a node.
struct NodeFacts {
  bool marker = false;    ///< it has one that agrees with this set
  bool durable = false;   ///< it writes to disk before it answers, as far as it can be asked
  bool promoted = false;  ///< it was a replica, and its marker does not vouch for it
  Duration uptime{};      ///< zero if it is not known
  std::string run = {};   ///< its run id, another with every start
  std::string set = {};   ///< the set that its marker names; empty if it names none
};

}  // namespace redlock::engine
