// SPDX-License-Identifier: MIT
#include "engine/nodes/quarantines.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "engine/rules.hpp"

namespace redlock::engine {
namespace {

/// How often a node without a marker is checked: it may have been adopted.
constexpr Duration between_looks = std::chrono::seconds(1);

/// How often a client without quarantine looks for markers: long before the quarantine in a client
/// with it is over, which marks nodes as pending first.
Duration between_markers(const Config& config) {
  return std::min<Duration>(std::chrono::seconds(10), Duration(config.max_lease) / 6);
}

}  // namespace

Quarantines::Quarantines(const Config& config)
    : is_on_(config.quarantine),
      drift_factor_(config.drift_factor),
      between_markers_(between_markers(config)),
      sets_(config),
      nodes_(sets_.slots()) {}

void Quarantines::on_node_facts(Instant now, NodeIndex node, const NodeFacts& facts) {
  sets_.on_marker(Instant::min(), node, facts.marker);  // whenever it was asked
  follow_members(now);
  if (!is_on_) {
    next_look_ = std::min(next_look_, now);
    return;
  }
  Node& state = nodes_[node];
  state.promoted = facts.promoted;
  const bool same_run = std::exchange(state.run, facts.run) == facts.run;
  // Redis counts the seconds by its wall clock, which may be set after the start. This run is no
  // older than the last sight of another run, and no older than it once reported itself.
  const Instant no_earlier_than = same_run ? state.up_since : state.seen_at;
  state.up_since = std::clamp(now - facts.uptime, no_earlier_than, now);
  state.seen_at = now;
  // A setting that is corrected now does not bring back what this run forgot at its start.
  state.durable = facts.durable && (!same_run || state.durable);
  // Between two runs it may have had a marker, granted and forgotten once more. Before a promotion,
  // too: other clients may have marked the node since it forgot, and its grants from then are lost
  // again.
  if (!same_run || facts.newly_promoted) state.suspect_since.reset();
  if (!facts.marker || rules::promoted_waits(facts.promoted)) {
    suspect(now, node);
  } else {
    state.suspect_since.reset();
  }
}

void Quarantines::on_sign_of_life(Instant now, NodeIndex node) {
  nodes_[node].seen_at = now;
}

void Quarantines::on_marker(Instant now, NodeIndex node, Membership marker) {
  if (!is_on_) return sets_.on_refused(node);
  on_members(now, node, std::move(marker), Instant::min());
  nodes_[node].suspect_since.reset();
}

void Quarantines::on_members(Instant now, NodeIndex node, Membership marker, Instant asked) {
  sets_.on_marker(asked, node, std::move(marker));
  follow_members(now);
}

/// Whatever was replaced may have confirmed leases until now. So the new member waits from now on,
/// for however long it has stood there without a marker. And of which members a node is that has no
/// marker is said by those that were asked since: this client may have been cut off while they
/// changed, and of a quorum that showed them one after the other some may have lost theirs.
void Quarantines::follow_members(Instant now) {
  const auto& known = sets_.known();
  const bool are_new = known && known != followed_;
  if (are_new) followed_ = known;
  for (NodeIndex node = 0; node < nodes_.size(); ++node) {
    Node& state = nodes_[node];
    if (!state.suspect_since) continue;
    const bool are_read = state.reads_members && sets_.is_read_anew(*state.suspect_since);
    if (!are_new && !are_read) continue;
    wait_from(now, node);
    require_reading(node, are_new);
  }
}

void Quarantines::wait_from(Instant now, NodeIndex node) {
  Node& state = nodes_[node];
  state.suspect_since =
      rules::quarantined_from(now, state.up_since, state.durable, quarantine_of(node));
  if (!rules::waits_for_a_marker(sets_.had_marker(node)))
    *state.suspect_since -= quarantine_of(node);
}

void Quarantines::require_reading(NodeIndex node, bool required) {
  nodes_[node].reads_members = required && !sets_.has_marker(node);
}

void Quarantines::forget(NodeIndex node) {
  sets_.forget(node);
  nodes_[node] = {};
}

void Quarantines::on_pending_marker(Instant now, NodeIndex node, std::string id, Instant asked) {
  Node& state = nodes_[node];
  const std::string seen = std::exchange(state.pending, std::move(id));
  if (rules::has_forgotten_again(seen, state.pending)) state.suspect_since.reset();
  on_no_marker(now, node, asked);
}

void Quarantines::on_no_marker(Instant now, NodeIndex node, Instant asked) {
  sets_.on_marker(asked, node, std::nullopt);
  suspect(now, node);
  follow_members(now);
}

void Quarantines::on_acquire_reply(Instant now, NodeIndex node, const Reply& reply) {
  const auto* const why = std::get_if<Unavailable>(&reply);
  if (why == nullptr) return;
  if (why->cause == Cause::marker_missing && is_on_) {
    on_no_marker(now, node, Instant::min());
  }
  const bool by_node = why->delivery == Delivery::refused;
  if (by_node && why->cause == Cause::incompatible) sets_.on_refused(node);
}

void Quarantines::suspect(Instant now, NodeIndex node) {
  Node& state = nodes_[node];
  if (state.suspect_since) return;
  wait_from(now, node);
  require_reading(node, true);
  next_look_ = std::min(next_look_, now);
}

bool Quarantines::votes(Instant now, NodeIndex node) const {
  const Node& state = nodes_[node];
  return rules::may_vote(now, votes_from(node), state.suspect_since.has_value());
}

std::optional<Unavailable> Quarantines::objection(Instant now, NodeIndex node) const {
  if (votes(now, node)) return std::nullopt;
  const Node& state = nodes_[node];
  const Duration left = state.reads_members ? quarantine_of(node) : votes_from(node) - now;
  InQuarantine why{InQuarantine::Reason::restart, std::max(left, Duration())};
  if (state.suspect_since) {
    if (auto stays = sets_.no_member(node)) return stays;
    why.reason = state.promoted ? InQuarantine::Reason::promotion : InQuarantine::Reason::no_marker;
  }
  return Unavailable{Cause::quarantined, Delivery::not_sent, {}, why};
}

void Quarantines::on_deadline(Instant now, Outbox& out) {
  if (now < next_look_) return;
  next_look_ = never;
  if (!is_on_) return look_for_markers(now, out);
  follow_members(now);
  for (NodeIndex node = 0; node < nodes_.size(); ++node) {
    const Node& state = nodes_[node];
    if (!state.suspect_since) continue;
    if (state.reads_members) read_members(*state.suspect_since, out);
    const bool is_over = now >= votes_from(node) && !state.reads_members;
    auto marker = is_over ? sets_.membership_of(node) : std::nullopt;
    out.put(TendMarker{node, marker.has_value(), marker.value_or(Membership()), state.pending,
                       sets_.longest_lease(node)});
    next_look_ = now + between_looks;
  }
}

void Quarantines::read_members(Instant since, Outbox& out) const {
  for (NodeIndex node = 0; node < nodes_.size(); ++node) {
    if (sets_.has_marker(node) && !sets_.was_asked(node, since)) out.put(ReadMembers{node});
  }
}

void Quarantines::look_for_markers(Instant now, Outbox& out) {
  for (NodeIndex node = 0; node < nodes_.size(); ++node) {
    if (sets_.seen(node)) out.put(TendMarker{node, false});
  }
  next_look_ = now + between_markers_;
}

}  // namespace redlock::engine
