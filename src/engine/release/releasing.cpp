// SPDX-License-Identifier: MIT
#include "engine/release/releasing.hpp"

namespace redlock::engine {

void Releasing::on_reply(Instant now, NodeIndex node, const Reply& reply) {
  if (!asked_.contains(node)) return;
  asked_.erase(node);
  const bool not_held = std::holds_alternative<NotHeld>(reply);
  const bool missing = not_held && confirmed_.contains(node);
  if (std::holds_alternative<ReleasedHere>(reply)) {
    ++tally_.yes;
  } else if (missing && terms_->quarantined(now, node)) {
    ++forgotten_;
    ++tally_.unavailable;
  } else if (not_held || std::holds_alternative<NoScript>(reply)) {
    denied_ = denied_ || missing;
    // NOSCRIPT to a release that is not repeated: the node is known to have nothing.
    ++tally_.no;
  } else {
    ++tally_.unavailable;
  }
}

void Releasing::on_deadline(Instant now) {
  if (now < deadline_) return;
  tally_.unavailable += asked_.size();
  asked_ = {};
}

std::optional<Released> Releasing::outcome() const {
  if (tally_.won()) return Released::released;
  if (tally_.no > tally_.nodes - tally_.quorum()) return Released::already_gone;
  if (tally_.pending() > 0) return std::nullopt;
  if (!denied_ && tally_.yes + forgotten_ >= tally_.quorum()) return Released::released;
  // Nothing is concluded from a quarantine when somebody took the lease away.
  if (tally_.no + forgotten_ > tally_.nodes - tally_.quorum()) return Released::already_gone;
  return Released::unknown;
}

}  // namespace redlock::engine
