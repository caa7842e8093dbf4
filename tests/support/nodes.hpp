// SPDX-License-Identifier: MIT
// What tests do to all nodes of a fleet, and ask of one, without the library.
#pragma once

#include <cstddef>
#include <fmt/core.h>
#include <string>
#include <vector>

#include "cluster/fleet.hpp"
#include "support/processes.hpp"
#include "support/text.hpp"

namespace redlock::testing {

inline void run_on_all(const cluster::Fleet& fleet, const std::vector<std::string>& command) {
  for (std::size_t node = 0; node < fleet.size(); ++node) fleet.run(node, command);
}

inline void pause_all(cluster::Fleet& fleet) {
  for (std::size_t node = 0; node < fleet.size(); ++node) fleet.pause(node);
}

/// The address of each node for this user, "ann:password".
inline std::vector<std::string> uris_as(const std::string& login, const cluster::Fleet& fleet) {
  std::vector<std::string> uris;
  for (std::size_t node = 0; node < fleet.size(); ++node) {
    uris.push_back(fmt::format("redis://{}@127.0.0.1:{}", login, fleet.port(node)));
  }
  return uris;
}

inline bool is_locked_on(const cluster::Fleet& fleet, std::size_t node, const std::string& name) {
  return fleet.run(node, {"EXISTS", "redlock:lock:{" + name + "}"}) != "0";
}

/// Of those that run.
inline std::size_t nodes_with_lock(const cluster::Fleet& fleet, const std::string& name) {
  std::size_t count = 0;
  for (std::size_t node = 0; node < fleet.size(); ++node) {
    if (fleet.state(node) == cluster::NodeState::running && is_locked_on(fleet, node, name)) {
      ++count;
    }
  }
  return count;
}

/// What stands behind this name in a section of INFO; nothing if the name is not there.
inline std::string info_of(const cluster::Fleet& fleet, std::size_t node,
                           const std::string& section, const std::string& name) {
  const std::string text = "\n" + fleet.run(node, {"INFO", section});
  const auto at = text.find("\n" + name + ":");
  if (at == std::string::npos) return {};
  const auto begin = at + name.size() + 2;
  return text.substr(begin, text.find_first_of("\r\n", begin) - begin);
}

/// How often the node has executed this command.
inline int calls_of(const cluster::Fleet& fleet, std::size_t node, const std::string& command) {
  const auto statistics = info_of(fleet, node, "commandstats", "cmdstat_" + command);
  return statistics.empty() ? 0 : std::stoi(statistics.substr(std::string("calls=").size()));
}

/// Makes the node a replica of the one at this port; whether it has the data of that soon.
[[nodiscard]] inline bool soon_replicates(const cluster::Fleet& fleet, std::size_t node,
                                          std::uint16_t port) {
  fleet.run(node, {"REPLICAOF", "127.0.0.1", std::to_string(port)});
  return eventually(
      [&] { return info_of(fleet, node, "replication", "master_link_status") == "up"; });
}

/// Without slots a node of a Redis Cluster serves no key at all.
[[nodiscard]] inline bool soon_has_all_slots(const cluster::Fleet& fleet, std::size_t node) {
  std::vector<std::string> all_slots{"CLUSTER", "ADDSLOTS"};  // Redis 6.2 knows no ranges
  for (int slot = 0; slot < 16'384; ++slot) all_slots.push_back(std::to_string(slot));
  // It writes its state to the disk, and waits for it, which a busy machine may keep waiting.
  fleet.run(node, all_slots, std::chrono::minutes(1));
  return eventually([&] { return fleet.run(node, {"SET", "any", "thing"}) == "OK"; });
}

}  // namespace redlock::testing
