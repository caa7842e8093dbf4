// SPDX-License-Identifier: MIT
// Facts about a node, apart from replies to commands.
#pragma once

#include <optional>
#include <string>

#include "engine/nodes/set_configuration.hpp"
#include "engine/types.hpp"

namespace redlock::engine {

/// The facts that a new connection shows.
struct NodeFacts {
  std::optional<Membership> marker = {};  ///< that agrees with this client's options
  bool durable = false;         ///< it writes to disk before it answers, as far as it can be asked
  bool promoted = false;        ///< it was a replica, and its marker does not vouch for it
  bool newly_promoted = false;  ///< by a promotion that earlier connections did not show
  Duration uptime{};            ///< zero if it is not known
  Duration clock_noted{};       ///< for how long its clock is not to be trusted, by a client's note
  std::string run = {};         ///< its run id, new with every start
};

}  // namespace redlock::engine
