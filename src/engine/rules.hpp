// SPDX-License-Identifier: MIT
// The rules of the protocol, each once and with its reason; docs/safety.md argues from them. The
// machines ask here and decide nothing of this themselves. A planted bug of the engine switches one
// of these off, here and nowhere else, and the simulator must notice.
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

/// What two clocks may drift apart within this time: a part of it, and 2 ms for what is rounded.
[[nodiscard]] inline Duration drift_allowance(Duration time, double drift_factor) {
  const auto drift = static_cast<double>(time.count()) * drift_factor;
  return Duration(static_cast<Duration::rep>(drift)) + std::chrono::milliseconds(2);
}

/// By then every lease of before is over, whatever the clocks do within the bound; a second more
/// for clocks that are set a little.
[[nodiscard]] inline Duration over_everywhere(Duration lease, double drift_factor) {
  return lease + drift_allowance(lease, drift_factor) + std::chrono::seconds(1);
}

/// Until when a node that confirmed a message sent then can be trusted not to grant the lock to
/// another: it starts the lease later than we sent, and its clock may be faster.
[[nodiscard]] inline Instant trusted_until(Instant sent, Duration lease, double drift_factor) {
  if (planted(Bug::no_drift_allowance)) return sent + lease;
  return sent + lease - drift_allowance(lease, drift_factor);
}

/// From when a node's grant counts: from the send. It began later, by an unknown time.
[[nodiscard]] inline Instant counts_from(Instant sent, [[maybe_unused]] Instant answered) {
  return planted(Bug::validity_from_completion) ? answered : sent;
}

/// Whether enough is left of a lease: compared after the last answer came, which may be late.
[[nodiscard]] inline bool enough_is_left(Instant now, [[maybe_unused]] Instant started,
                                         Instant valid_until, Duration min_validity) {
  if (planted(Bug::validity_checked_against_old_time)) now = started;
  return valid_until != Instant::min() && now < valid_until - min_validity;
}

/// How much a round trip may hide of a movement of the node's clock.
[[nodiscard]] inline Duration hidden_by(Duration uncertainty) {
  return planted(Bug::round_trip_ignored) ? Duration::zero()
                                          : uncertainty + std::chrono::microseconds(1);
}

[[nodiscard]] inline bool clocks_are_watched() {
  return !planted(Bug::clocks_not_watched);
}

/// A node whose clock went ahead ends its leases that much earlier, whosever clock it was: if a
/// quorum of them did, ours stood still while leases went on.
[[nodiscard]] inline bool a_clock_ahead_shortens() {
  return !planted(Bug::moved_clock_keeps_its_votes);
}

/// Whether it was our own clock that moved. A quorum must be able to have made the movement, so a
/// minority that jumped is blamed as soon as the readings of a majority exclude that. Where they
/// are too coarse to exclude either (far nodes, and a small movement) fewer clocks that are wrong
/// is the better explanation, and nobody is blamed. That is safe: what was confirmed before ends as
/// much earlier as any of them may have gone ahead; blame is about what the clock will do next, and
/// if it moves on, that is a movement again.
[[nodiscard]] inline bool our_clock_moved(std::uint32_t truechimers, std::uint32_t undecided,
                                          std::uint32_t falsetickers, std::uint32_t nodes) {
  if (planted(Bug::own_clock_never_blamed)) return false;
  return truechimers + undecided >= quorum_of(nodes) && falsetickers < truechimers;
}

// --- quorums

/// A quorum is one of the configured nodes: two clients that reach different nodes need a common
/// one.
[[nodiscard]] inline std::uint32_t quorum(std::uint32_t configured,
                                          [[maybe_unused]] std::uint32_t connected) {
  return quorum_of(planted(Bug::quorum_of_connected) ? connected : configured);
}

/// Whether nodes that cannot be reached are of those a quorum is one of.
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

/// A node that did not vote has not refused: it is not known who has the lock.
[[nodiscard]] inline Vote vote_of_unavailable() {
  return planted(Bug::unavailable_counts_as_refused) ? Vote::refused : Vote::unavailable;
}

/// Whether so many of the nodes' clocks are known that their median is no single node's.
[[nodiscard]] inline bool floor_follows(std::uint32_t known, std::uint32_t nodes) {
  return known >= quorum_of(nodes) || planted(Bug::floor_of_one_node);
}

// --- tokens

/// Beyond what floors reach.
[[nodiscard]] constexpr bool is_far(Token token) {
  return token > floor_limit;
}

/// A fence beyond what floors reach is its node's damage, unless a quorum is there: carried to the
/// others, and learnt as a floor, it would use up the tokens of every stripe and node.
[[nodiscard]] inline bool damage_is_contained() {
  return !planted(Bug::damaged_fence_carried);
}

/// Whether one of these may be carried to the node that granted the other.
[[nodiscard]] inline bool of_one_range(Token granted, Token token) {
  return is_far(granted) == is_far(token) || !damage_is_contained();
}

