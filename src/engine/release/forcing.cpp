// SPDX-License-Identifier: MIT
#include "engine/release/forcing.hpp"

#include <algorithm>

namespace redlock::engine {
namespace {

/// On top, as nodes that forgot wait: for what is rounded, and for clocks that are set a little.
constexpr std::chrono::milliseconds moment = std::chrono::seconds(1);

/// No lease that the owner believes in now lasts longer, nor does any healing beside it.
std::chrono::milliseconds keep_out(const Terms& terms, std::chrono::milliseconds lease) {
  return lease + std::chrono::ceil<std::chrono::milliseconds>(terms.drift_allowance(lease)) +
         moment;
}

}  // namespace

Forcing::Forcing(const Terms& terms, const Plan& plan, Instant now, Outbox& out)
    : request_(plan.request), deadline_(now + terms.node_timeout()), ballots_(terms.nodes()) {
  const ForceCommand command{plan.name, plan.owner, keep_out(terms, plan.lease)};
  for (NodeIndex node = 0; node < terms.nodes(); ++node) {
    out.send(node, Tag{plan.id, now, {}, 0, Tag::Kind::force}, command, Form::source);
  }
}

void Forcing::on_reply(NodeIndex node, const Reply& reply) {
  if (std::holds_alternative<ReleasedHere>(reply)) {
    removed_.insert(node);
    ballots_[node] = {Vote::granted, Cause::none, {}};
  } else if (std::holds_alternative<NotHeld>(reply)) {
    ballots_[node] = {Vote::granted, Cause::none, {}};
  } else if (const auto* unavailable = std::get_if<Unavailable>(&reply)) {
    ballots_[node] = {Vote::unavailable, unavailable->cause, unavailable->detail};
  } else {
    ballots_[node] = {Vote::unavailable, Cause::protocol_error, answered_otherwise};
  }
}

void Forcing::on_deadline(Instant now) {
  if (now < deadline_) return;
  for (Ballot& ballot : ballots_) {
    if (ballot.vote != Vote::pending) continue;
    ballot = {Vote::unavailable, Cause::timed_out, "no answer within the node timeout"};
  }
}

std::optional<ForceDone> Forcing::outcome() const {
  const auto count = [this](Vote vote) {
    return static_cast<std::uint32_t>(std::ranges::count(ballots_, vote, &Ballot::vote));
  };
  if (count(Vote::pending) > 0) return std::nullopt;
  return ForceDone{removed_, count(Vote::granted), ballots_};
}

}  // namespace redlock::engine
