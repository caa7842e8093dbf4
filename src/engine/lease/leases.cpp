// SPDX-License-Identifier: MIT
#include "engine/lease/leases.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include "engine/rules.hpp"

namespace redlock::engine {

const Holding& Leases::add(GrantId grant, Holding holding) {
  const Holding& added = holdings_.add(grant, std::move(holding));
  holdings_.touched(grant);
  return added;
}

void Leases::attach(Instant now, RequestId request, AttachRequest what) {
  assert(request != 0);
  const GrantId grant = ids_.next();
  Holding::Plan plan{
      .grant = grant,
      .name = std::move(what.name),
      .owner = what.owner,
      .token = what.token,
      .lease = what.lease,
      .renew_until = renew_until(now, what.renew, what.max_hold),
      .since = now,
  };
  attaching_.emplace(request, grant);
  add(grant, Holding(terms_, std::move(plan), request, now, out_));
}

void Leases::cancel(RequestId request, Errc why) {
  const auto attaching = attaching_.find(request);
  if (attaching == attaching_.end()) return;
  holdings_.find(attaching->second)->end_requests(why, "", out_);
  holdings_.erase(attaching->second);
  attaching_.erase(attaching);
}

void Leases::round_or_wait(Instant now, const WaitingRound& round) {
  const bool room = out_.rounds_under_way() < terms_.config().rounds_at_once;
  if (waiting_rounds_.empty() && room) return begin_round(now, round);
  waiting_rounds_.push_back(round);
}

void Leases::admit(Instant now) {
  if (!rules::turns_are_given()) return;
  while (!waiting_rounds_.empty() && out_.rounds_under_way() < terms_.config().rounds_at_once) {
    const WaitingRound round = waiting_rounds_.front();
    waiting_rounds_.pop_front();
    begin_round(now, round);
  }
  renew_what_waited(now);
}

void Leases::renew_what_waited(Instant now) {
  while (const auto grant = pace_.next(now)) {
    Holding* const holding = holdings_.find(*grant);
    if (holding == nullptr || !holding->end_waiting(now)) continue;
    holding->on_deadline(now, pace_.full(), out_);
    after_input(*grant);
  }
}

void Leases::begin_round(Instant now, const WaitingRound& round) {
  Holding* const holding = holdings_.find(round.what.grant);
  if (holding == nullptr) {
    return out_.put(
        Finish{round.request, Failed{Errc::lost, "the lease is not held any more", {}}});
  }
  if (round.enters) {
    holding->enter(now, round.request, round.what, out_);
  } else {
    holding->extend(now, round.request, round.what.lease, out_);
  }
  after_input(round.what.grant);
}

void Leases::leave(Instant now, GrantId grant) {
  Holding* const holding = holdings_.find(grant);
  if (holding == nullptr) return;
  holding->leave(now, out_);
  after_input(grant);
}

std::optional<Leases::Freed> Leases::release(Instant now, RequestId request, GrantId grant) {
  if (holdings_.find(grant) == nullptr) {
    if (request != 0) out_.put(Finish{request, ReleaseDone{Released::already_gone}});
    return {};
  }
  std::optional<Holding> taken;
  if (rules::release_ends_renewal()) taken = holdings_.take(grant);
  Holding& holding = taken ? *taken : *holdings_.find(grant);
  holding.end_requests(Errc::lost, "the lease was released meanwhile", out_);
  out_.put(HoldEnded{grant, holding.name(), holding.key()->token, now - holding.since()});
  releases_.release(now, request, holding);
  return Freed{holding.name(), holding.since()};
}

void Leases::give_up(Instant now, GrantId grant, LossReason reason) {
  Holding* const holding = holdings_.find(grant);
  if (holding == nullptr || !rules::holder_may_give_up()) return;
  holding->give_up(now, reason, out_);
  after_input(grant);
}

void Leases::detach(GrantId grant) {
  if (holdings_.find(grant) == nullptr) return;
  const char* why = "the lease was detached meanwhile; the lock stays taken until it expires";
  holdings_.take(grant).end_requests(Errc::lost, why, out_);
}

Instant Leases::valid_until(GrantId grant) {
  const Holding* const holding = holdings_.find(grant);
  return holding == nullptr ? Instant::min() : holding->valid_until();
}

bool Leases::on_reply(Instant now, NodeIndex node, const Tag& tag, const Reply& reply) {
  Holding* const holding = holdings_.find(tag.grant);
  if (holding == nullptr) return false;
  holding->on_reply(now, node, tag, reply, out_);
  after_input(tag.grant);
  return true;
}

void Leases::on_hold_ended(Instant now, NodeIndex node, const Tag& tag, const Reply& reply) {
  out_.hold_ended(node);
  pace_.answered(now, node, tag.sent, executed(reply));
}

void Leases::node_ran_ahead(Instant now, NodeIndex node, Duration by) {
  for (const GrantId grant : holdings_.ids()) {
    holdings_.find(grant)->node_ran_ahead(now, node, by, out_);
    after_input(grant);
  }
}

void Leases::after_input(GrantId grant) {
  const Holding& holding = *holdings_.find(grant);
  if (!attaching_.empty()) {
    std::erase_if(attaching_,
                  [&](const auto& entry) { return entry.second == grant && !holding.attaching(); });
  }
  if (holding.attach_failed()) return holdings_.erase(grant);
  holdings_.touched(grant);
}

/// Leases that came at once, or waited for a loop that did not run, would be renewed at once for
/// ever: all but the first are postponed a little, each to another moment.
void Leases::on_deadline(Instant now) {
  const std::size_t at_once = renewals_at_once();
  std::size_t renewals = 0;
  while (const auto grant = holdings_.due(now)) {
    Holding& holding = *holdings_.find(*grant);
    if (holding.renewal_due(now)) {
      const bool postponed =
          renewals >= at_once && holding.postpone_renewal(now, postponed_renewals_);
      postponed ? ++postponed_renewals_ : ++renewals;
    }
    if (holding.renewal_due(now) && !pace_.open() && holding.may_wait(now)) {
      pace_.wait(now, *grant, holding.wait_for_room());
    }
    holding.on_deadline(now, pace_.full(), out_);
    after_input(*grant);
  }
}

/// Evenly spread, a thousandth of them is due at each moment (see Holding::in_step): three times
/// that is no crowd yet.
std::size_t Leases::renewals_at_once() const {
  return std::max(renewals_in_one_message, holdings_.size() * 3 / 1'000);
}

}  // namespace redlock::engine
