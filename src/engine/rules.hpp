// SPDX-License-Identifier: MIT
// The rules of the protocol, each once and with its reason; docs/safety.md argues from them. The
// machines call these functions and decide nothing of this themselves. A planted bug of the engine
// switches one of these off, here and nowhere else, and the simulator must notice.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "engine/messages.hpp"
#include "engine/planted_bug.hpp"
#include "engine/quorum.hpp"
#include "engine/types.hpp"

namespace redlock::engine::rules {

// --- clocks

/// How far two clocks may drift apart within this time: a part of it, and 2 ms for rounding.
[[nodiscard]] inline Duration drift_allowance(Duration time, double drift_factor) {
  const auto drift = static_cast<double>(time.count()) * drift_factor;
  return Duration(static_cast<Duration::rep>(drift)) + std::chrono::milliseconds(2);
}

/// By then all earlier leases are over, whatever the clocks do within the bound; a second more for
/// clocks that are set a little.
[[nodiscard]] inline Duration over_everywhere(Duration lease, double drift_factor) {
  return lease + drift_allowance(lease, drift_factor) + std::chrono::seconds(1);
}

/// Until when a node that confirmed a message sent then can be trusted not to grant the lock to
/// another: it starts the lease later than we sent, and its clock may be faster.
[[nodiscard]] inline Instant trusted_until(Instant sent, Duration lease, double drift_factor) {
  if (planted(Bug::no_drift_allowance)) return sent + lease;
  return sent + lease - drift_allowance(lease, drift_factor);
}

/// A node's grant counts from its send. The lease began later, by an unknown time.
[[nodiscard]] inline Instant counts_from(Instant sent, [[maybe_unused]] Instant answered) {
  return planted(Bug::validity_from_completion) ? answered : sent;
}

/// Whether enough validity is left of a lease: compared after the last answer came, which may be
/// late.
[[nodiscard]] inline bool enough_is_left(Instant now, [[maybe_unused]] Instant started,
                                         Instant valid_until, Duration min_validity) {
  if (planted(Bug::validity_checked_against_old_time)) now = started;
  return valid_until != Instant::min() && now < valid_until - min_validity;
}

/// How large a movement of the node's clock a round trip may hide.
[[nodiscard]] inline Duration hidden_by(Duration uncertainty) {
  return planted(Bug::round_trip_ignored) ? Duration::zero()
                                          : uncertainty + std::chrono::microseconds(1);
}

[[nodiscard]] inline bool clocks_are_watched() {
  return !planted(Bug::clocks_not_watched);
}

/// A node whose clock went ahead ends its leases that much earlier, whichever clock moved: if a
/// quorum of nodes went ahead, our clock stood still while leases went on.
[[nodiscard]] inline bool a_clock_ahead_shortens() {
  return !planted(Bug::moved_clock_keeps_its_votes);
}

/// Whether it was our own clock that moved. A quorum must be able to have made the movement, so a
/// minority that jumped is blamed as soon as the readings of a majority exclude that. Where they
/// are too coarse to exclude either (far nodes, and a small movement) the better explanation is the
/// one with fewer wrong clocks, and no node is blamed. That is safe: earlier confirmations end as
/// much earlier as any of the nodes may have gone ahead; blame is about the future of a clock, and
/// if the clock moves on, that is another movement.
[[nodiscard]] inline bool our_clock_moved(std::uint32_t truechimers, std::uint32_t undecided,
                                          std::uint32_t falsetickers, std::uint32_t quorum) {
  if (planted(Bug::own_clock_never_blamed)) return false;
  return truechimers + undecided >= quorum && falsetickers < truechimers;
}

/// A client that starts has no earlier readings: it believes the note of another one.
[[nodiscard]] inline bool clock_notes_count() {
  return !planted(Bug::clock_note_overlooked);
}

/// Whether it was certainly the node's clock: a quorum of the others kept time with ours. Only then
/// are clients that start later told, so that one client with a bad clock costs no node its votes.
[[nodiscard]] inline bool certainly_its_clock(std::uint32_t falsetickers, std::uint32_t quorum) {
  return falsetickers >= quorum;
}

// --- quorums

/// A quorum is a majority of the members, so many nodes: two clients that reach different nodes
/// need a common node.
[[nodiscard]] inline std::uint32_t quorum(std::uint32_t of_members,
                                          [[maybe_unused]] std::uint32_t connected) {
  return planted(Bug::quorum_of_connected) ? quorum_of(connected) : of_members;
}

/// Whether nodes that cannot be reached are among those that a quorum is counted over.
[[nodiscard]] inline bool unreached_nodes_count() {
  return !planted(Bug::quorum_of_connected);
}

/// Until when a lease is valid, of the times until which nodes are trusted to have it: the
/// quorum-th latest. After it too few nodes are left to keep another quorum from forming.
[[nodiscard]] inline Instant valid_until(std::span<Instant> trusted, std::uint32_t quorum) {
  if (trusted.size() < quorum) return Instant::min();
  if (planted(Bug::latest_confirmation_counts)) return *std::ranges::max_element(trusted);
  const auto nth = trusted.begin() + (quorum - 1);
  std::ranges::nth_element(trusted, nth, std::ranges::greater{});
  return *nth;
}

/// A node that did not vote has not refused: the owner of the lock there is unknown.
[[nodiscard]] inline Vote vote_of_unavailable() {
  return planted(Bug::unavailable_counts_as_refused) ? Vote::refused : Vote::unavailable;
}

/// Whether enough of the nodes' clocks are known that their median does not depend on a single
/// node.
[[nodiscard]] inline bool floor_follows(std::uint32_t known, std::uint32_t quorum) {
  return known >= quorum || planted(Bug::floor_of_one_node);
}

// --- tokens

/// The largest token that is believed of one node, by what a quorum says of clocks or fences. One
/// beyond it is damage: carried to the others, and learnt as a floor, it would use up their tokens,
/// and each new damage more of them.
[[nodiscard]] inline Token ceiling_above(Token of_quorum) {
  if (planted(Bug::damaged_fence_carried)) return token_limit;
  return of_quorum + fence_lead;
}

/// Whether the node that granted this settles the token without being asked: the owner's own grant
/// there is the token. A smaller grant leaves the fence below the token, so the next owner could be
/// given the same.
[[nodiscard]] inline bool settles_as_granted(Token granted, Token token) {
  return granted == token || (granted != 0 && planted(Bug::max_without_settling));
}

/// Whether the node may be asked to settle the token: only from a grant that was not above it.
/// Otherwise two attempts could settle the same one.
[[nodiscard]] inline bool may_settle(Token granted, Token token) {
  return (granted != 0 && granted <= token) || planted(Bug::every_held_settles);
}

/// Whether a node that replies `held` has settled the token: the whole stretch from the grant to
/// now was this owner's, and its fence has risen to the token.
[[nodiscard]] inline bool settled(Token granted, Token token, Token fence) {
  return (may_settle(granted, token) && fence >= token) || planted(Bug::every_held_settles);
}

/// The token to which a hold raises the fence. The token of a lease that is taken up may be wrong:
/// it raises no fence.
[[nodiscard]] inline Token token_to_raise(bool taking_up, Token token) {
  return taking_up && !planted(Bug::attach_believes_token) ? 0 : token;
}

/// Whether a node that replies `held` confirms the lease. A lease that is being taken up is
/// confirmed only if the node's fence has reached the token, which is wrong otherwise.
[[nodiscard]] inline bool confirms(bool taking_up, Token fence, Token token) {
  return !taking_up || fence >= token || planted(Bug::attach_believes_token);
}

/// The owner of an attempt: new for each, so that no late message can touch anything newer.
[[nodiscard]] inline OwnerId owner_of_attempt(RandomSource& random,
                                              [[maybe_unused]] RequestId request) {
  if (planted(Bug::owner_reused)) return {{request, ~request}};
  return random.next_owner();
}

/// Whether one node that has the lock for the same owner already ends the attempt, or the lease
/// that was granted without it. It costs that node's vote alone: a node that answers so to
/// everybody would otherwise keep everybody from every lock.
[[nodiscard]] inline bool one_reply_is_a_veto() {
  return planted(Bug::one_reply_is_a_veto);
}

// --- an ended attempt or lease leaves nothing behind

/// Whether grants that a failed attempt may have left are released. At once, not when the kind of
/// failure is known: others are waiting for these nodes.
[[nodiscard]] inline bool failed_attempt_is_released([[maybe_unused]] Errc why) {
  if (planted(Bug::late_win_not_released)) return why != Errc::too_late;
  return !planted(Bug::loss_without_release);
}

/// Whether an acquire is sent again, with its script: not behind its own release, where its grant
/// would stay for a whole lease.
[[nodiscard]] inline bool may_repeat_acquire(bool released) {
  return !released || planted(Bug::acquire_resent_behind_release);
}

/// Whether a node must be told of a release: it may have the lock, confirmed or not.
[[nodiscard]] inline bool is_owed_a_release(bool may_have_it, [[maybe_unused]] bool confirmed_it) {
  return may_have_it && (confirmed_it || !planted(Bug::releases_only_what_was_granted));
}

/// Whether a release is owed for longer than a lease because a hold may be executed later, which
/// makes the lock last one more.
[[nodiscard]] inline bool late_hold_is_awaited(bool unanswered) {
  return unanswered && !planted(Bug::late_hold_not_awaited);
}

/// Whether releases that a broken connection swallowed are sent again on the next one.
[[nodiscard]] inline bool releases_are_repeated() {
  return !planted(Bug::debts_not_repeated);
}

/// Whether nodes refuse the owner for that long after a release: where other processes may have
/// sent late messages, which no release of ours follows.
[[nodiscard]] inline bool is_turned_away(std::chrono::milliseconds keep_out) {
  return keep_out.count() > 0 && !planted(Bug::handed_over_revived);
}

/// A released lease is not renewed any more.
[[nodiscard]] inline bool release_ends_renewal() {
  return !planted(Bug::renewed_after_release);
}

/// A missing confirmation takes back no earlier confirmation.
[[nodiscard]] inline bool failed_extend_releases() {
  return planted(Bug::failed_extend_releases);
}

// --- confirmation and end of a lease

/// Whether a node that replies `free` or `taken` counts no more: whatever the reason for which it
/// has no grant of this owner, it may grant the lock to another.
[[nodiscard]] inline bool denial_withdraws([[maybe_unused]] bool confirmed_before) {
  return !confirmed_before || !planted(Bug::denial_not_withdrawn);
}

/// Whether `taken` denies the lease also where a key of another type stands.
[[nodiscard]] inline bool denies(const Taken& taken) {
  return !taken.foreign_type || !planted(Bug::foreign_key_denies_nothing);
}

/// Whether answers may still lengthen the lease. A holder that was told of a loss has stopped its
/// protected work.
[[nodiscard]] inline bool may_be_confirmed(bool lost) {
  return !lost || planted(Bug::lost_lease_revived);
}

/// Whether a lease that fewer than a quorum confirmed is over, even while other nodes are merely
/// unknown: those may have granted the lock to no owner yet, and the node that replied `free`
/// completes another owner's quorum.
[[nodiscard]] inline bool is_over([[maybe_unused]] std::uint32_t may_hold,
                                  [[maybe_unused]] std::uint32_t quorum) {
  return !planted(Bug::lost_quorum_healed) || may_hold < quorum;
}

/// When the holder is told that the lease is lost: early enough before its end that the work can
/// stop.
[[nodiscard]] inline Instant lost_at(Instant now, Instant valid_until, Duration lease) {
  if (planted(Bug::loss_reported_too_late)) return valid_until + lease / 10;
  const Duration validity = std::max(valid_until - now, Duration::zero());
  const Duration margin = std::min<Duration>(lease / 10, validity / 2);
  return valid_until - (planted(Bug::margin_halved) ? margin / 2 : margin);
}

/// A lease whose loss was reported is lost, also if this machine has not noticed.
[[nodiscard]] inline bool holder_may_give_up() {
  return !planted(Bug::give_up_ignored);
}

/// Every request ends, also those of a lease that is lost.
[[nodiscard]] inline bool requests_end_with_the_lease() {
  return !planted(Bug::request_forgotten_at_loss);
}

/// A vote belongs to the round that asked for it.
[[nodiscard]] inline bool rounds_are_apart() {
  return !planted(Bug::rounds_mixed);
}

// --- re-entry

/// A level counts when a quorum has confirmed it.
[[nodiscard]] inline bool failed_entry_counts() {
  return planted(Bug::failed_entry_counts);
}

/// The counts that a failed entry left on the nodes are corrected.
[[nodiscard]] inline bool failed_entry_is_taken_back() {
  return !planted(Bug::failed_entry_stays_on_nodes);
}

/// A level that is given back is given back on the nodes, too.
[[nodiscard]] inline bool level_left_is_told() {
  return !planted(Bug::leave_not_told);
}

/// A round that waits for room gets it when there is some.
[[nodiscard]] inline bool room_is_given() {
  return !planted(Bug::room_not_given);
}

// --- calls of one owner

/// A call that was answered during its entry has no level: a level that nodes grant it later is
/// left.
[[nodiscard]] inline bool answered_entry_is_left() {
  return !planted(Bug::answered_entry_counts);
}

/// Whether a call whose entry failed acquires instead: if the owner gave the lock back during the
/// entry, the owner lost nothing.
[[nodiscard]] inline bool is_acquired_anew(bool given_back) {
  return given_back && !planted(Bug::entry_fails_with_a_release);
}

/// The next call in the queue begins when a call ends, whatever its result.
[[nodiscard]] inline bool next_call_begins([[maybe_unused]] bool ended_well) {
  return ended_well || !planted(Bug::queue_stops_at_failure);
}

// --- waiters

/// Whether a waiter asks when a node wakes it. Its own timers would be late.
[[nodiscard]] inline bool wakes_are_heeded() {
  return !planted(Bug::wake_ignored);
}

/// Since when a call counts as waiting, to whichever attempt: since its begin, or its last grant
/// that came too late.
[[nodiscard]] inline Instant waits_since(Instant since, [[maybe_unused]] Instant attempt_began) {
  return planted(Bug::place_changed_by_retry) ? attempt_began : since;
}

/// For how long a node is to keep a free lock for this client: twice as long as a quorum's answers
/// take, or far clients are never served beside near ones.
[[nodiscard]] inline Duration length_of_turn(Duration round_trip) {
  constexpr Duration shortest = std::chrono::milliseconds(20);
  constexpr Duration longest = std::chrono::milliseconds(500);
  if (planted(Bug::turn_of_fixed_length)) return shortest;
  return std::clamp(2 * round_trip, shortest, longest);
}

/// Whether a call that ends says so to the nodes' lines, where others stand behind its client.
[[nodiscard]] inline bool end_leaves_lines() {
  return !planted(Bug::entry_left_behind);
}

/// Whether a call that fails for a reason of its own lets the others of its client go first.
[[nodiscard]] inline bool failed_call_gives_way() {
  return !planted(Bug::failed_call_stays_first);
}

/// Whether a call whose grant came too late goes behind the calls of other clients, too.
[[nodiscard]] inline bool too_late_begins_anew() {
  return !planted(Bug::too_late_keeps_its_place);
}

// --- nodes

/// Whether a node may be asked for a lock: not before all leases that it may have forgotten are
/// over, and its marker says so.
[[nodiscard]] inline bool may_vote(Instant now, Instant votes_from, bool without_marker) {
  return (now >= votes_from && !without_marker) || planted(Bug::quarantine_ignored);
}

/// From when a node without its marker is in quarantine: since it was first seen so. Its uptime
/// proves nothing, because it may have been wiped since; nor do its settings.
[[nodiscard]] inline Instant quarantined_from(Instant first_seen, [[maybe_unused]] Instant up_since,
                                              [[maybe_unused]] bool durable,
                                              [[maybe_unused]] Duration quarantine) {
  if (planted(Bug::uptime_trusted_without_marker)) return up_since;
  if (planted(Bug::quarantine_by_configuration) && durable) return first_seen - quarantine;
  return first_seen;
}

/// How many nodes have to show the members of a set before a client believes them. One may lie; and
/// before a quorum has changed there is no moment from which the new member could wait.
[[nodiscard]] inline std::uint32_t shown_by_enough(std::uint32_t quorum) {
  return planted(Bug::members_by_one_node) ? 1 : quorum;
}

/// Whether a confirmation does not count beside that of a node which its members leave out: others
/// may count without either. A quorum of each members that are shown keeps these apart as well, so
/// that the bug leaves out both.
[[nodiscard]] inline bool confirmations_are_apart() {
  return !planted(Bug::mixed_confirmations);
}

/// Whether later members that some nodes show need a quorum, too, before the client knows them:
/// their change may have been made.
[[nodiscard]] inline bool later_members_count() {
  return confirmations_are_apart() && !planted(Bug::later_members_not_counted);
}

/// Whether a node of which no marker was ever seen waits like one that lost it: it may have the
/// place of one that confirmed leases.
[[nodiscard]] inline bool waits_for_a_marker([[maybe_unused]] bool had_one) {
  return had_one || !planted(Bug::new_member_counts_at_once);
}

/// Whether a node is one of these members. What it confirms is kept from counting in two ways,
/// beside others and as a majority; the bug leaves out both.
[[nodiscard]] inline bool is_member(bool is_listed) {
  return is_listed || planted(Bug::removed_node_votes);
}

/// Whether a node must not count beside one that shows a later configuration of its set, which has
/// a longer longest lease: its marker is of before that was announced to all members, so it came
/// back from older data, and who learned from it waited too short a time for what others forgot.
[[nodiscard]] inline bool is_behind(Duration longest_lease, Duration later) {
  return longest_lease < later;
}

/// The longest lease that a client of the set may have. This client need not have such leases.
[[nodiscard]] inline Duration longest_lease(Duration own, Duration shown) {
  return planted(Bug::longer_leases_not_awaited) ? own : std::max(own, shown);
}

/// For how long the number of members stays after it was changed: two such changes leave quorums
/// that share no node, so what was confirmed before the first is to be over.
[[nodiscard]] inline Duration between_resizes(Duration max_lease, double drift_factor) {
  if (planted(Bug::resized_twice_at_once)) return Duration::zero();
  return over_everywhere(max_lease, drift_factor);
}

/// Whether the node begins to wait anew: it is not pending with the id that was seen before, so it
/// may have been marked meanwhile, granted, and forgotten once more. The same holds for a node
/// whose id was never seen.
[[nodiscard]] inline bool has_forgotten_again(const std::string& seen, const std::string& pending) {
  return seen != pending && !planted(Bug::second_forgetting_overlooked);
}

/// Whether a client without quarantine refuses a set that has markers: it counts nodes that lost
/// their data, and would break exclusion for the clients that wait for them.
[[nodiscard]] inline bool markers_end_carelessness() {
  return !planted(Bug::markers_ignored_without_quarantine);
}

/// Whether grants of a node of another set are void: the members of this set do not have them.
[[nodiscard]] inline bool other_sets_are_refused() {
  return !planted(Bug::other_sets_count);
}

/// Whether a node is in quarantine because it was a replica: grants of its last master may not have
/// reached it.
[[nodiscard]] inline bool promoted_waits(bool promoted) {
  return promoted && !planted(Bug::promotion_trusted);
}

// --- connections

/// Whether a new connection first kills the one that it replaces. Messages on the old connection
/// could otherwise be executed after those on the new one: an acquire after its release.
[[nodiscard]] inline bool kills_what_it_replaces(bool same_server) {
  return same_server && !planted(Bug::replaced_connection_left_alive);
}

/// Whether a connection ends when its node refuses to write because it is a replica: it may be a
/// master again before the next check, and only a handshake finds out that it was a replica.
[[nodiscard]] inline bool replica_ends_connection() {
  return !planted(Bug::replica_keeps_its_connection);
}

/// The same when a probe shows that it has another role.
[[nodiscard]] inline bool role_change_ends_connection() {
  return !planted(Bug::role_change_overlooked);
}

/// The same when a probe shows that it was a replica since the last probe, and no command noticed
/// meanwhile.
[[nodiscard]] inline bool promotion_ends_connection() {
  return !planted(Bug::promotion_overlooked);
}

/// Whether a node that reports the run id of another is refused only until a check shows that they
/// are two servers. Any node can report any run id, and would otherwise put out the other.
[[nodiscard]] inline bool run_ids_are_checked() {
  return !planted(Bug::run_id_is_proof);
}

}  // namespace redlock::engine::rules
