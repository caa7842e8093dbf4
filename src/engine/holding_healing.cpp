// SPDX-License-Identifier: MIT
// Nodes that do not have the lease: what their words are worth, and how they take part again.
#include <algorithm>

#include "engine/holding.hpp"

namespace redlock::engine {

void Holding::on_free(Instant now, NodeIndex node, const Tag& tag, HoldRound* round, Outbox& out) {
  if (explained_by_quarantine(now, node)) {
    nodes_.forget(node);
  } else {
    deny(now, node, tag);
  }
  if (const auto why = terms_->quarantine(now, node)) {
    if (round != nullptr) round->unavailable(node, *why);
    return;
  }
  if (round != nullptr) return round->denied(node, true);
  // Its round is over: no later moment will do.
  if (now < nodes_.valid_until()) heal(now, node, tag.lease, out);
}

/// That it has the lease no more: it confirmed that before it was quarantined, so it has forgotten
/// it since, and gives the lock to nobody until the lease is over.
bool Holding::explained_by_quarantine(Instant now, NodeIndex node) const {
  const NodeGrant& grant = nodes_[node];
  return grant.possession == Possession::ours && !grant.in_quarantine && !doubted_ &&
         terms_->quarantined(now, node);
}

/// It has nothing of this owner.
void Holding::deny(Instant now, NodeIndex node, const Tag& tag) {
  const NodeGrant& grant = nodes_[node];
  // What was sent before the healing speaks of the time before it.
  const bool healed_since = grant.possession == Possession::healing && tag.round <= grant.healed_in;
  if (healed_since && tag.kind != Tag::Kind::heal) return;
  if (now < grant.until && !terms_->quarantined(now, node)) doubt();
  nodes_.withdraw(node);
}

/// Somebody takes the lease away (by force; by releasing it from elsewhere), or data is lost that
/// should not be. So a node in quarantine may have forgotten that, and not only the lease.
void Holding::doubt() {
  doubted_ = true;
  for (HoldRound& round : rounds_) round.doubt();
  nodes_.withdraw_forgotten();
}

void Holding::send_heal(Instant now, NodeIndex node, std::chrono::milliseconds lease, Form form,
                        Outbox& out) {
  NodeGrant& grant = nodes_[node];
  grant.possession = Possession::healing;
  grant.healed_in = round_;
  const Tag tag{plan_.grant, now, lease, round_, Tag::Kind::heal};
  const Token floor = std::min(plan_.token, floor_limit);
  out.send(node, tag,
           AcquireCommand{plan_.name, plan_.owner, lease, floor, terms_->config().quarantine,
                          plan_.since},
           form);
}

/// A lease that is valid has its quorum, whoever answers at the moment: nobody else was granted,
/// and whose grant stood here before was released or is over.
void Holding::heal(Instant now, NodeIndex node, std::chrono::milliseconds asked, Outbox& out) {
  const bool gone = nodes_[node].possession == Possession::not_ours;
  if (!gone || terms_->objection(now, node)) return;
  // What is not renewed lasts no longer here than was asked for, or than it does elsewhere.
  const auto left = std::chrono::floor<std::chrono::milliseconds>(valid_until_ - now);
  const bool renewed = now < plan_.renew_until;
  send_heal(now, node, renewed ? plan_.lease : std::max(asked, left), Form::digest, out);
}

/// Once the round has shown what there is.
void Holding::heal_free_nodes(Instant now, HoldRound& round, Outbox& out) {
  if (lost_ || attach_failed_ || !round.announced()) return;
  const NodeSet free = round.take_free();
  for (NodeIndex node = 0; node < nodes_.size(); ++node) {
    if (free.contains(node)) heal(now, node, round.lease(), out);
  }
}

void Holding::on_heal_reply(Instant now, NodeIndex node, const Tag& tag, const Reply& reply,
                            Outbox& out) {
  if (nodes_[node].possession != Possession::healing) return;
  if (std::holds_alternative<Granted>(reply) || std::holds_alternative<AlreadyOurs>(reply)) {
    // So that it is known what it should have; it counts when a round confirms it.
    nodes_[node].until = terms_->trusted_until(tag.sent, tag.lease);
  } else if (std::holds_alternative<Refused>(reply)) {
    nodes_.withdraw(node);
  } else if (std::holds_alternative<NoScript>(reply)) {
    send_heal(now, node, tag.lease, Form::source, out);
  } else if (const auto* unavailable = std::get_if<Unavailable>(&reply)) {
    if (unavailable->delivery != Delivery::unknown) nodes_.withdraw(node);
  }
}

}  // namespace redlock::engine
