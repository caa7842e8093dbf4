// SPDX-License-Identifier: MIT
// Mutations of the protocol that the simulator must catch, one for every rule that might seem
// superfluous. Only a build with REDLOCK_PLANTED_BUGS (the simulator's own) can have one; in the
// product planted() is false while compiling, and nothing of this remains. Bugs of scripts are
// changes of their texts, which only the simulator makes.
#pragma once

#include <cstdint>

namespace redlock::engine {

enum class Bug : std::uint8_t {
  none,
  max_without_settling,
  every_held_settles,
  damaged_fence_carried,
  floor_of_one_node,
  attach_believes_token,
  handed_over_revived,
  late_hold_not_awaited,
  foreign_key_denies_nothing,
  give_up_ignored,
  owner_reused,
  one_reply_is_a_veto,
  validity_from_completion,
  validity_checked_against_old_time,
  latest_confirmation_counts,
  no_drift_allowance,
  denial_not_withdrawn,
  quorum_of_connected,
  unavailable_counts_as_refused,
  releases_only_what_was_granted,
  loss_without_release,
  late_win_not_released,
  acquire_resent_behind_release,
  debts_not_repeated,
  lost_quorum_healed,
  lost_lease_revived,
  loss_reported_too_late,
  margin_halved,
  failed_extend_releases,
  request_forgotten_at_loss,
  quarantine_ignored,
  quarantine_by_configuration,
  uptime_trusted_without_marker,
  second_forgetting_overlooked,
  markers_ignored_without_quarantine,
  other_sets_count,
  promotion_trusted,
  clocks_not_watched,
  round_trip_ignored,
  own_clock_never_blamed,
  moved_clock_keeps_its_votes,
  clock_note_overlooked,
  renewed_after_release,
  rounds_mixed,
  failed_entry_counts,
  failed_entry_stays_on_nodes,
  leave_not_told,
  room_not_given,
  answered_entry_counts,
  entry_fails_with_a_release,
  queue_stops_at_failure,
  wake_ignored,
  place_changed_by_retry,
  turn_of_fixed_length,
  entry_left_behind,
  failed_call_stays_first,
  too_late_keeps_its_place,
  members_by_one_node,
  resized_twice_at_once,
  longer_leases_not_awaited,
  mixed_confirmations,
  later_members_not_counted,
  new_member_counts_at_once,
  removed_node_votes,
  // In the loop that drives the engine, that is, in the simulator's client.
  timers_sleep_in_suspend,
  // In the program by which operators change the members, that is, in the simulator's operator.
  resized_without_all,
  fences_not_carried,
  // In wire::Handshake, wire::Connection and wire::ServerIdentities.
  replaced_connection_left_alive,
  replica_keeps_its_connection,
  role_change_overlooked,
  promotion_overlooked,
  run_id_is_proof,
  count_of_bugs,
};

#ifdef REDLOCK_PLANTED_BUGS
inline thread_local Bug the_planted_bug = Bug::none;
inline bool planted(Bug bug) {
  return the_planted_bug == bug;
}
#else
constexpr bool planted(Bug) {
  return false;
}
#endif

}  // namespace redlock::engine
