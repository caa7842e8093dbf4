// SPDX-License-Identifier: MIT
#include "engine/lease/leases.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include "engine/rules.hpp"

namespace redlock::engine {

const HeldLease& Leases::add(GrantId grant, HeldLease lease) {
  const HeldLease& added = held_.add(grant, std::move(lease));
  held_.touched(grant);
  return added;
}

void Leases::attach(Instant now, RequestId request, AttachRequest what) {
  assert(request != 0);
  const GrantId grant = ids_.next();
  HeldLease::Plan plan{
      .grant = grant,
      .name = std::move(what.name),
      .owner = what.owner,
      .token = what.token,
      .lease = what.lease,
      .renew_until = renew_until(now, what.renew, what.max_hold),
      .since = now,
  };
  attaching_.emplace(request, grant);
  add(grant, HeldLease(electorate_, std::move(plan), request, now, out_));
  after_input(grant);
}

void Leases::cancel(RequestId request, Errc why) {
  const auto attaching = attaching_.find(request);
  if (attaching == attaching_.end()) return;
  held_.find(attaching->second)->end_requests(why, "", out_);
  held_.erase(attaching->second);
  attaching_.erase(attaching);
}

void Leases::round_or_wait(Instant now, const WaitingRound& round) {
  const bool room = out_.rounds_under_way() < electorate_.config().rounds_at_once;
  if (waiting_rounds_.empty() && room) return begin_round(now, round);
  waiting_rounds_.push_back(round);
}

void Leases::admit(Instant now) {
  if (!rules::room_is_given()) return;
  while (!waiting_rounds_.empty() &&
         out_.rounds_under_way() < electorate_.config().rounds_at_once) {
    const WaitingRound round = waiting_rounds_.front();
    waiting_rounds_.pop_front();
    begin_round(now, round);
  }
  renew_what_waited(now);
}

void Leases::renew_what_waited(Instant now) {
  while (const auto grant = pace_.next(now)) {
    HeldLease* const lease = held_.find(*grant);
    if (lease == nullptr || !lease->end_waiting(now)) continue;
    lease->on_deadline(now, pace_.full(), out_);
    after_input(*grant);
  }
}

void Leases::begin_round(Instant now, const WaitingRound& round) {
  HeldLease* const lease = held_.find(round.what.grant);
  if (lease == nullptr) {
    return out_.put(
        Finish{round.request, Failed{Errc::lost, "the lease is not held any more", {}}});
  }
  if (round.enters) {
    lease->enter(now, round.request, round.what, out_);
  } else {
    lease->extend(now, round.request, round.what.lease, out_);
  }
  after_input(round.what.grant);
}

void Leases::leave(Instant now, GrantId grant) {
  HeldLease* const lease = held_.find(grant);
  if (lease == nullptr) return;
  lease->leave(now, out_);
  after_input(grant);
}

std::optional<Leases::Freed> Leases::release(Instant now, RequestId request, GrantId grant) {
  if (held_.find(grant) == nullptr) {
    if (request != 0) out_.put(Finish{request, ReleaseDone{Released::already_gone}});
    return {};
  }
  std::optional<HeldLease> taken;
  if (rules::release_ends_renewal()) taken = held_.take(grant);
  HeldLease& lease = taken ? *taken : *held_.find(grant);
  lease.end_requests(Errc::lost, "the lease was released meanwhile", out_);
  out_.put(HoldEnded{grant, lease.name(), lease.key()->token, now - lease.since()});
  releaser_.release(now, request, lease);
  return Freed{lease.name(), lease.since()};
}

void Leases::give_up(Instant now, GrantId grant, LossReason reason) {
  HeldLease* const lease = held_.find(grant);
  if (lease == nullptr || !rules::holder_may_give_up()) return;
  lease->give_up(now, reason, out_);
  after_input(grant);
}

void Leases::detach(GrantId grant) {
  if (held_.find(grant) == nullptr) return;
  const char* why = "the lease was detached meanwhile; the lock stays taken until it expires";
  held_.take(grant).end_requests(Errc::lost, why, out_);
}

Instant Leases::valid_until(GrantId grant) {
  const HeldLease* const lease = held_.find(grant);
  return lease == nullptr ? Instant::min() : lease->valid_until();
}

bool Leases::on_reply(Instant now, NodeIndex node, const Tag& tag, const Reply& reply) {
  HeldLease* const lease = held_.find(tag.grant);
  if (lease == nullptr) return false;
  lease->on_reply(now, node, tag, reply, out_);
  after_input(tag.grant);
  return true;
}

void Leases::on_hold_ended(Instant now, NodeIndex node, const Tag& tag, const Reply& reply) {
  out_.hold_ended(node);
  pace_.answered(now, node, tag.sent, executed(reply));
}

void Leases::node_ran_ahead(Instant now, NodeIndex node, Duration by) {
  for (const GrantId grant : held_.ids()) {
    held_.find(grant)->node_ran_ahead(now, node, by, out_);
    after_input(grant);
  }
}

void Leases::node_removed(NodeIndex node) {
  for (const GrantId grant : held_.ids()) held_.find(grant)->node_removed(node);
}

void Leases::majorities_changed() {
  for (const GrantId grant : held_.ids()) held_.find(grant)->majorities_changed();
}

void Leases::after_input(GrantId grant) {
  const HeldLease& lease = *held_.find(grant);
  if (!attaching_.empty()) {
    std::erase_if(attaching_,
                  [&](const auto& entry) { return entry.second == grant && !lease.attaching(); });
  }
  if (lease.attach_failed()) return held_.erase(grant);
  held_.touched(grant);
}

/// Leases that came at once, or waited for a loop that did not run, would be renewed at once for
/// ever: all but the first are postponed a little, each to another moment.
void Leases::on_deadline(Instant now) {
  const std::size_t at_once = renewals_at_once();
  std::size_t renewals = 0;
  while (const auto grant = held_.due(now)) {
    HeldLease& lease = *held_.find(*grant);
    if (lease.renewal_due(now)) {
      const bool postponed =
          renewals >= at_once && lease.postpone_renewal(now, postponed_renewals_);
      postponed ? ++postponed_renewals_ : ++renewals;
    }
    if (lease.renewal_due(now) && !pace_.open() && lease.may_wait(now)) {
      pace_.wait(now, *grant, lease.wait_for_room());
    }
    lease.on_deadline(now, pace_.full(), out_);
    after_input(*grant);
  }
}

/// Evenly spread, a thousandth of them is due at each moment (see HeldLease::in_step): three times
/// that is no crowd yet.
std::size_t Leases::renewals_at_once() const {
  return std::max(renewals_in_one_message, held_.size() * 3 / 1'000);
}

}  // namespace redlock::engine
