// SPDX-License-Identifier: MIT
// Many seeds on all cores.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace redlock::simulation {

struct Exploration {
  std::uint64_t first_seed = 1;
  std::chrono::seconds length{60};
  unsigned threads = 1;
  std::string bug = "none";
  bool judges_rules = true;  ///< or promises alone
  bool waiting = false;      ///< only worlds that judge how callers wait
};

/// Runs one seed after the other until the time is over or a promise is broken; prints progress,
/// and at the end figures and coverage. False if a promise was broken.
bool explore(const Exploration& what);

}  // namespace redlock::simulation
