// SPDX-License-Identifier: MIT
// What callers ask of the engine.
#include <algorithm>
#include <cassert>
#include <utility>

#include "engine/engine_impl.hpp"
#include "engine/planted_bug.hpp"
#include "engine/stripe.hpp"

namespace redlock::engine {

Engine::Impl::Impl(const Config& config, RandomSource& random)
    : standing_(config),
      clocks_(config),
      terms_(config, standing_, clocks_),
      random_(random),
      floors_(config.nodes, config.clock_floor),
      ledger_(config.nodes),
      admission_(config.attempts_at_once, config.node_timeout) {}

void Engine::Impl::acquire(Instant now, RequestId request, AcquireRequest what) {
  assert(request != 0);
  Acquisition& acquisition =
      acquisitions_.add(request, Acquisition(terms_, request, std::move(what), now));
  if (acquisition.over(now)) return end_acquisition(request, acquisition.time_is_over(nullptr));
  attempt_or_wait(now, acquisition);
}

void Engine::Impl::attempt_or_wait(Instant now, Acquisition& acquisition) {
  if (admission_.open(attempts_.size())) return begin_attempt(now, acquisition);
  acquisition.wait_for_turn();
  acquisitions_.touched(acquisition.request());
  admission_.wait(acquisition.request());
  admit(now);
}

void Engine::Impl::admit(Instant now) {
  if (planted(Bug::turn_not_given)) return;
  // An attempt may end as it begins, so this is a loop and not what follows from an end.
  while (const auto request = admission_.next(attempts_.size())) {
    Acquisition* const acquisition = acquisitions_.find(*request);
    if (acquisition != nullptr) begin_attempt(now, *acquisition);
  }
  while (!waiting_rounds_.empty() && out_.rounds_under_way() < terms_.config().rounds_at_once) {
    const WaitingRound round = waiting_rounds_.front();
    waiting_rounds_.pop_front();
    begin_round(now, round);
  }
}

void Engine::Impl::begin_attempt(Instant now, Acquisition& acquisition) {
  const AcquireRequest& what = acquisition.what();
  const GrantId grant = ++last_grant_;
  Attempt::Plan plan{
      .grant = grant,
      .request = acquisition.request(),
      .name = what.name,
      .owner = random_.next_owner(),
      .lease = what.lease,
      .min_validity = what.min_validity,
      .floor = floors_.floor(now, stripe_of(*what.name)),
  };
  if (planted(Bug::owner_reused)) plan.owner = {{plan.request, ~plan.request}};
  acquisition.attempt_began(grant);
  acquisitions_.touched(acquisition.request());
  attempts_.add(grant, Attempt(terms_, std::move(plan), now, out_));
  after_attempt_input(now, grant, false);
}

void Engine::Impl::attach(Instant now, RequestId request, AttachRequest what) {
  assert(request != 0);
  const GrantId grant = ++last_grant_;
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
  holdings_.add(grant, Holding(terms_, std::move(plan), request, now, out_));
  holdings_.touched(grant);
}

void Engine::Impl::cancel(Instant now, RequestId request, Errc why) {
  if (const Acquisition* const acquisition = acquisitions_.find(request)) {
    const GrantId grant = acquisition->attempt();
    Failed failure{why, {}, {}};
    if (const Attempt* const attempt = attempts_.find(grant)) failure.ballots = attempt->ballots();
    abandon_attempt(now, grant);
    end_acquisition(request, std::move(failure));
    // A client that closes ends what waits, too: nothing of that is begun in between.
    if (why != Errc::closed) admit(now);
    return;
  }
  const auto attaching = attaching_.find(request);
  if (attaching == attaching_.end()) return;
  holdings_.find(attaching->second)->end_requests(why, "", out_);
  holdings_.erase(attaching->second);
  attaching_.erase(attaching);
  admit(now);
}

void Engine::Impl::extend(Instant now, RequestId request, GrantId grant,
                          std::chrono::milliseconds lease) {
  round_or_wait(now, {request, Extension{grant, lease}});
}

void Engine::Impl::enter(Instant now, RequestId request, const EnterRequest& what) {
  round_or_wait(now, {request, what});
}

void Engine::Impl::round_or_wait(Instant now, const WaitingRound& round) {
  const bool room = out_.rounds_under_way() < terms_.config().rounds_at_once;
  if (waiting_rounds_.empty() && room) return begin_round(now, round);
  waiting_rounds_.push_back(round);
}

void Engine::Impl::begin_round(Instant now, const WaitingRound& round) {
  const auto* const extension = std::get_if<Extension>(&round.what);
  const auto* const entry = std::get_if<EnterRequest>(&round.what);
  const GrantId grant = extension != nullptr ? extension->grant : entry->grant;
  Holding* const holding = holdings_.find(grant);
  if (holding == nullptr) {
    return out_.put(
        Finish{round.request, Failed{Errc::lost, "the lease is not held any more", {}}});
  }
  if (extension != nullptr) {
    holding->extend(now, round.request, extension->lease, out_);
  } else {
    holding->enter(now, round.request, *entry, out_);
  }
  after_holding_input(grant);
}

void Engine::Impl::leave(Instant now, GrantId grant) {
  Holding* const holding = holdings_.find(grant);
  if (holding == nullptr) return;
  holding->leave(now, out_);
  after_holding_input(grant);
  admit(now);
}

void Engine::Impl::release(Instant now, RequestId request, GrantId grant) {
  if (holdings_.find(grant) == nullptr) {
    if (request != 0) out_.put(Finish{request, ReleaseDone{Released::already_gone}});
    return;
  }
  const bool goes_on = planted(Bug::renewed_after_release);
  Holding holding = goes_on ? *holdings_.find(grant) : holdings_.take(grant);
  holding.end_requests(Errc::lost, "the lease was released meanwhile", out_);
  ReleaseLedger::Grant owed{grant,
                            holding.plan().name,
                            holding.plan().owner,
                            holding.longest_lease(),
                            holding.nodes().may_answer_late(),
                            {},
                            holding.nodes().awaits_hold()};
  NodeSet nodes = holding.nodes().may_hold();
  if (holding.taken_up()) {
    // Whoever detached it may have an acquire or heal on its way, also to a node that denied it;
    // and what it was granted may last longer than what is asked for here.
    owed.keep_out = terms_.config().max_lease;
    owed.lease = std::max(owed.lease, owed.keep_out);
    nodes = NodeSet::first(terms_.nodes());
  }
  begin_release(now, request, owed, nodes, holding.nodes().trusted(now));
  admit(now);
}

void Engine::Impl::release(Instant now, RequestId request, Name name, OwnerId owner,
                           std::chrono::milliseconds lease) {
  const NodeSet every_node = NodeSet::first(terms_.nodes());
  const auto keep_out = std::max(lease, terms_.config().max_lease);
  begin_release(now, request, {++last_grant_, std::move(name), owner, lease, {}, keep_out},
                every_node, {});
}

void Engine::Impl::begin_release(Instant now, RequestId request, const ReleaseLedger::Grant& grant,
                                 NodeSet nodes, NodeSet confirmed) {
  ledger_.release(now, grant, nodes, out_);
  if (request == 0) return;
  releasings_.add(grant.id, Releasing(terms_, request, nodes, confirmed, now));
  after_releasing_input(grant.id);
}

void Engine::Impl::force_release(Instant now, RequestId request, Name name, OwnerId owner,
                                 std::chrono::milliseconds lease) {
  const GrantId id = ++last_grant_;
  forcings_.add(id, Forcing(terms_, {id, request, std::move(name), owner, lease}, now, out_));
  forcings_.touched(id);
}

void Engine::Impl::give_up(Instant now, GrantId grant, LossReason reason) {
  Holding* const holding = holdings_.find(grant);
  if (holding == nullptr || planted(Bug::give_up_ignored)) return;
  holding->give_up(now, reason, out_);
  after_holding_input(grant);
  admit(now);
}

void Engine::Impl::detach(Instant now, GrantId grant) {
  if (holdings_.find(grant) == nullptr) return;
  const char* why = "the lease was detached meanwhile; the lock stays taken until it expires";
  holdings_.take(grant).end_requests(Errc::lost, why, out_);
  admit(now);
}

}  // namespace redlock::engine