/// Whether the node that granted this settles the token without being asked: the owner's own grant
/// there is the token. A smaller one leaves the fence below it, for the next owner to be given the
/// same.
[[nodiscard]] inline bool settles_as_granted(Token granted, Token token) {
  return granted == token || (granted != 0 && planted(Bug::max_without_settling));
}

/// Whether the node may be asked to settle the token: only from a grant that was not above it.
/// Otherwise two attempts could settle the same one.
[[nodiscard]] inline bool may_settle(Token granted, Token token) {
  return (granted != 0 && granted <= token) || planted(Bug::every_held_settles);
}

/// Whether a node that says `held` has settled the token: the whole stretch from the grant to now
/// was this owner's, and its fence has risen to the token.
[[nodiscard]] inline bool settled(Token granted, Token token, Token fence) {
  return (may_settle(granted, token) && fence >= token) || planted(Bug::every_held_settles);
}

/// The token that a hold raises the fence to. What somebody says who takes a lease up may be wrong:
/// it raises none.
[[nodiscard]] inline Token token_to_raise(bool taking_up, Token token) {
  return taking_up && !planted(Bug::attach_believes_token) ? 0 : token;
}

/// Whether a node that says `held` confirms the lease. To one that is being taken up only if its
/// fence has reached the token, which is wrong otherwise.
[[nodiscard]] inline bool confirms(bool taking_up, Token fence, Token token) {
  return !taking_up || fence >= token || planted(Bug::attach_believes_token);
}

/// The owner of an attempt: a new one for each, so that what is late can touch nothing newer.
[[nodiscard]] inline OwnerId owner_of_attempt(RandomSource& random,
                                              [[maybe_unused]] RequestId request) {
  if (planted(Bug::owner_reused)) return {{request, ~request}};
  return random.next_owner();
}

// --- what is over leaves nothing behind

/// Whether what a failed attempt may have left is released. At once, not when the kind of failure
/// is known: others are waiting for these nodes.
[[nodiscard]] inline bool failed_attempt_is_released([[maybe_unused]] Errc why) {
  if (planted(Bug::late_win_not_released)) return why != Errc::too_late;
  return !planted(Bug::loss_without_release);
}

/// Whether an acquire is sent again, with its script: not behind its own release, where what it
/// takes would stay for a whole lease.
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

/// Whether nodes turn the owner away for so long after a release: where others may have sent what
/// comes late, which is behind no release of ours.
[[nodiscard]] inline bool is_turned_away(std::chrono::milliseconds keep_out) {
  return keep_out.count() > 0 && !planted(Bug::handed_over_revived);
}

/// A lease that is released is renewed no more.
[[nodiscard]] inline bool release_ends_renewal() {
  return !planted(Bug::renewed_after_release);
}

/// A confirmation that was not given takes back nothing that was given before.
[[nodiscard]] inline bool failed_extend_releases() {
  return planted(Bug::failed_extend_releases);
}

// --- what confirms and what ends a lease

/// Whether a node that says `free` or `taken` counts no more: for whatever reason it has nothing of
/// this owner, it may grant the lock to another.
[[nodiscard]] inline bool denial_withdraws([[maybe_unused]] bool confirmed_before) {
  return !confirmed_before || !planted(Bug::denial_not_withdrawn);
}

/// Whether `taken` denies the lease also where a key of another type stands.
[[nodiscard]] inline bool denies(const Taken& taken) {
  return !taken.foreign_type || !planted(Bug::foreign_key_denies_nothing);
}

/// Whether answers may still lengthen the lease. Whoever was told of a loss has let go of what the
/// lock protects.
[[nodiscard]] inline bool may_be_confirmed(bool lost) {
  return !lost || planted(Bug::lost_lease_revived);
}

/// Whether a lease that fewer than a quorum confirmed is over, even while other nodes are merely
/// unknown: those may have given the lock to nobody, and the one that said `free` completes
/// somebody's quorum.
[[nodiscard]] inline bool is_over([[maybe_unused]] std::uint32_t may_hold,
                                  [[maybe_unused]] std::uint32_t quorum) {
  return !planted(Bug::lost_quorum_healed) || may_hold < quorum;
}

/// When the holder is told that the lease is lost: so long before its end that the work can stop.
[[nodiscard]] inline Instant lost_at(Instant now, Instant valid_until, Duration lease) {
  if (planted(Bug::loss_reported_too_late)) return valid_until + lease / 10;
  const Duration validity = std::max(valid_until - now, Duration::zero());
  return valid_until - std::min<Duration>(lease / 10, validity / 2);
}

/// What a holder was told is lost is lost, also if this machine has not noticed.
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

/// What a failed entry left on the nodes is put right.
[[nodiscard]] inline bool failed_entry_is_taken_back() {
  return !planted(Bug::failed_entry_stays_on_nodes);
}

