// SPDX-License-Identifier: MIT
// The fixed seeds: what every change must pass. New ones are looked for with ./dev simulate.
#include <chrono>
#include <cstdlib>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>

#include "simulation/run.hpp"

namespace redlock::simulation {
namespace {

constexpr std::uint64_t seeds = 1'500;
/// However little time there is.
constexpr std::uint64_t fewest_seeds = 100;

/// With REDLOCK_SIMULATE_FOR=SECONDS in the environment no seed begins later than that, but for the
/// fewest. Without it all are run.
std::chrono::steady_clock::time_point begun_by() {
  const char* const seconds = std::getenv("REDLOCK_SIMULATE_FOR");
  if (seconds == nullptr) return std::chrono::steady_clock::time_point::max();
  return std::chrono::steady_clock::now() + std::chrono::seconds(std::stoul(seconds));
}

struct Sum {
  std::uint64_t steps = 0;
  Invariants::Counts counts;
  Coverage coverage;
};

/// Promises that are judged in worlds where they are never at stake have not been judged. It is
/// asked only of fixed numbers of seeds, so that what it finds does not depend on the machine.
void check_at_stake(const Sum& sum, std::uint64_t done, std::size_t most_empty_cells) {
  MESSAGE(fmt::format("{} seeds: {} leases lost, {} stale writes, {} cells without a fault", done,
                      sum.counts.lost, sum.counts.stale_writes, sum.coverage.empty_cells()));
  CHECK_MESSAGE(sum.coverage.empty_cells() <= most_empty_cells, sum.coverage.table());
  CHECK_MESSAGE(sum.coverage.absent_faults() == 0, sum.coverage.table());
  CHECK(sum.counts.stale_writes * 15 > done);
  CHECK(sum.counts.lost * 3 > 2 * done);
}

TEST_CASE("no seed of the fixed set breaks a promise, and no fault is left out") {
  Sum sum;
  const auto limit = begun_by();
  std::uint64_t done = 0;
  while (done < fewest_seeds || (done < seeds && std::chrono::steady_clock::now() < limit)) {
    const Plan plan = plan_of(++done);
    const RunResult result = run(plan, sum.coverage);
    if (result.violation) FAIL(report(plan, *result.violation));
    sum.steps += result.steps;
    sum.counts.add(result.counts);
    // Every fault hits every phase, but some once in several hundred seeds.
    if (done == fewest_seeds) check_at_stake(sum, done, fault_count * phase_count / 6);
    if (done == seeds) check_at_stake(sum, done, 0);
  }
  MESSAGE(fmt::format(
      "{} of {} seeds: {} steps, {} acquisitions asked for, {} granted, {} leases lost", done,
      seeds, sum.steps, sum.counts.requests, sum.counts.granted, sum.counts.lost));
}

TEST_CASE("a seed makes the same run again, whether or not somebody reads along") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Coverage coverage;
    const RunResult first = run(plan_of(seed), coverage);
    std::size_t lines = 0;
    const RunResult second = run(plan_of(seed), coverage, [&](const std::string&) { ++lines; });
    CHECK(first.hash == second.hash);
    CHECK(lines == second.steps);
    CHECK(first.hash != run(plan_of(seed + 1), coverage).hash);
  }
}

}  // namespace
}  // namespace redlock::simulation
