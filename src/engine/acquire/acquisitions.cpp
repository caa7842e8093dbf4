// SPDX-License-Identifier: MIT
#include "engine/acquire/acquisitions.hpp"

#include <cassert>
#include <utility>

#include "engine/rules.hpp"
#include "engine/stripe.hpp"

namespace redlock::engine {

Acquisitions::Acquisitions(const Terms& terms, RandomSource& random, GrantIds& ids, Leases& leases,
                           Releases& releases, Outbox& out)
    : terms_(terms),
      random_(random),
      ids_(ids),
      leases_(leases),
      releases_(releases),
      out_(out),
      floors_(terms.nodes(), terms.config().clock_floor),
      admission_(terms.config().attempts_at_once, terms.config().node_timeout) {}

void Acquisitions::acquire(Instant now, RequestId request, AcquireRequest what) {
  assert(request != 0);
  Acquisition& acquisition =
      acquisitions_.add(request, Acquisition(terms_, request, std::move(what), now));
  if (acquisition.over(now)) return end(request, acquisition.time_is_over(nullptr));
  attempt_or_wait(now, acquisition);
}

bool Acquisitions::cancel(Instant now, RequestId request, Errc why) {
  const Acquisition* const acquisition = acquisitions_.find(request);
  if (acquisition == nullptr) return false;
  const GrantId grant = acquisition->attempt();
  Failed failure{why, {}, {}};
  if (const Attempt* const attempt = attempts_.find(grant)) failure.ballots = attempt->ballots();
  abandon_attempt(now, grant);
  end(request, std::move(failure));
  return true;
}

void Acquisitions::attempt_or_wait(Instant now, Acquisition& acquisition) {
  if (admission_.open(attempts_.size())) return begin_attempt(now, acquisition);
  acquisition.wait_for_turn();
  acquisitions_.touched(acquisition.request());
  admission_.wait(acquisition.request());
  admit(now);
}

void Acquisitions::admit(Instant now) {
  if (!rules::turns_are_given()) return;
  // An attempt may end as it begins, so this is a loop and not what follows from an end.
  while (const auto request = admission_.next(attempts_.size())) {
    Acquisition* const acquisition = acquisitions_.find(*request);
    if (acquisition != nullptr) begin_attempt(now, *acquisition);
  }
}

void Acquisitions::begin_attempt(Instant now, Acquisition& acquisition) {
  const AcquireRequest& what = acquisition.what();
  const GrantId grant = ids_.next();
  Attempt::Plan plan{
      .grant = grant,
      .request = acquisition.request(),
      .name = what.name,
      .owner = rules::owner_of_attempt(random_, acquisition.request()),
      .lease = what.lease,
      .min_validity = what.min_validity,
      .floor = floors_.floor(now, stripe_of(*what.name)),
  };
  acquisition.attempt_began(grant);
  acquisitions_.touched(acquisition.request());
  attempts_.add(grant, Attempt(terms_, std::move(plan), now, out_));
  after_attempt_input(now, grant, false);
}

bool Acquisitions::on_reply(Instant now, NodeIndex node, const Tag& tag, const Reply& reply) {
  Attempt* const attempt = attempts_.find(tag.grant);
  if (attempt == nullptr) return false;
  const bool was_lost = attempt->lost_the_vote();
  attempt->on_reply(now, node, tag, reply, out_);
  after_attempt_input(now, tag.grant, was_lost);
  return true;
}

void Acquisitions::node_ran_ahead(NodeIndex node, Duration by) {
  for (const GrantId grant : attempts_.ids()) attempts_.find(grant)->node_ran_ahead(node, by);
}

void Acquisitions::after_attempt_input(Instant now, GrantId grant, bool was_lost) {
  const Attempt& attempt = *attempts_.find(grant);
  const bool lost_now = !was_lost && attempt.lost_the_vote();
  if (lost_now && rules::failed_attempt_is_released(attempt.failure())) {
    releases_.release(now, attempt);
  }
  if (!attempt.ended()) return attempts_.touched(grant);
  finish_attempt(now, attempts_.take(grant));
}

void Acquisitions::finish_attempt(Instant now, Attempt attempt) {
  const bool won = attempt.phase() == Attempt::Phase::won;
  const std::optional<Errc> failure = won ? std::nullopt : std::optional(attempt.failure());
  const RequestId request = attempt.plan().request;
  admission_.ended(now, attempt.started(), won || failure == Errc::contended);
  out_.put(
      AttemptDecided{attempt.plan().name, failure, attempt.ballots(), now - attempt.started()});
  if (won) return succeed(now, std::move(attempt));
  Acquisition& acquisition = *acquisitions_.find(request);
  if (auto final = acquisition.on_failure(now, attempt, random_)) {
    return end(request, std::move(*final));
  }
  acquisitions_.touched(request);
}

void Acquisitions::succeed(Instant now, Attempt attempt) {
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
      leases_.add(plan.grant, Holding(terms_, std::move(holding_plan), attempt.nodes(), now));
  out_.put(Finish{plan.request, AcquireSucceeded{plan.grant, plan.owner, attempt.token(),
                                                 holding.valid_until(), holding.loss_deadline()}});
  acquisitions_.erase(plan.request);
}

void Acquisitions::abandon_attempt(Instant now, GrantId grant) {
  if (attempts_.find(grant) == nullptr) return;
  const Attempt attempt = attempts_.take(grant);
  if (!attempt.lost_the_vote()) releases_.release(now, attempt);
}

void Acquisitions::end(RequestId request, Failed failure) {
  acquisitions_.erase(request);
  out_.put(Finish{request, std::move(failure)});
}

void Acquisitions::on_deadline(Instant now) {
  while (const auto request = acquisitions_.due(now)) due(now, *request);
  while (const auto grant = attempts_.due(now)) {
    Attempt& attempt = *attempts_.find(*grant);
    const bool was_lost = attempt.lost_the_vote();
    attempt.on_deadline(now, out_);
    after_attempt_input(now, *grant, was_lost);
  }
}

void Acquisitions::due(Instant now, RequestId request) {
  Acquisition& acquisition = *acquisitions_.find(request);
  if (!acquisition.over(now)) return attempt_or_wait(now, acquisition);
  const GrantId grant = acquisition.attempt();
  Failed failure = acquisition.time_is_over(attempts_.find(grant));
  abandon_attempt(now, grant);
  end(request, std::move(failure));
}

}  // namespace redlock::engine
