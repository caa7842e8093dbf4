// SPDX-License-Identifier: MIT
// What comes back from the nodes, and what follows when time passes.
#include <algorithm>
#include <cassert>
#include <utility>

#include "engine/engine_impl.hpp"
#include "engine/planted_bug.hpp"
#include "engine/stripe.hpp"

namespace redlock::engine {
namespace {

constexpr std::int64_t absurd_us = std::int64_t{1} << 60;

}  // namespace

void Engine::Impl::on_reply(Instant now, NodeIndex node, const Tag& tag, const Reply& reply) {
  assert(node < terms_.nodes());
  if (tag.kind == Tag::Kind::release) return on_release_reply(now, node, tag, reply);
  if (tag.kind == Tag::Kind::force) return on_force_reply(node, tag, reply);
  if (tag.kind == Tag::Kind::acquire || tag.kind == Tag::Kind::heal) {
    ledger_.on_acquire_reply(now, node, tag, reply, out_);
    const auto* const why = std::get_if<Unavailable>(&reply);
    if (why != nullptr && why->cause == Cause::marker_missing) {
      standing_.on_marker(now, node, Marker::gone);
    }
    const bool by_node = why != nullptr && why->delivery == Delivery::refused;
    if (by_node && why->cause == Cause::incompatible) standing_.on_refused(node);
  }
  if (Attempt* const attempt = attempts_.find(tag.grant)) {
    const bool was_lost = attempt->lost_the_vote();
    attempt->on_reply(now, node, tag, reply, out_);
    after_attempt_input(now, tag.grant, was_lost);
  } else if (Holding* const holding = holdings_.find(tag.grant)) {
    holding->on_reply(now, node, tag, reply, out_);
    after_holding_input(tag.grant);
  } else if (tag.kind == Tag::Kind::hold || tag.kind == Tag::Kind::settle) {
    ledger_.on_hold_reply(now, node, tag, reply);
  }
  // Otherwise it speaks of a grant that is over; its release is written behind it.
  admit(now);
}

void Engine::Impl::on_release_reply(Instant now, NodeIndex node, const Tag& tag,
                                    const Reply& reply) {
  const bool again = ledger_.on_reply(now, node, tag, reply, out_);
  Releasing* const releasing = releasings_.find(tag.grant);
  if (releasing == nullptr || again) return;
  releasing->on_reply(now, node, reply);
  after_releasing_input(tag.grant);
}

void Engine::Impl::after_releasing_input(GrantId grant) {
  const Releasing* const releasing = releasings_.find(grant);
  const auto outcome = releasing->outcome();
  if (!outcome) return releasings_.touched(grant);
  out_.put(Finish{releasing->request(), ReleaseDone{*outcome}});
  releasings_.erase(grant);
}

void Engine::Impl::on_force_reply(NodeIndex node, const Tag& tag, const Reply& reply) {
  Forcing* const forcing = forcings_.find(tag.grant);
  if (forcing == nullptr) return;  // its end has been told
  forcing->on_reply(node, reply);
  after_forcing_input(tag.grant);
}

void Engine::Impl::after_forcing_input(GrantId id) {
  const Forcing& forcing = *forcings_.find(id);
  auto outcome = forcing.outcome();
  if (!outcome) return forcings_.touched(id);
  out_.put(Finish{forcing.request(), std::move(*outcome)});
  forcings_.erase(id);
}

void Engine::Impl::release_attempt(Instant now, const Attempt& attempt) {
  const Attempt::Plan& plan = attempt.plan();
  const NodeGrants& nodes = attempt.nodes();
  const ReleaseLedger::Grant owed{
      plan.grant, plan.name,          plan.owner, plan.lease, nodes.may_answer_late(),
      {},         nodes.awaits_hold()};
  if (!attempt.owner_is_shared()) return ledger_.release(now, owed, nodes.may_hold(), out_);
  ledger_.release(now, owed, attempt.granted(), out_);
  ledger_.release_if_granted(now, owed, attempt.unanswered());
}

void Engine::Impl::after_attempt_input(Instant now, GrantId grant, bool was_lost) {
  const Attempt& attempt = *attempts_.find(grant);
  bool clean_up = !planted(Bug::loss_without_release);
  if (planted(Bug::late_win_not_released)) clean_up = attempt.failure() != Errc::too_late;
  // At once, not when the kind of failure is known: others are waiting for these nodes.
  if (!was_lost && attempt.lost_the_vote() && clean_up) release_attempt(now, attempt);
  if (!attempt.ended()) return attempts_.touched(grant);
  finish_attempt(now, attempts_.take(grant));
}

void Engine::Impl::finish_attempt(Instant now, Attempt attempt) {
  const bool won = attempt.phase() == Attempt::Phase::won;
  const std::optional<Errc> failure = won ? std::nullopt : std::optional(attempt.failure());
  const RequestId request = attempt.plan().request;
  admission_.ended(now, attempt.started(), won || failure == Errc::contended);
  out_.put(
      AttemptDecided{attempt.plan().name, failure, attempt.ballots(), now - attempt.started()});
  if (won) return succeed(now, std::move(attempt));
  Acquisition& acquisition = *acquisitions_.find(request);
  if (auto final = acquisition.on_failure(now, attempt, random_)) {
    return end_acquisition(request, std::move(*final));
  }
  acquisitions_.touched(request);
}

void Engine::Impl::succeed(Instant now, Attempt attempt) {
  const Attempt::Plan& plan = attempt.plan();
  const AcquireRequest& what = acquisitions_.find(plan.request)->what();
  Holding::Plan holding_plan{
      .grant = plan.grant,
      .name = plan.name,
      .owner = plan.owner,
      .token = attempt.token(),
      .lease = plan.lease,
      .renew_until = renew_until(now, what.renew, what.max_hold),
      .since = attempt.started(),
  };
  floors_.on_token(stripe_of(*plan.name), attempt.token());
  const Holding& holding =
      holdings_.add(plan.grant, Holding(terms_, std::move(holding_plan), attempt.nodes(), now));
  out_.put(Finish{plan.request, AcquireSucceeded{plan.grant, plan.owner, attempt.token(),
                                                 holding.valid_until(), holding.loss_deadline()}});
  acquisitions_.erase(plan.request);
  holdings_.touched(plan.grant);
}

void Engine::Impl::after_holding_input(GrantId grant) {
  const Holding& holding = *holdings_.find(grant);
  if (!attaching_.empty()) {
    std::erase_if(attaching_, [&](const auto& entry) {
      return entry.second == grant && holding.attaching() == 0;
    });
  }
  if (holding.attach_failed()) return holdings_.erase(grant);
  holdings_.touched(grant);
}

void Engine::Impl::abandon_attempt(Instant now, GrantId grant) {
  if (attempts_.find(grant) == nullptr) return;
  const Attempt attempt = attempts_.take(grant);
  if (!attempt.lost_the_vote()) release_attempt(now, attempt);
}

void Engine::Impl::end_acquisition(RequestId request, Failed failure) {
  acquisitions_.erase(request);
  out_.put(Finish{request, std::move(failure)});
}

void Engine::Impl::on_node_clock(Instant now, NodeIndex node, std::int64_t unix_us,
                                 Duration uncertainty) {
  // Any number can come out of a damaged clock.
  unix_us = std::clamp(unix_us, -absurd_us, absurd_us);
  floors_.on_node_clock(now, node, unix_us);
  standing_.on_sign_of_life(now, node);
  if (planted(Bug::clocks_not_watched)) return;
  const auto found = clocks_.on_reading(now, node, unix_us, uncertainty);
  if (const auto& moved = found.movement) {
    out_.put(NodeClockMoved{node, moved->by, moved->ours, moved->ask_all});
  }
  if (planted(Bug::moved_clock_keeps_its_votes)) return;
  for (const auto& earlier : found.earlier) node_ran_ahead(now, earlier.node, earlier.by);
}

/// A node whose clock went ahead ends its leases that much earlier, whosever fault it is: if a
/// quorum of them did, ours stood still while leases went on.
void Engine::Impl::node_ran_ahead(Instant now, NodeIndex node, Duration by) {
  for (const GrantId grant : attempts_.ids()) attempts_.find(grant)->node_ran_ahead(node, by);
  for (const GrantId grant : holdings_.ids()) {
    holdings_.find(grant)->node_ran_ahead(now, node, by, out_);
    after_holding_input(grant);
  }
  admit(now);
}

void Engine::Impl::on_deadline(Instant now) {
  while (const auto request = acquisitions_.due(now)) acquisition_due(now, *request);
  while (const auto grant = attempts_.due(now)) {
    Attempt& attempt = *attempts_.find(*grant);
    const bool was_lost = attempt.lost_the_vote();
    attempt.on_deadline(now, out_);
    after_attempt_input(now, *grant, was_lost);
  }
  holdings_due(now);
  while (const auto grant = releasings_.due(now)) {
    releasings_.find(*grant)->on_deadline(now);
    after_releasing_input(*grant);
  }
  while (const auto id = forcings_.due(now)) {
    forcings_.find(*id)->on_deadline(now);
    after_forcing_input(*id);
  }
  ledger_.on_deadline(now, out_);
  standing_.on_deadline(now, out_);
  admit(now);
}

/// Leases that came at once, or waited for a loop that did not run, would be renewed at once for
/// ever: all but the first are postponed a little, each to another moment.
void Engine::Impl::holdings_due(Instant now) {
  const std::size_t at_once = renewals_at_once();
  std::size_t renewals = 0;
  while (const auto grant = holdings_.due(now)) {
    Holding& holding = *holdings_.find(*grant);
    if (holding.renewal_due(now)) {
      const bool postponed =
          renewals >= at_once && holding.postpone_renewal(now, postponed_renewals_);
      postponed ? ++postponed_renewals_ : ++renewals;
    }
    holding.on_deadline(now, out_);
    after_holding_input(*grant);
  }
}

/// Evenly spread, a thousandth of them is due at each moment (see Holding::in_step): three times
/// that is no crowd yet.
std::size_t Engine::Impl::renewals_at_once() const {
  return std::max(renewals_in_one_message, holdings_.size() * 3 / 1'000);
}

void Engine::Impl::acquisition_due(Instant now, RequestId request) {
  Acquisition& acquisition = *acquisitions_.find(request);
  if (!acquisition.over(now)) return attempt_or_wait(now, acquisition);
  const GrantId grant = acquisition.attempt();
  Failed failure = acquisition.time_is_over(attempts_.find(grant));
  abandon_attempt(now, grant);
  end_acquisition(request, std::move(failure));
}

}  // namespace redlock::engine
