// SPDX-License-Identifier: MIT
#include "engine/releasing.hpp"

namespace redlock::engine {

void Releasing::on_reply(Instant now, NodeIndex node, const Reply& reply) {
  if (!asked_.contains(node)) return;
  asked_.erase(node);
  // One in quarantine has forgotten it, and has given it to nobody else.
  const bool kept = confirmed_.contains(node) && terms_->quarantine(now, node).has_value();
  if (std::holds_alternative<ReleasedHere>(reply) ||
      (std::holds_alternative<NotHeld>(reply) && kept)) {
    ++tally_.yes;
  } else if (std::holds_alternative<NotHeld>(reply) || std::holds_alternative<NoScript>(reply)) {
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
  if (tally_.pending() == 0) return Released::unknown;
  return std::nullopt;
}

}  // namespace redlock::engine
