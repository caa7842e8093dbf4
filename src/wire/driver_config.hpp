// SPDX-License-Identifier: MIT
// The settings of a driver, in a header of their own: those who fill them in need nothing else.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "wire/holder_text.hpp"
#include "wire/node_address.hpp"
#include "wire/unfit_nodes.hpp"

namespace redlock::wire {

struct DriverConfig {
  std::vector<NodeAddress> nodes;
  engine::Config engine;  ///< its `nodes` follows from the list
  /// Of a connection and its handshake. Streams keeps it until on_connected().
  std::chrono::milliseconds connect_timeout{1'000};
  std::string client_name = "redlock";
  HolderText holder{};  ///< the note that nodes keep beside the owner of a lock
  UnfitNodes unfit = UnfitNodes::refuse;
  /// How often a connection is used at least, so that a dead one is noticed and replaced before it
  /// is needed. Also how often the nodes' clocks are read.
  std::chrono::milliseconds probe_interval{10'000};
  /// How many bytes may wait to be written to one node.
  std::size_t unsent_limit = std::size_t{256} << 20;
  /// How many commands one node may leave unanswered. A client that gives a million leases back at
  /// once has half that number under way, and its nodes finish them in some seconds.
  std::size_t unanswered_limit = 2'000'000;
  /// And for how long the oldest: no healthy node is that far behind, and an answer to so old a
  /// command is of no use.
  std::chrono::milliseconds unanswered_for{30'000};
};

}  // namespace redlock::wire
