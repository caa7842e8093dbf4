// SPDX-License-Identifier: MIT
#include "engine/release/removal.hpp"

namespace redlock::engine {

Removal::Removal(const Terms& terms, RequestId request, NodeSet asked, NodeSet confirmed,
                 Instant now)
    : terms_(&terms),
      request_(request),
      deadline_(now + terms.node_timeout()),
      by_force_(false),
      pending_(asked),
      confirmed_(confirmed),
      absent_(NodeSet::first(terms.nodes()) - asked) {}

Removal::Removal(const Terms& terms, RequestId request, Instant now)
    : terms_(&terms),
      request_(request),
      deadline_(now + terms.node_timeout()),
      by_force_(true),
      pending_(NodeSet::first(terms.nodes())) {}

void Removal::on_reply(Instant now, NodeIndex node, const Reply& reply) {
  if (!pending_.contains(node)) return;
  pending_.erase(node);
  const auto* const unavailable = std::get_if<Unavailable>(&reply);
  const bool not_held = std::holds_alternative<NotHeld>(reply);
  const bool missing = not_held && confirmed_.contains(node);
  if (std::holds_alternative<ReleasedHere>(reply)) {
    removed_.insert(node);
  } else if (missing && terms_->quarantined(now, node)) {
    forgotten_.insert(node);
  } else if (not_held || (std::holds_alternative<NoScript>(reply) && !by_force_)) {
    denied_ = denied_ || missing;
    // NOSCRIPT to a release that is not repeated: the node is known to have nothing.
    absent_.insert(node);
  } else if (by_force_ && unavailable != nullptr) {
    reasons_.emplace_back(node, *unavailable);
  } else if (by_force_) {
    reasons_.emplace_back(
        node, Unavailable{Cause::protocol_error, Delivery::unknown, answered_otherwise});
  }
}

void Removal::on_deadline(Instant now) {
  if (now < deadline_) return;
  for (NodeIndex node = 0; by_force_ && node < terms_->nodes(); ++node) {
    if (pending_.contains(node)) reasons_.emplace_back(node, no_answer());
  }
  pending_ = {};
}

std::optional<Finish> Removal::result() const {
  if (by_force_) {
    if (pending_ != NodeSet{}) return std::nullopt;
    return Finish{request_, forced()};
  }
  const auto outcome = released();
  if (!outcome) return std::nullopt;
  return Finish{request_, ReleaseDone{*outcome}};
}

std::optional<Released> Removal::released() const {
  const std::uint32_t quorum = terms_->quorum();
  const std::uint32_t too_many = terms_->nodes() - quorum + 1;  // for a quorum of the others
  if (removed_.size() >= quorum) return Released::released;
  if (absent_.size() >= too_many) return Released::already_gone;
  if (pending_ != NodeSet{}) return std::nullopt;
  if (!denied_ && (removed_ | forgotten_).size() >= quorum) return Released::released;
  // Nothing is concluded from a quarantine when somebody took the lease away.
  if ((absent_ | forgotten_).size() >= too_many) return Released::already_gone;
  return Released::unknown;
}

ForceDone Removal::forced() const {
  ForceDone done{removed_, (removed_ | absent_).size(), std::vector<Ballot>(terms_->nodes())};
  for (Ballot& ballot : done.ballots) ballot.vote = Vote::granted;
  for (const auto& [node, why] : reasons_) {
    done.ballots[node] = {Vote::unavailable, why.cause, why.detail, why.objection};
  }
  return done;
}

}  // namespace redlock::engine
