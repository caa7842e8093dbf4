// SPDX-License-Identifier: MIT
#include "engine/acquire/acquisitions.hpp"

#include <cassert>
#include <utility>

#include "engine/rules.hpp"
#include "engine/stripe.hpp"

namespace redlock::engine {
namespace {

/// Whoever takes part after a grant enters the nodes' queues by then. It is not the next, and what
/// goes out with the release of what was granted costs no messages of its own.
constexpr Duration goes_with_a_release = std::chrono::milliseconds(1);

}  // namespace

Acquisitions::Acquisitions(const Terms& terms, RandomSource& random, GrantIds& ids, Leases& leases,
                           Releases& releases, Outbox& out)
    : terms_(terms),
      random_(random),
      ids_(ids),
      leases_(leases),
      releases_(releases),
      out_(out),
      floors_(terms.nodes(), terms.config().clock_floor),
      admission_(terms.config().attempts_at_once, terms.config().node_timeout),
      wakes_(terms.nodes()) {}

void Acquisitions::acquire(Instant now, RequestId request, AcquireRequest what) {
  assert(request != 0);
  Acquisition& acquisition =
      acquisitions_.add(request, Acquisition(terms_, request, std::move(what), now));
  LocalQueues* const queues = local_queues(acquisition.what());
  const bool takes_part = queues == nullptr || queues->join(acquisition.what().name, request);
  if (acquisition.patient()) acquisition.take_ticket(next_ticket(now));
  acquisition.wait_locally(!takes_part);
  if (acquisition.over(now)) return end(now, request, acquisition.time_is_over(nullptr));
  if (!takes_part) return acquisitions_.touched(request);
  attempt_or_wait(now, acquisition);
}

std::int64_t Acquisitions::next_ticket(Instant now) {
  return last_ticket_ = std::max(last_ticket_ + 1, floors_.clock(now));
}

void Acquisitions::take_new_tickets() {
  if (!rules::nodes_clocks_order()) return;
  last_ticket_ = 0;
  for (const RequestId request : acquisitions_.ids()) {
    Acquisition& acquisition = *acquisitions_.find(request);
    if (!acquisition.has_ticket()) continue;
    acquisition.take_ticket(next_ticket(acquisition.began()));
    Attempt* const attempt = attempts_.find(acquisition.attempt());
    if (attempt != nullptr) attempt->take_ticket(acquisition.waiter().ticket);
  }
}

bool Acquisitions::cancel(Instant now, RequestId request, Errc why) {
  const Acquisition* const acquisition = acquisitions_.find(request);
  if (acquisition == nullptr) return false;
  const GrantId grant = acquisition->attempt();
  Failed failure{why, {}, {}};
  if (const Attempt* const attempt = attempts_.find(grant)) failure.ballots = attempt->ballots();
  const NodeSet told = abandon_attempt(now, grant);
  end(now, request, std::move(failure), told);
  return true;
}

void Acquisitions::attempt_or_wait(Instant now, Acquisition& acquisition) {
  if (admission_.open(under_way())) return begin_attempt(now, acquisition);
  acquisition.wait_for_turn();
  acquisitions_.touched(acquisition.request());
  admission_.wait(acquisition.request());
  admit(now);
}

void Acquisitions::admit(Instant now) {
  if (!rules::turns_are_given()) return;
  // An attempt may end as it begins, so this is a loop and not what follows from an end.
  while (const auto request = admission_.next(under_way())) {
    Acquisition* const acquisition = acquisitions_.find(*request);
    if (acquisition == nullptr) continue;
    begin_attempt(now, *acquisition);
  }
}

void Acquisitions::begin_attempt(Instant now, Acquisition& acquisition, NodeSet enters_at) {
  const AcquireRequest& what = acquisition.what();
  const GrantId grant = ids_.next();
  if (acquisition.patient() && !rules::ticket_is_kept(acquisition.has_ticket())) {
    acquisition.take_ticket(next_ticket(now));
  }
  Attempt::Plan plan{
      .grant = grant,
      .request = acquisition.request(),
      .name = what.name,
      .owner = rules::owner_of_attempt(random_, acquisition.request()),
      .lease = what.lease,
      .min_validity = what.min_validity,
      .floor = floors_.floor(now, stripe_of(*what.name)),
      .in_order = what.in_order,
      .waiter = acquisition.waiter(),
      .silent = silent_nodes(),
      .enters_at = enters_at,
  };
  acquisition.attempt_began(grant);
  if (acquisition.patient()) acquisition.enter();
  acquisitions_.touched(acquisition.request());
  attempts_.add(grant, Attempt(terms_, std::move(plan), random_, now, out_));
  after_attempt_input(now, grant, {});
}

/// If they were so many, all would fail at once, and none could get the answer that shows that they
/// are back.
NodeSet Acquisitions::silent_nodes() {
  if (terms_.nodes() - silent_.size() < terms_.quorum()) silent_ = {};
  return silent_;
}

bool Acquisitions::on_reply(Instant now, NodeIndex node, const Tag& tag, const Reply& reply) {
  if (!std::holds_alternative<Unavailable>(reply)) silent_.erase(node);
  Attempt* const attempt = attempts_.find(tag.grant);
  if (attempt == nullptr) return false;
  const Before before(*attempt);
  attempt->on_reply(now, node, tag, reply, out_);
  after_attempt_input(now, tag.grant, before);
  return true;
}

void Acquisitions::node_ran_ahead(NodeIndex node, Duration by) {
  for (const GrantId grant : attempts_.ids()) attempts_.find(grant)->node_ran_ahead(node, by);
}

void Acquisitions::on_node_up(Instant now, NodeIndex node) {
  silent_.erase(node);
  for (const GrantId grant : attempts_.ids()) {
    Attempt& attempt = *attempts_.find(grant);
    const Before before(attempt);
    attempt.on_node_up(now, node, out_);
    after_attempt_input(now, grant, before);
  }
}

void Acquisitions::on_wake(Instant now, NodeIndex node, RequestId waiter, Duration after) {
  Acquisition* const acquisition = acquisitions_.find(waiter);
  if (acquisition == nullptr || !wakes_.take(now, node, attempts_.size())) return;
  const GrantId grant = acquisition->attempt();
  Attempt* const attempt = attempts_.find(grant);
  if (attempt == nullptr) {
    if (after > Duration::zero() || !acquisition->on_wake(now, node)) return;
    return acquisitions_.touched(waiter);
  }
  const Before before(*attempt);
  attempt->raise_floor(floors_.floor(now, stripe_of(*attempt->plan().name)));
  attempt->on_wake(now, node, after, out_);
  after_attempt_input(now, grant, before);
}

void Acquisitions::after_attempt_input(Instant now, GrantId grant, Before before) {
  const Attempt& attempt = *attempts_.find(grant);
  if (attempt.idle() && !before.idle) {
    ++idle_;
    tell_that_it_waits(now, attempt, before);
  }
  if (!attempt.idle() && before.idle) --idle_;
  const bool lost_now = !before.lost && attempt.lost_the_vote();
  if (lost_now && rules::failed_attempt_is_released(attempt.failure())) {
    releases_.release(now, attempt, true);
  }
  if (!attempt.ended()) return attempts_.touched(grant);
  finish_attempt(now, attempts_.take(grant));
}

void Acquisitions::tell_that_it_waits(Instant now, const Attempt& attempt, Before before) {
  const Attempt::Plan& plan = attempt.plan();
  const std::uint32_t place = attempt.asks().place(terms_.quorum());
  const bool moved = acquisitions_.find(plan.request)->moved_to(place);
  const bool first = !before.has_waited;
  if (first) admission_.ended(now, attempt.started(), true);
  if (!first && !moved) return;
  out_.put(AttemptWaits{plan.name, place, first, first ? attempt.ballots() : std::vector<Ballot>(),
                        now - attempt.started()});
}

void Acquisitions::finish_attempt(Instant now, Attempt attempt) {
  const bool won = attempt.phase() == Attempt::Phase::won;
  const std::optional<Errc> failure = won ? std::nullopt : std::optional(attempt.failure());
  const RequestId request = attempt.plan().request;
  // The time for which it waited for others says nothing of the nodes.
  if (!attempt.has_waited()) {
    admission_.ended(now, attempt.started(), won || failure == Errc::contended);
  }
  out_.put(
      AttemptDecided{attempt.plan().name, failure, attempt.ballots(), now - attempt.started()});
  if (won) return succeed(now, std::move(attempt));
  silent_ = silent_ | attempt.asks().silent();
  Acquisition& acquisition = *acquisitions_.find(request);
  auto final = acquisition.on_failure(now, attempt, random_);
  if (acquisition.patient() && failure != Errc::contended) {
    // It takes part again when a quorum answers, at the end of the queue.
    leave_queues(now, acquisition.what().name, acquisition.waiter(),
                 NodeSet::first(terms_.nodes()));
    acquisition.lose_ticket();
  }
  if (final) return end(now, request, std::move(*final));
  acquisitions_.touched(request);
}

void Acquisitions::succeed(Instant now, Attempt attempt) {
  const Attempt::Plan& plan = attempt.plan();
  const Acquisition acquisition = acquisitions_.take(plan.request);
  const AcquireRequest& what = acquisition.what();
  Holding::Plan holding_plan{
      .grant = plan.grant,
      .name = plan.name,
      .owner = plan.owner,
      .token = attempt.token(),
      .lease = plan.lease,
      .renew_until = renew_until(now, what.renew, what.max_hold),
      .since = attempt.has_waited() ? now : attempt.started(),
  };
  floors_.on_token(stripe_of(*plan.name), attempt.token());
  const Holding& holding =
      leases_.add(plan.grant, Holding(terms_, std::move(holding_plan), attempt.nodes(), now));
  out_.put(Finish{plan.request,
                  AcquireSucceeded{plan.grant, plan.owner, attempt.token(), holding.valid_until(),
                                   holding.loss_deadline(), holding.key()}});
  out_.put(WaitEnded{plan.grant, plan.name, attempt.token(), now - acquisition.began()});
  if (attempt.has_waited()) wakes_.won();
  if (acquisition.patient()) leave_after_win(now, attempt);
  let_next_take_part(now, what, plan.request, true);
}

NodeSet Acquisitions::abandon_attempt(Instant now, GrantId grant) {
  if (attempts_.find(grant) == nullptr) return {};
  const Attempt attempt = attempts_.take(grant);
  if (attempt.idle()) --idle_;
  if (attempt.lost_the_vote()) return {};
  releases_.release(now, attempt, !rules::end_leaves_queues());
  return attempt.nodes().may_hold();
}

void Acquisitions::end(Instant now, RequestId request, Failed failure, NodeSet told) {
  const Acquisition acquisition = acquisitions_.take(request);
  out_.put(Finish{request, std::move(failure)});
  const AcquireRequest& what = acquisition.what();
  if (acquisition.entered()) {
    leave_queues(now, what.name, acquisition.waiter(), NodeSet::first(terms_.nodes()) - told);
  }
  let_next_take_part(now, what, request, false);
}

Failed Acquisitions::time_is_over(const Acquisition& acquisition) {
  const Acquisition* who = &acquisition;
  // What kept it waiting is what kept the first of its queue waiting.
  if (who->waits_locally()) {
    who = acquisitions_.find(*local_queues(who->what())->first(who->what().name));
  }
  return who->time_is_over(attempts_.find(who->attempt()));
}

void Acquisitions::on_deadline(Instant now) {
  while (const auto request = acquisitions_.due(now)) due(now, *request);
  while (const auto grant = attempts_.due(now)) {
    Attempt& attempt = *attempts_.find(*grant);
    const Before before(attempt);
    attempt.raise_floor(floors_.floor(now, stripe_of(*attempt.plan().name)));
    attempt.on_deadline(now, out_);
    after_attempt_input(now, *grant, before);
  }
}

void Acquisitions::due(Instant now, RequestId request) {
  Acquisition& acquisition = *acquisitions_.find(request);
  if (!acquisition.over(now)) return attempt_or_wait(now, acquisition);
  const GrantId grant = acquisition.attempt();
  if (grant != 0 && acquisition.still_waits() && now < acquisition.what().deadline) {
    acquisition.stop_waiting();
    acquisitions_.touched(request);
    Attempt& attempt = *attempts_.find(grant);
    const Before before(attempt);
    attempt.stop_waiting(now, out_);
    return after_attempt_input(now, grant, before);
  }
  Failed failure = time_is_over(acquisition);
  const NodeSet told = abandon_attempt(now, grant);
  end(now, request, std::move(failure), told);
}

// --- queues

void Acquisitions::leave_queues(Instant now, const Name& name, Waiter waiter, NodeSet nodes) {
  if (!rules::end_leaves_queues()) return;
  // No reply is waited for: a node that is not reached forgets a waiter that does not ask again.
  for (NodeIndex node = 0; node < terms_.nodes(); ++node) {
    if (!nodes.contains(node)) continue;
    out_.send(node, Tag{0, now, {}, 0, Tag::Kind::release},
              ReleaseCommand{name, OwnerId{}, false, waiter, false});
  }
}

/// A node that granted has taken the waiter out. One that has not answered yet will do so if it
/// grants, and is told otherwise: an earlier question may have put the waiter in.
void Acquisitions::leave_after_win(Instant now, const Attempt& attempt) {
  const Attempt::Plan& plan = attempt.plan();
  const NodeSet awaited = attempt.asks().asked();
  const NodeSet others = NodeSet::first(terms_.nodes()) - attempt.granted() - awaited;
  leave_queues(now, plan.name, plan.waiter, others);
  if (awaited.size() > 0) departures_[plan.grant] = {plan.name, plan.waiter, awaited};
}

void Acquisitions::on_late_reply(Instant now, NodeIndex node, const Tag& tag, const Reply& reply) {
  departed(now, node, tag.grant, !std::holds_alternative<Granted>(reply));
}

void Acquisitions::departed(Instant now, NodeIndex node, GrantId attempt, bool may_be_queued) {
  if (departures_.empty()) return;
  const auto found = departures_.find(attempt);
  if (found == departures_.end() || !found->second.awaited.contains(node)) return;
  Departure& departure = found->second;
  departure.awaited.erase(node);
  if (may_be_queued) {
    NodeSet alone;
    alone.insert(node);
    leave_queues(now, departure.name, departure.waiter, alone);
  }
  if (departure.awaited == NodeSet()) departures_.erase(found);
}

LocalQueues* Acquisitions::local_queues(const AcquireRequest& what) {
  if (what.wait == Duration::zero()) return nullptr;
  return what.in_order ? &local_ : &barging_;
}

void Acquisitions::release(Instant now, RequestId request, GrantId grant) {
  Releases::Entry entry;
  const Holding* const holding = leases_.find(grant);
  if (holding != nullptr && !holding->taken_up()) entry = enter_with_release(now, *holding);
  const auto freed = leases_.release(now, request, grant, entry);
  if (freed) on_release(now, freed->name, freed->since);
}

/// Who is not the first here: that one asks for the lock itself. A message of its own for every
/// hand-off would be half as many again.
Releases::Entry Acquisitions::enter_with_release(Instant now, const Holding& holding) {
  const auto next = local_.first(holding.name(), LocalQueues::taking_part - 1);
  if (!next || !admission_.open(under_way())) return {};
  Acquisition& acquisition = *acquisitions_.find(*next);
  if (!acquisition.is_to_enter()) return {};
  NodeSet nodes;
  for (NodeIndex node = 0; node < terms_.nodes(); ++node) {
    if (holding.nodes().may_hold().contains(node) && !terms_.objection(now, node)) {
      nodes.insert(node);
    }
  }
  begin_attempt(now, acquisition, nodes);
  if (acquisitions_.find(*next) == nullptr || acquisition.attempt() == 0) return {};
  return {acquisition.attempt(), acquisition.waiter(), nodes};
}

void Acquisitions::on_entry_reply(Instant now, NodeIndex node, GrantId grant, const Reply& reply) {
  Attempt* const attempt = attempts_.find(grant);
  if (attempt == nullptr) return departed(now, node, grant, true);
  const Before before(*attempt);
  attempt->on_entry_reply(now, node, reply, out_);
  after_attempt_input(now, grant, before);
}

void Acquisitions::on_release(Instant now, const Name& name, Instant since) {
  const auto first = local_.first(name);
  if (!first) {
    if (LocalQueues::passes_on(since, now)) pass_on_to_barging(now, name);
    return;
  }
  const GrantId grant = acquisitions_.find(*first)->attempt();
  if (Attempt* const attempt = attempts_.find(grant)) {
    const Before before(*attempt);
    attempt->raise_floor(floors_.floor(now, stripe_of(*name)));
    attempt->on_release(now, out_);
    after_attempt_input(now, grant, before);
  }
  for (std::size_t behind = 0; behind < LocalQueues::taking_part; ++behind) {
    const auto next = local_.first(name, behind);
    if (!next) return;
    Acquisition& acquisition = *acquisitions_.find(*next);
    if (acquisition.is_to_enter()) attempt_or_wait(now, acquisition);
  }
}

void Acquisitions::pass_on_to_barging(Instant now, const Name& name) {
  for (std::size_t behind = 0; behind < LocalQueues::taking_part; ++behind) {
    const auto next = barging_.first(name, behind);
    if (!next) return;
    Acquisition& acquisition = *acquisitions_.find(*next);
    if (acquisition.pauses()) return attempt_or_wait(now, acquisition);
  }
}

void Acquisitions::let_next_take_part(Instant now, const AcquireRequest& what, RequestId request,
                                      bool granted) {
  LocalQueues* const queues = local_queues(what);
  if (queues == nullptr) return;
  const auto next = queues->leave(what.name, request);
  // What was granted to another call of this client was before it at the nodes.
  if (const auto first = queues->first(what.name); granted && first && what.in_order) {
    Attempt* const attempt = attempts_.find(acquisitions_.find(*first)->attempt());
    if (attempt != nullptr) attempt->moved_up();
  }
  if (!next) return;
  Acquisition& acquisition = *acquisitions_.find(*next);
  acquisition.wait_locally(false);
  if (granted) {
    const Config& config = terms_.config();
    acquisition.enter_by(now + (what.in_order
                                    ? goes_with_a_release
                                    : random_between(config.retry_min, config.retry_max, random_)));
  } else {
    acquisition.wait_for_turn();
    admission_.wait(*next);
  }
  acquisitions_.touched(*next);
}

}  // namespace redlock::engine
