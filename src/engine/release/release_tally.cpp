// SPDX-License-Identifier: MIT
#include "engine/release/release_tally.hpp"

namespace redlock::engine {

ReleaseTally::ReleaseTally(const Electorate& electorate, RequestId request, NodeSet asked,
                           NodeSet confirmed, NodeSet awaited, Instant now)
    : electorate_(&electorate),
      request_(request),
      deadline_(now + electorate.node_timeout()),
      pending_(asked),
      confirmed_(confirmed),
      absent_(electorate.nodes() - asked - awaited) {}

void ReleaseTally::on_reply(Instant now, NodeIndex node, const Reply& reply) {
  if (!pending_.contains(node)) return;
  pending_.erase(node);
  const bool not_held = std::holds_alternative<NotHeld>(reply);
  const bool missing = not_held && confirmed_.contains(node);
  if (std::holds_alternative<ReleasedHere>(reply)) {
    removed_.insert(node);
  } else if (missing && electorate_->quarantined(now, node)) {
    forgotten_.insert(node);
  } else if (not_held || std::holds_alternative<NoScript>(reply)) {
    denied_ = denied_ || missing;
    // NOSCRIPT to a release that is not repeated: the node is known to have nothing.
    absent_.insert(node);
  }
}

void ReleaseTally::on_deadline(Instant now) {
  if (now >= deadline_) pending_ = {};
}

std::optional<Finish> ReleaseTally::result() const {
  const auto outcome = released();
  if (!outcome) return std::nullopt;
  return Finish{request_, ReleaseDone{*outcome}};
}

std::optional<Released> ReleaseTally::released() const {
  const auto too_many = [this](NodeSet nodes) {  // for a quorum of the others
    return !electorate_->is_quorum(electorate_->nodes() - nodes);
  };
  if (electorate_->is_quorum(removed_)) return Released::released;
  if (too_many(absent_)) return Released::already_gone;
  if (pending_ != NodeSet{}) return std::nullopt;
  if (!denied_ && electorate_->is_quorum(removed_ | forgotten_)) return Released::released;
  // Nothing is concluded from a quarantine when somebody took the lease away.
  if (too_many(absent_ | forgotten_)) return Released::already_gone;
  return Released::unknown;
}

}  // namespace redlock::engine
