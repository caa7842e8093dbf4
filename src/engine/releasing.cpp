// SPDX-License-Identifier: MIT
#include "engine/releasing.hpp"

namespace redlock::engine {

void Releasing::on_reply(NodeIndex node, const Reply& reply) {
  if (!asked_.contains(node)) return;
  asked_.erase(node);
  if (std::holds_alternative<ReleasedHere>(reply)) {
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
