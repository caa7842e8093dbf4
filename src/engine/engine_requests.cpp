// SPDX-License-Identifier: MIT
// What callers ask of the engine.
#include <cassert>
#include <utility>

#include "engine/engine_impl.hpp"
#include "engine/planted_bug.hpp"
#include "engine/stripe.hpp"

namespace redlock::engine {

Engine::Impl::Impl(const Config& config, RandomSource& random)
    : terms_(config),
      random_(random),
      floors_(config.nodes, config.clock_floor),
      ledger_(config.nodes) {}

void Engine::Impl::acquire(Instant now, RequestId request, AcquireRequest what) {
  assert(request != 0 && !acquisitions_.contains(request));
  const auto [place, inserted] = acquisitions_.emplace(
      request, Timed<Acquisition>{Acquisition(terms_, request, std::move(what), now)});
  Timed<Acquisition>& acquisition = place->second;
  if (acquisition.machine.over(now)) {
    return end_acquisition(request, acquisition.machine.time_is_over(nullptr));
  }
  begin_attempt(now, acquisition);
}

void Engine::Impl::begin_attempt(Instant now, Timed<Acquisition>& acquisition) {
  const AcquireRequest& what = acquisition.machine.what();
  const GrantId grant = ++last_grant_;
  Attempt::Plan plan{
      .grant = grant,
      .request = acquisition.machine.request(),
      .name = what.name,
      .owner = {{random_.next(), random_.next()}},
      .lease = what.lease,
      .min_validity = what.min_validity,
      .floor = floors_.floor(now, stripe_of(*what.name)),
  };
  if (planted(Bug::owner_reused)) plan.owner = {{plan.request, ~plan.request}};
  acquisition.machine.attempt_began(grant);
  queue(acquisition, acquisition.machine.request(), Timer::Of::acquisition);
  const auto [place, inserted] =
      attempts_.emplace(grant, Timed<Attempt>{Attempt(terms_, std::move(plan), now, out_)});
  queue(place->second, grant, Timer::Of::attempt);
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
      .renew = what.renew,
      .renew_until = what.max_hold ? now + *what.max_hold : never,
  };
  attaching_.emplace(request, grant);
  const auto [place, inserted] = holdings_.emplace(
      grant, Timed<Holding>{Holding(terms_, std::move(plan), request, now, out_)});
  queue(place->second, grant, Timer::Of::holding);
}

void Engine::Impl::cancel(Instant now, RequestId request, Errc why) {
  const auto acquisition = acquisitions_.find(request);
  if (acquisition != acquisitions_.end()) {
    const GrantId attempt = acquisition->second.machine.attempt();
    Failed failure{why, {}, {}};
    if (const auto found = attempts_.find(attempt); found != attempts_.end()) {
      failure.ballots = found->second.machine.ballots();
    }
    abandon_attempt(now, attempt);
    return end_acquisition(request, std::move(failure));
  }
  const auto attaching = attaching_.find(request);
  if (attaching == attaching_.end()) return;
  holdings_.at(attaching->second).machine.end_requests(why, "", out_);
  holdings_.erase(attaching->second);
  attaching_.erase(attaching);
}

void Engine::Impl::extend(Instant now, RequestId request, GrantId grant,
                          std::chrono::milliseconds lease) {
  const auto found = holdings_.find(grant);
  if (found == holdings_.end()) {
    return out_.put(Finish{request, Failed{Errc::lost, "the lease is not held any more", {}}});
  }
  found->second.machine.extend(now, request, lease, out_);
  after_holding_input(grant);
}

void Engine::Impl::release(Instant now, RequestId request, GrantId grant) {
  const auto found = holdings_.find(grant);
  if (found == holdings_.end()) {
    if (request != 0) out_.put(Finish{request, ReleaseDone{Released::already_gone}});
    return;
  }
  Holding& holding = found->second.machine;
  holding.end_requests(Errc::cancelled, "the lease was released meanwhile", out_);
  const ReleaseLedger::Grant owed{grant, holding.plan().name, holding.plan().owner,
                                  holding.longest_lease()};
  const NodeSet nodes = holding.may_hold();
  holdings_.erase(found);
  begin_release(now, request, owed, nodes);
}

void Engine::Impl::release(Instant now, RequestId request, Name name, OwnerId owner,
                           std::chrono::milliseconds lease) {
  NodeSet every_node;
  for (NodeIndex node = 0; node < terms_.nodes(); ++node) every_node.insert(node);
  begin_release(now, request, {++last_grant_, std::move(name), owner, lease}, every_node);
}

void Engine::Impl::begin_release(Instant now, RequestId request, const ReleaseLedger::Grant& grant,
                                 NodeSet nodes) {
  ledger_.release(now, grant, nodes, out_);
  if (request == 0) return;
  const auto [place, inserted] =
      releasings_.emplace(grant.id, Timed<Releasing>{Releasing(terms_, request, nodes, now)});
  queue(place->second, grant.id, Timer::Of::releasing);
  finish_releasing_if_certain(grant.id);
}

void Engine::Impl::detach(GrantId grant) {
  const auto found = holdings_.find(grant);
  if (found == holdings_.end()) return;
  found->second.machine.end_requests(Errc::cancelled, "the lease was detached meanwhile", out_);
  holdings_.erase(found);
}

}  // namespace redlock::engine
