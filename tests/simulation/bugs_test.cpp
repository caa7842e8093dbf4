// SPDX-License-Identifier: MIT
// A simulator that finds nothing may be blind. Here each rule of the protocol is switched off in
// turn, and some world must show which promise that breaks: one of the ordinary seeds, judged by
// the promises alone, or a scenario that was written for it.
#include "simulation/bugs.hpp"

#include <atomic>
#include <cstdint>
#include <doctest/doctest.h>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "simulation/plan.hpp"
#include "simulation/promises.hpp"
#include "simulation/run.hpp"
#include "simulation/scenario.hpp"

namespace redlock::simulation {
namespace {

using engine::Bug;

constexpr std::uint64_t last_seed = 90'000;  // some kinds of worlds are rare
constexpr std::size_t budget = 1'000;        // worlds for one bug
constexpr std::size_t second_look = 40;      // for one that a scenario shows

/// Whether the bug can matter in this world: what is done about nodes that forget only where nodes
/// forget, somebody's key of another type only where a lock is taken away for it, and the queue of
/// an owner's calls only where there are such calls.
bool may_matter(std::string_view name, const Plan& plan) {
  using Where = ScriptBug::Where;
  const auto* const of_script = std::ranges::find(script_bugs, name, &ScriptBug::name);
  if (of_script != script_bugs.end()) {
    return of_script->where == Where::everywhere ||
           (of_script->where == Where::forgetful && plan.forgets()) ||
           (of_script->where == Where::forced && plan.forces()) ||
           (of_script->where == Where::waiting && plan.waits) ||
           (of_script->where == Where::cloned && plan.judges_clones()) ||
           (of_script->where == Where::changing && plan.spares > 0);
  }
  switch (engine_bug_named(name).value()) {
    case Bug::quarantine_ignored:
    case Bug::quarantine_by_configuration:
    case Bug::uptime_trusted_without_marker:
    case Bug::other_sets_count:
      return plan.forgets();
    case Bug::second_forgetting_overlooked:
      return plan.flushed_twice;
    case Bug::promotion_trusted:
    case Bug::replica_keeps_its_connection:
    case Bug::role_change_overlooked:
    case Bug::promotion_overlooked:
      return plan.promotions;
    case Bug::foreign_key_denies_nothing:
      return plan.forces();
    case Bug::answered_entry_counts:
    case Bug::entry_fails_with_a_release:
    case Bug::queue_stops_at_failure:
      return plan.owners_per_client > 0;
    case Bug::wake_ignored:
    case Bug::place_changed_by_retry:
    case Bug::turn_of_fixed_length:
    case Bug::entry_left_behind:
    case Bug::failed_call_stays_first:
      return plan.waits;
    case Bug::members_by_one_node:
      return plan.lie == Lie::members;
    case Bug::resized_twice_at_once:
    case Bug::mixed_confirmations:
    case Bug::new_member_counts_at_once:
    case Bug::removed_node_votes:
      return plan.spares > 0;
    case Bug::later_members_not_counted:
      return plan.parted;
    case Bug::fences_not_carried:
      return plan.parted && !plan.stopped_half_way;
    case Bug::resized_without_all:
      return plan.stopped_half_way;
    case Bug::longer_leases_not_awaited:
      return plan.raised > plan.engine.max_lease;
    case Bug::run_id_is_proof:
      return plan.false_run_id;
    case Bug::too_late_keeps_its_place:
      return plan.too_late_clients > 0;
    default:
      return true;
  }
}

/// What the scenarios show; scenarios_test.cpp plays them.
std::map<std::string, std::string, std::less<>> shown_by_scenarios() {
  std::map<std::string, std::string, std::less<>> shown;
  for (const auto& entry : std::filesystem::directory_iterator(SCENARIO_DIR)) {
    if (entry.path().extension() != ".scn") continue;
    for (const auto& expected : read_scenario(entry.path()).breaks)
      shown[expected.bug] = expected.rule;
  }
  return shown;
}

/// The promise that the bug breaks, and what shows it.
struct Shown {
  Promise promise = Promise::none;
  std::string by = "NOBODY";
  std::string rule;
};

Shown show(std::string_view bug, const std::map<std::string, std::string, std::less<>>& scenarios) {
  const auto scenario = scenarios.find(bug);
  std::size_t worlds = scenario == scenarios.end() ? budget : second_look;
  Shown shown;
  const Planted planted(bug);
  for (std::uint64_t seed = 1; seed <= last_seed && worlds > 0 && shown.rule.empty(); ++seed) {
    Plan plan = plan_of(seed);
    if (!may_matter(bug, plan)) continue;
    plan.judges_rules = false;
    --worlds;
    Coverage coverage;
    const RunResult result = run(std::move(plan), coverage);
    if (!result.violation) continue;
    shown.rule = result.violation->rule;
    shown.promise = promise_of(shown.rule);
    if (shown.promise != Promise::none) shown.by = fmt::format("seed {}", seed);
  }
  if (shown.promise != Promise::none || scenario == scenarios.end()) return shown;
  return {promise_of(scenario->second), "a scenario", scenario->second};
}

TEST_CASE("what a bug changes in a script is there once, and is changed") {
  for (const ScriptBug& bug : script_bugs) {
    CAPTURE(bug.name);
    CAPTURE(bug.instead);
    const std::size_t first = bug.script.text.find(bug.instead);
    REQUIRE(first != std::string_view::npos);
    CHECK(bug.script.text.find(bug.instead, first + 1) == std::string_view::npos);
    const Planted planted(bug.name);
    CHECK(with_planted_bugs(bug.script) != bug.script.text);
  }
}

/// One for each bug, found by two threads: a bug is planted in one thread only.
std::vector<Shown> show_all(const std::vector<std::string_view>& bugs) {
  const auto scenarios = shown_by_scenarios();
  std::vector<Shown> shown(bugs.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < bugs.size(); i = next++) shown[i] = show(bugs[i], scenarios);
  };
  std::thread beside(work);
  work();
  beside.join();
  return shown;
}

TEST_CASE("each planted bug breaks a promise, in a seed within the budget or in a scenario") {
  const auto bugs = all_bugs();
  const auto all_shown = show_all(bugs);
  std::string table =
      fmt::format("{:<36} {:<10} {:<12} {}\n", "planted bug", "promise", "shown by", "because");
  for (std::size_t i = 0; i < bugs.size(); ++i) {
    const std::string_view name = bugs[i];
    const Shown& shown = all_shown[i];
    table += fmt::format("{:<36} {:<10} {:<12} {}\n", name,
                         names_of<Promise, 7>[static_cast<std::size_t>(shown.promise)], shown.by,
                         shown.rule);
    CHECK_MESSAGE(shown.promise != Promise::none, "survived: ", name);
  }
  MESSAGE(table);
}

}  // namespace
}  // namespace redlock::simulation
