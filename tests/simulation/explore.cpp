// SPDX-License-Identifier: MIT
#include "simulation/explore.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fmt/format.h>
#include <mutex>
#include <thread>
#include <vector>

#include "simulation/bugs.hpp"
#include "simulation/run.hpp"

namespace redlock::simulation {
namespace {

using Clock = std::chrono::steady_clock;

/// What all threads have done together.
struct Total {
  std::mutex mutex;
  Coverage coverage;
  std::uint64_t runs = 0;
  std::uint64_t steps = 0;
  Invariants::Counts counts;
  std::uint64_t broken_seed = 0;
  std::optional<Violation> violation;

  void add(std::uint64_t seed, const RunResult& result, const Coverage& covered) {
    const std::lock_guard lock(mutex);
    coverage.add(covered);
    ++runs;
    steps += result.steps;
    counts.requests += result.counts.requests;
    counts.attempts += result.counts.attempts;
    counts.granted += result.counts.granted;
    counts.lost += result.counts.lost;
    counts.stale_writes += result.counts.stale_writes;
    counts.longest_free = std::max(counts.longest_free, result.counts.longest_free);
    if (result.violation && !violation) {
      violation = result.violation;
      broken_seed = seed;
    }
  }
};

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void print_progress(Total& total, Clock::time_point start) {
  const std::lock_guard lock(total.mutex);
  const double seconds = since(start);
  fmt::print(stderr,
             "{:>5.0f} s  {} runs, {:.1f} million steps, {:.2f} million steps/s, {} granted\n",
             seconds, total.runs, static_cast<double>(total.steps) / 1e6,
             static_cast<double>(total.steps) / 1e6 / seconds, total.counts.granted);
}

void print_figures(const Total& total, double seconds) {
  const auto per_minute = [&](std::uint64_t count) {
    return static_cast<std::uint64_t>(static_cast<double>(count) * 60 / seconds);
  };
  fmt::print("{}", total.coverage.table());
  fmt::print("empty cells: {}\n", total.coverage.empty_cells());
  fmt::print("{} runs in {:.1f} s: {} steps ({:.2f} million a second)\n", total.runs, seconds,
             total.steps, static_cast<double>(total.steps) / 1e6 / seconds);
  fmt::print("acquisitions asked for {} ({} a minute), attempts {}, granted {} ({} a minute)\n",
             total.counts.requests, per_minute(total.counts.requests), total.counts.attempts,
             total.counts.granted, per_minute(total.counts.granted));
  fmt::print("the longest that a free lock was waited for: {} ms\n",
             total.counts.longest_free / std::chrono::milliseconds(1));
  fmt::print("leases lost {}, stale accesses turned away {}\n", total.counts.lost,
             total.counts.stale_writes);
}

}  // namespace

bool explore(const Exploration& what) {
  Total total;
  std::atomic<std::uint64_t> next_seed{what.first_seed};
  std::atomic<bool> stop{false};
  const auto work = [&] {
    const Planted planted(what.bug);
    while (!stop) {
      const std::uint64_t seed = next_seed++;
      Coverage coverage;
      Plan plan = plan_of(seed);
      if (what.waiting && !plan.waits) continue;
      plan.judges_rules = what.judges_rules;
      const RunResult result = run(std::move(plan), coverage);
      total.add(seed, result, coverage);
      if (result.violation) stop = true;
    }
  };
  const Clock::time_point start = Clock::now();
  fmt::print(stderr, "{} threads, seeds from {}\n", what.threads, what.first_seed);
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < what.threads; ++i) threads.emplace_back(work);
  for (int ticks = 1; !stop && since(start) < static_cast<double>(what.length.count()); ++ticks) {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    if (ticks % 50 == 0) print_progress(total, start);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  print_figures(total, since(start));
  if (!total.violation) return true;
  const Planted planted(what.bug);
  Plan plan = plan_of(total.broken_seed);
  plan.judges_rules = what.judges_rules;
  fmt::print("{}", report(plan, *total.violation));
  return false;
}

}  // namespace redlock::simulation
