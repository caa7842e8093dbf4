// SPDX-License-Identifier: MIT
// What comes back from the nodes, and what follows when time passes.
#include <cassert>
#include <utility>

#include "engine/engine_impl.hpp"
#include "engine/planted_bug.hpp"
#include "engine/stripe.hpp"

namespace redlock::engine {

void Engine::Impl::on_reply(Instant now, NodeIndex node, const Tag& tag, const Reply& reply) {
  assert(node < terms_.nodes());
  if (tag.kind == Tag::Kind::release) return on_release_reply(now, node, tag, reply);
  if (tag.kind == Tag::Kind::acquire || tag.kind == Tag::Kind::heal) {
    ledger_.on_acquire_reply(node, tag.grant, reply);
  }
  if (const auto attempt = attempts_.find(tag.grant); attempt != attempts_.end()) {
    const bool was_lost = attempt->second.machine.lost_the_vote();
    attempt->second.machine.on_reply(now, node, tag, reply, out_);
    return after_attempt_input(now, tag.grant, was_lost);
  }
  if (const auto holding = holdings_.find(tag.grant); holding != holdings_.end()) {
    holding->second.machine.on_reply(now, node, tag, reply, out_);
    after_holding_input(tag.grant);
  }
  // Otherwise it speaks of a grant that is over; its release is written behind it.
}

void Engine::Impl::on_release_reply(Instant now, NodeIndex node, const Tag& tag,
                                    const Reply& reply) {
  ledger_.on_reply(now, node, tag, reply, out_);
  const auto found = releasings_.find(tag.grant);
  if (found == releasings_.end()) return;
  found->second.machine.on_reply(node, reply);
  finish_releasing_if_certain(tag.grant);
}

void Engine::Impl::finish_releasing_if_certain(GrantId grant) {
  const auto found = releasings_.find(grant);
  const auto outcome = found->second.machine.outcome();
  if (!outcome) return;
  out_.put(Finish{found->second.machine.request(), ReleaseDone{*outcome}});
  releasings_.erase(found);
}

void Engine::Impl::after_attempt_input(Instant now, GrantId grant, bool was_lost) {
  const auto found = attempts_.find(grant);
  Attempt& attempt = found->second.machine;
  bool clean_up = !planted(Bug::loss_without_release);
  if (planted(Bug::late_win_not_released)) clean_up = attempt.failure() != Errc::too_late;
  if (!was_lost && attempt.lost_the_vote() && clean_up) {
    // At once, not when the kind of failure is known: others are waiting for these nodes.
    const Attempt::Plan& plan = attempt.plan();
    ledger_.release(now, {grant, plan.name, plan.owner, plan.lease}, attempt.nodes().may_hold(),
                    out_);
  }
  if (!attempt.ended()) return queue(found->second, grant, Timer::Of::attempt);
  Attempt ended = std::move(attempt);
  attempts_.erase(found);
  finish_attempt(now, std::move(ended));
}

void Engine::Impl::finish_attempt(Instant now, Attempt attempt) {
  const bool won = attempt.phase() == Attempt::Phase::won;
  const std::optional<Errc> failure = won ? std::nullopt : std::optional(attempt.failure());
  const RequestId request = attempt.plan().request;
  out_.put(
      AttemptDecided{attempt.plan().name, failure, attempt.ballots(), now - attempt.started()});
  if (won) return succeed(now, std::move(attempt));
  Timed<Acquisition>& acquisition = acquisitions_.at(request);
  if (auto final = acquisition.machine.on_failure(now, attempt, random_)) {
    return end_acquisition(request, std::move(*final));
  }
  queue(acquisition, request, Timer::Of::acquisition);
}

void Engine::Impl::succeed(Instant now, Attempt attempt) {
  const Attempt::Plan& plan = attempt.plan();
  const AcquireRequest& what = acquisitions_.at(plan.request).machine.what();
  Holding::Plan holding_plan{
      .grant = plan.grant,
      .name = plan.name,
      .owner = plan.owner,
      .token = attempt.token(),
      .lease = plan.lease,
      .renew = what.renew,
      .renew_until = what.max_hold ? now + *what.max_hold : never,
  };
  floors_.on_token(stripe_of(*plan.name), attempt.token());
  const auto [place, inserted] = holdings_.emplace(
      plan.grant, Timed<Holding>{Holding(terms_, std::move(holding_plan), attempt.nodes(), now)});
  const Instant valid_until = place->second.machine.valid_until();
  out_.put(
      Finish{plan.request, AcquireSucceeded{plan.grant, plan.owner, attempt.token(), valid_until}});
  acquisitions_.erase(plan.request);
  queue(place->second, plan.grant, Timer::Of::holding);
}

void Engine::Impl::after_holding_input(GrantId grant) {
  const auto found = holdings_.find(grant);
  const Holding& holding = found->second.machine;
  if (!attaching_.empty()) {
    std::erase_if(attaching_, [&](const auto& entry) {
      return entry.second == grant && holding.attaching() == 0;
    });
  }
  if (holding.attach_failed()) {
    holdings_.erase(found);
    return;
  }
  queue(found->second, grant, Timer::Of::holding);
}

void Engine::Impl::abandon_attempt(Instant now, GrantId grant) {
  const auto found = attempts_.find(grant);
  if (found == attempts_.end()) return;
  const Attempt& attempt = found->second.machine;
  if (!attempt.lost_the_vote()) {
    const Attempt::Plan& plan = attempt.plan();
    ledger_.release(now, {grant, plan.name, plan.owner, plan.lease}, attempt.nodes().may_hold(),
                    out_);
  }
  attempts_.erase(found);
}

void Engine::Impl::end_acquisition(RequestId request, Failed failure) {
  acquisitions_.erase(request);
  out_.put(Finish{request, std::move(failure)});
}

void Engine::Impl::on_deadline(Instant now) {
  while (timers_.due(now)) {
    const Timer timer = timers_.pop();
    switch (timer.of) {
      case Timer::Of::acquisition:
        acquisition_due(now, timer);
        break;
      case Timer::Of::attempt:
        attempt_due(now, timer);
        break;
      case Timer::Of::holding:
        holding_due(now, timer);
        break;
      case Timer::Of::releasing:
        releasing_due(now, timer);
        break;
    }
  }
  ledger_.on_deadline(now, out_);
}

void Engine::Impl::acquisition_due(Instant now, const Timer& timer) {
  Timed<Acquisition>* const timed = due(acquisitions_, timer);
  if (timed == nullptr) return;
  Acquisition& acquisition = timed->machine;
  if (acquisition.over(now)) {
    const auto attempt = attempts_.find(acquisition.attempt());
    Failed failure =
        acquisition.time_is_over(attempt == attempts_.end() ? nullptr : &attempt->second.machine);
    abandon_attempt(now, acquisition.attempt());
    return end_acquisition(timer.id, std::move(failure));
  }
  const bool pausing = acquisition.attempt() == 0;
  if (pausing && acquisition.deadline() <= now) return begin_attempt(now, *timed);
  queue(*timed, timer.id, Timer::Of::acquisition);
}

void Engine::Impl::attempt_due(Instant now, const Timer& timer) {
  Timed<Attempt>* const timed = due(attempts_, timer);
  if (timed == nullptr) return;
  const bool was_lost = timed->machine.lost_the_vote();
  timed->machine.on_deadline(now);
  after_attempt_input(now, timer.id, was_lost);
}

void Engine::Impl::holding_due(Instant now, const Timer& timer) {
  Timed<Holding>* const timed = due(holdings_, timer);
  if (timed == nullptr) return;
  timed->machine.on_deadline(now, out_);
  after_holding_input(timer.id);
}

void Engine::Impl::releasing_due(Instant now, const Timer& timer) {
  Timed<Releasing>* const timed = due(releasings_, timer);
  if (timed == nullptr) return;
  timed->machine.on_deadline(now);
  finish_releasing_if_certain(timer.id);
}

}  // namespace redlock::engine
