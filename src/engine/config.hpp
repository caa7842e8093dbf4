// SPDX-License-Identifier: MIT
// The configuration of one client; every machine of the engine reads it.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/nodes/set_configuration.hpp"
#include "engine/types.hpp"

namespace redlock::engine {

struct Config {
  /// At the start; members may be added later, as far as there are slots for them.
  std::uint32_t nodes = 0;
  std::uint32_t slots = 0;  ///< 0: as many as nodes
  /// Of the nodes, as markers name them. Without it a node that lost its marker gets no other.
  std::vector<std::string> addresses = {};
  double drift_factor = 0.01;
  Duration node_timeout = std::chrono::milliseconds(250);
  /// The pauses that tests have; a client has those of its ClientOptions: 20, 60 and 60 ms.
  Duration retry_min = std::chrono::milliseconds(50);
  Duration retry_max = std::chrono::milliseconds(150);
  Duration retry_cap = std::chrono::milliseconds(500);
  bool clock_floor = true;
  /// No lease of this client is longer; zero: none is longer than the nodes' markers say.
  std::chrono::milliseconds max_lease = usual_max_lease;
  /// Whether a node that may have forgotten a grant has to wait before it votes.
  bool quarantine = false;
  /// Attempts under way at once, at first (see Admission); others wait for room.
  std::uint32_t attempts_at_once = 128;
  /// The same for rounds that extend or enter a lease.
  std::uint32_t rounds_at_once = 500;
};

}  // namespace redlock::engine
