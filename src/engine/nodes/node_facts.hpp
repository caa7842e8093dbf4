// SPDX-License-Identifier: MIT
// What is read from a node, apart from replies to commands.
#pragma once

#include <string>

#include "engine/types.hpp"

namespace redlock::engine {

/// What a new connection shows of a node.
struct NodeFacts {
  bool marker = false;          ///< it has one that agrees with this set
  bool durable = false;         ///< it writes to disk before it answers, as far as it can be asked
  bool promoted = false;        ///< it was a replica, and its marker does not vouch for it
  bool newly_promoted = false;  ///< by a promotion that it did not show before
  Duration uptime{};            ///< zero if it is not known
  std::string run = {};         ///< its run id, another with every start
  std::string set = {};         ///< the set that its marker names; empty if it names none
};

}  // namespace redlock::engine
