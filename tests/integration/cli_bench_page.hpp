// SPDX-License-Identifier: MIT
// A page of `redlock bench --report`, for tests that read it or have a browser show it.
#pragma once

#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "cli_process.hpp"
#include "cluster/fleet.hpp"

namespace redlock::testing {

/// The page of a short run in which a node hangs, written to `file`.
inline std::string make_bench_page(const std::filesystem::path& file) {
  const cluster::Fleet fleet({.nodes = 5});
  const auto finished =
      redlock({"bench", "--scenario", "minority-hung", "--duration", "600ms", "--concurrency", "4",
               "--node-timeout", "10s", "--lease", "10s", "--report", file.string(), "--assert",
               "p99<60s", "--assert", "p50<1us"},
              nodes_variable(fleet.uris()));
  REQUIRE_MESSAGE(finished.status == 3, finished.err);
  std::ifstream page(file);
  return {std::istreambuf_iterator<char>(page), {}};
}

}  // namespace redlock::testing
