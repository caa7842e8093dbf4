// SPDX-License-Identifier: MIT
// One plan, one run.
#pragma once

#include <optional>

#include "simulation/fault.hpp"
#include "simulation/invariants.hpp"
#include "simulation/plan.hpp"
#include "simulation/trace.hpp"

namespace redlock::simulation {

struct RunResult {
  std::uint64_t hash = 0;
  std::uint64_t steps = 0;
  Invariants::Counts counts;
  std::optional<Violation> violation;
};

/// The same for the same plan, whoever reads along.
RunResult run(Plan plan, Coverage& coverage, Trace::Reader reader = {});

/// What to print when a seed fails: the violation, the world, how to see it again, the last steps.
[[nodiscard]] std::string report(const Plan& plan, const Violation& violation);

}  // namespace redlock::simulation
