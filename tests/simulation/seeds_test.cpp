// SPDX-License-Identifier: MIT
// The fixed seeds: what every change must pass. New ones are looked for with ./dev simulate.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "simulation/budget.hpp"
#include "simulation/run.hpp"

namespace redlock::simulation {
namespace {

constexpr std::uint64_t seeds = 1'500;
constexpr std::uint64_t fewest_seeds = 100;

TEST_CASE("no seed of the fixed set breaks a promise, and every fault hits every phase") {
  Coverage coverage;
  RunResult sum;
  const SeedBudget budget(fewest_seeds);
  std::uint64_t done = 0;
  while (done < seeds && budget.goes_on(done)) {
    const std::uint64_t seed = ++done;
    const RunResult result = run(seed, coverage);
    if (result.violation) FAIL(report(seed, *result.violation));
    sum.steps += result.steps;
    sum.counts.requests += result.counts.requests;
    sum.counts.granted += result.counts.granted;
    sum.counts.lost += result.counts.lost;
    sum.counts.stale_writes += result.counts.stale_writes;
  }
  MESSAGE(fmt::format(
      "{} of {} seeds: {} steps, {} acquisitions asked for, {} granted, {} leases lost", done,
      seeds, sum.steps, sum.counts.requests, sum.counts.granted, sum.counts.lost));
  if (done < seeds) return;
  // Some faults hit a phase once in several hundred seeds.
  CHECK_MESSAGE(coverage.empty_cells() == 0, coverage.table());
  // Otherwise the promises would have been judged in worlds where they are never at stake.
  CHECK(sum.counts.stale_writes > 100);
  CHECK(sum.counts.lost > 1'000);
}

TEST_CASE("a seed makes the same run again, whether or not somebody reads along") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Coverage coverage;
    const RunResult first = run(seed, coverage);
    std::size_t lines = 0;
    const RunResult second = run(seed, coverage, [&](const std::string&) { ++lines; });
    CHECK(first.hash == second.hash);
    CHECK(lines == second.steps);
    CHECK(first.hash != run(seed + 1, coverage).hash);
  }
}

}  // namespace
}  // namespace redlock::simulation
