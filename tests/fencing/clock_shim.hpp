// SPDX-License-Identifier: MIT
// Real servers with a wall clock that the test can set; see clock_shim.cpp.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <stdexcept>
#include <string>

#include "cluster/fleet.hpp"
#include "support/processes.hpp"
#include "support/temporary_directory.hpp"

namespace redlock::testing {

/// A program that is redis-server with a clock: that of the file `clock` in this directory, or, if
/// that is empty, in the node's own.
[[nodiscard]] inline std::string server_with_clock(const TemporaryDirectory& place,
                                                   const std::string& directory = {}) {
  const char* const chosen = std::getenv("REDLOCK_REDIS_SERVER");
  return script_in(place, "redis-server-with-clock",
                   fmt::format("LD_PRELOAD='{}' CLOCK_SHIM_FILE=\"{}/clock\" exec {} \"$@\"\n",
                               REDLOCK_CLOCK_SHIM, directory.empty() ? "${1%/*}" : directory,
                               chosen != nullptr ? chosen : "redis-server"));
}

/// A fleet of such servers. A node that is restarted has the machine's clock.
[[nodiscard]] inline cluster::Fleet fleet_with_clocks(const TemporaryDirectory& place,
                                                      const cluster::FleetOptions& options,
                                                      const std::string& directory = {}) {
  const ScopedVariable chosen("REDLOCK_REDIS_SERVER", server_with_clock(place, directory));
  return cluster::Fleet(options);
}

/// Of the servers whose clock is in this directory, from now on.
inline void set_clock_ahead(const std::filesystem::path& directory, std::chrono::seconds by) {
  const std::int64_t offset = by.count();
  std::fstream file(directory / "clock", std::ios::in | std::ios::out);
  file.write(reinterpret_cast<const char*>(&offset), sizeof offset);
  if (!file.flush()) throw std::runtime_error("the clock of a node cannot be set");
}

}  // namespace redlock::testing