/// A level that is given back is given back on the nodes, too.
[[nodiscard]] inline bool leaving_is_told() {
  return !planted(Bug::leave_not_told);
}

/// Who waits for room gets it when there is some.
[[nodiscard]] inline bool turns_are_given() {
  return !planted(Bug::turn_not_given);
}

// --- calls of one owner

/// A call that was answered while it entered has no level: the one that nodes grant it later is
/// left.
[[nodiscard]] inline bool answered_entry_is_left() {
  return !planted(Bug::answered_entry_counts);
}

/// Whether a call whose entry failed acquires instead: if the owner gave back meanwhile what was
/// being entered, the owner lost nothing.
[[nodiscard]] inline bool is_acquired_anew(bool given_back) {
  return given_back && !planted(Bug::entry_fails_with_a_release);
}

/// The next call in the queue begins when one ends, however that ended.
[[nodiscard]] inline bool next_call_begins([[maybe_unused]] bool ended_well) {
  return ended_well || !planted(Bug::queue_stops_at_failure);
}

// --- those who wait

/// Whether a waiter asks when a node says that its turn has come. Its own timers would be late.
[[nodiscard]] inline bool wakes_are_heeded() {
  return !planted(Bug::wake_ignored);
}

/// Since when a call counts as waiting, to whichever attempt: since its own begin.
[[nodiscard]] inline Instant waits_since(Instant call_began,
                                         [[maybe_unused]] Instant attempt_began) {
  return planted(Bug::place_changed_by_retry) ? attempt_began : call_began;
}

/// For how long a node is to keep a free lock for this client: twice as long as a quorum's answers
/// take, or far clients are never served beside near ones.
[[nodiscard]] inline Duration length_of_turn(Duration round_trip) {
  constexpr Duration shortest = std::chrono::milliseconds(20);
  constexpr Duration longest = std::chrono::milliseconds(500);
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

// --- nodes

/// Whether a node may be asked for a lock: not before everything that it may have forgotten is
/// over, and its marker says so.
[[nodiscard]] inline bool may_vote(Instant now, Instant votes_from, bool without_marker) {
  return (now >= votes_from && !without_marker) || planted(Bug::quarantine_ignored);
}

/// From when a node without its marker is in quarantine: since it was first seen so. How long it
/// has been up says nothing, as it may have been wiped since; nor do its settings.
[[nodiscard]] inline Instant quarantined_from(Instant first_seen, [[maybe_unused]] Instant up_since,
                                              [[maybe_unused]] bool durable,
                                              [[maybe_unused]] Duration quarantine) {
  if (planted(Bug::uptime_trusted_without_marker)) return up_since;
  if (planted(Bug::quarantine_by_configuration) && durable) return first_seen - quarantine;
  return first_seen;
}

/// Whether the node begins to wait anew: it is not pending with the id that was seen before, so it
/// may have been marked meanwhile, granted, and forgotten once more. What was pending before any id
/// was seen is not known either.
[[nodiscard]] inline bool has_forgotten_again(const std::string& seen, const std::string& pending) {
  return seen != pending && !planted(Bug::second_forgetting_overlooked);
}

/// Whether a client without quarantine refuses a set that has markers: it counts nodes that lost
/// their data, and would break exclusion for the clients that wait for them.
[[nodiscard]] inline bool markers_end_carelessness() {
  return !planted(Bug::markers_ignored_without_quarantine);
}

/// Whether what a node of another set grants is worth nothing: the members of this one know nothing
/// of it.
[[nodiscard]] inline bool other_sets_are_refused() {
  return !planted(Bug::other_sets_count);
}

/// Whether a node is in quarantine because it was a replica: what its last master granted may not
/// have reached it.
[[nodiscard]] inline bool promoted_waits(bool promoted) {
  return promoted && !planted(Bug::promotion_trusted);
}

// --- connections

/// Whether a new connection first kills the one that it replaces. What the old one carries could
/// otherwise be executed behind what the new one does: an acquire behind its release.
[[nodiscard]] inline bool kills_what_it_replaces(bool same_server) {
  return same_server && !planted(Bug::replaced_connection_left_alive);
}

/// Whether a connection ends when its node refuses to write because it is a replica: it may be a
/// master again before anybody looks at it, and only a handshake finds out that it was none.
[[nodiscard]] inline bool replica_ends_connection() {
  return !planted(Bug::replica_keeps_its_connection);
}

/// The same when a probe shows that it has another role.
[[nodiscard]] inline bool role_change_ends_connection() {
  return !planted(Bug::role_change_overlooked);
}

/// The same when a probe shows that it was a replica since the last one, and nobody asked it
/// anything meanwhile.
[[nodiscard]] inline bool promotion_ends_connection() {
  return !planted(Bug::promotion_overlooked);
}

}  // namespace redlock::engine::rules
