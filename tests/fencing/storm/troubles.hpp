// SPDX-License-Identifier: MIT
// What goes wrong during the storm, each on a thread of its own until the board says that it has
// ended: holders are stopped past their lease, nodes are killed and restarted with their data, the
// clock of one node jumps.
#pragma once

#include <chrono>
#include <cstdint>
#include <sys/types.h>
#include <vector>

#include "cluster/fleet.hpp"
#include "fencing/storm/board.hpp"

namespace redlock::storm {

/// Stops a random holder at a random moment, and lets it go on after somebody else has got the
/// lock. How often.
std::uint64_t stop_holders(Board& board, const std::vector<pid_t>& workers);

/// Kills a random node, one at a time, and starts it again with its data. How often.
std::uint64_t kill_nodes(Board& board, cluster::Fleet& fleet);

/// Throws if the node does not heed what is done to its clock, and the storm would be a breeze.
void check_clock_can_be_set(const cluster::Fleet& fleet, std::size_t node);

/// Sets the clock of the node forward by an hour, and back. How often it jumped.
std::uint64_t move_clock(Board& board, const cluster::Fleet& fleet, std::size_t node);

}  // namespace redlock::storm
