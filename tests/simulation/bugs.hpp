// SPDX-License-Identifier: MIT
// The planted bugs by their names.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/planted_bug.hpp"
#include "simulation/script_bugs.hpp"

namespace redlock::simulation {

inline constexpr auto bug_count = static_cast<std::size_t>(engine::Bug::count_of_bugs);

/// Those of the library, in the order of engine::Bug.
inline constexpr std::array<std::string_view, bug_count> bug_names = {
    "none",
    "max_without_settling",
    "every_held_settles",
    "damaged_fence_carried",
    "floor_of_one_node",
    "attach_believes_token",
    "handed_over_revived",
    "late_hold_not_awaited",
    "foreign_key_denies_nothing",
    "give_up_ignored",
    "owner_reused",
    "validity_from_completion",
    "validity_checked_against_old_time",
    "latest_confirmation_counts",
    "no_drift_allowance",
    "denial_not_withdrawn",
    "quorum_of_connected",
    "unavailable_counts_as_refused",
    "releases_only_what_was_granted",
    "loss_without_release",
    "late_win_not_released",
    "acquire_resent_behind_release",
    "debts_not_repeated",
    "lost_quorum_healed",
    "lost_lease_revived",
    "loss_reported_too_late",
    "failed_extend_releases",
    "request_forgotten_at_loss",
    "quarantine_ignored",
    "quarantine_by_configuration",
    "uptime_trusted_without_marker",
    "second_forgetting_overlooked",
    "markers_ignored_without_quarantine",
    "other_sets_count",
    "promotion_trusted",
    "clocks_not_watched",
    "round_trip_ignored",
    "own_clock_never_blamed",
    "moved_clock_keeps_its_votes",
    "renewed_after_release",
    "rounds_mixed",
    "failed_entry_counts",
    "failed_entry_stays_on_nodes",
    "leave_not_told",
    "turn_not_given",
    "answered_entry_counts",
    "entry_fails_with_a_release",
    "queue_stops_at_failure",
    "wake_ignored",
    "place_changed_by_retry",
    "entry_left_behind",
    "failed_call_stays_first",
    "timers_sleep_in_suspend",
    "replaced_connection_left_alive",
    "replica_keeps_its_connection",
    "role_change_overlooked",
    "promotion_overlooked",
};

[[nodiscard]] constexpr std::optional<engine::Bug> engine_bug_named(std::string_view name) {
  for (std::size_t i = 0; i < bug_count; ++i) {
    if (bug_names[i] == name) return static_cast<engine::Bug>(i);
  }
  return std::nullopt;
}

/// The names of all bugs, those of scripts last.
[[nodiscard]] inline std::vector<std::string_view> all_bugs() {
  std::vector<std::string_view> names(bug_names.begin() + 1, bug_names.end());
  for (const ScriptBug& bug : script_bugs) {
    if (std::ranges::count(names, bug.name) == 0) names.push_back(bug.name);
  }
  return names;
}

[[nodiscard]] inline bool is_bug(std::string_view name) {
  return name == bug_names.front() || std::ranges::count(all_bugs(), name) > 0;
}

/// Plants a bug in this thread for as long as it lives: in the library, in its scripts, or in both.
class Planted {
 public:
  explicit Planted(std::string_view name) : name_(name) {
    engine::the_planted_bug = engine_bug_named(name_).value_or(engine::Bug::none);
    if (std::ranges::count(script_bugs, name_, &ScriptBug::name) > 0) {
      the_planted_script_bug = name_;
    }
  }
  ~Planted() {
    engine::the_planted_bug = engine::Bug::none;
    the_planted_script_bug = {};
  }
  Planted(const Planted&) = delete;
  Planted& operator=(const Planted&) = delete;

 private:
  std::string name_;
};

}  // namespace redlock::simulation
