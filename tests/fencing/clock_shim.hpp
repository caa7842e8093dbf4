// SPDX-License-Identifier: MIT
// Real servers with a wall clock that the test can set; see clock_shim.cpp.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <doctest/doctest.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <string>

#include "cluster/fleet.hpp"
#include "support/processes.hpp"
#include "support/temporary_directory.hpp"

namespace redlock::testing {

/// A fleet whose nodes take their clocks from the file `clock` in this directory, or, if that is
/// empty, each from one in its own directory.
[[nodiscard]] inline cluster::Fleet fleet_with_clocks(const TemporaryDirectory& place,
                                                      const cluster::FleetOptions& options,
                                                      const std::string& directory = {}) {
  const char* const chosen = std::getenv("REDLOCK_REDIS_SERVER");
  const std::string server = chosen != nullptr ? chosen : "redis-server";
  const ScopedVariable with_shim(
      "REDLOCK_REDIS_SERVER",
      script_in(
          place, "redis-server-with-shim",
          fmt::format("LD_PRELOAD='{}' CLOCK_SHIM_FILE=\"{}/clock\" exec {} \"$@\"\n",
                      REDLOCK_CLOCK_SHIM, directory.empty() ? "${1%/*}" : directory, server)));
  return cluster::Fleet(options);
}

/// Of the servers whose clock is in this directory, from now on.
inline void set_clock_ahead(const std::filesystem::path& directory, std::chrono::seconds by) {
  const std::int64_t offset = by.count();
  std::fstream file(directory / "clock", std::ios::in | std::ios::out);
  file.write(reinterpret_cast<const char*>(&offset), sizeof offset);
  file.close();
  REQUIRE(file.good());
}

}  // namespace redlock::testing
