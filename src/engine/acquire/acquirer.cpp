// SPDX-License-Identifier: MIT
#include "engine/acquire/acquirer.hpp"

#include <cassert>
#include <utility>

#include "engine/rules.hpp"
#include "engine/stripe.hpp"

namespace redlock::engine {

Acquirer::Acquirer(const Electorate& electorate, RandomSource& random, GrantIds& ids,
                   Leases& leases, Releaser& releaser, Outbox& out)
    : electorate_(electorate),
      random_(random),
      ids_(ids),
      leases_(leases),
      releaser_(releaser),
      out_(out),
      floors_(electorate.slots(), electorate.config().clock_floor),
      round_trips_(electorate.slots()),
      admission_(electorate.config().attempts_at_once, electorate.config().node_timeout),
      wakes_(electorate.slots()) {}

void Acquirer::acquire(Instant now, RequestId request, AcquireRequest what) {
  assert(request != 0);
  Acquisition& call = calls_.add(request, Acquisition(electorate_, request, std::move(what), now));
  Lines* const lines = lines_of(call.what());
  const bool takes_part = lines == nullptr || lines->join(call.what().name, request);
  if (!takes_part) call.wait_locally();
  if (call.over(now)) return end(now, request, call.time_is_over(nullptr));
  if (takes_part) return begin(now, call);
  calls_.touched(request);
  if (call.what().in_order) overtake_pause(now, call.what().name);
}

bool Acquirer::cancel(Instant now, RequestId request, Errc why) {
  const Acquisition* const call = calls_.find(request);
  if (call == nullptr) return false;
  const GrantId grant = call->attempt();
  Failed failure{why, {}, {}};
  if (const Attempt* const attempt = attempts_.find(grant)) failure.ballots = attempt->ballots();
  abandon_attempt(now, grant);
  end(now, request, std::move(failure));
  return true;
}

void Acquirer::begin(Instant now, Acquisition& call) {
  if (admission_.open(under_way())) return begin_attempt(now, call);
  call.wait_for_room();
  calls_.touched(call.request());
  admission_.wait(call.request());
  admit(now);
}

void Acquirer::admit(Instant now) {
  if (!rules::room_is_given()) return;
  // An attempt may end as it begins, so this is a loop and not what follows from an end.
  while (const auto request = admission_.next(under_way())) {
    Acquisition* const call = calls_.find(*request);
    if (call == nullptr || !call->is<Acquisition::AwaitingRoom>()) continue;
    begin_attempt(now, *call);
  }
}

void Acquirer::begin_attempt(Instant now, Acquisition& call) {
  const AcquireRequest& what = call.what();
  const GrantId grant = ids_.next();
  Attempt::Plan plan{
      .grant = grant,
      .request = call.request(),
      .name = what.name,
      .owner = rules::owner_of_attempt(random_, call.request()),
      .lease = what.lease,
      .min_validity = what.min_validity,
      .floor = floors_.floor(now, stripe_of(*what.name)),
      .ceiling = floors_.ceiling(now, stripe_of(*what.name)),
      .in_order = what.in_order,
      .waits = call.waits_in_order(),
      .silent = call.waits_in_order() ? renew_silent(now) : NodeSet(),
  };
  call.attempt_begins(grant);
  Attempt& attempt = attempts_.add(grant, Attempt(electorate_, std::move(plan), now));
  ask(now, call, attempt, electorate_.nodes());
  calls_.touched(call.request());
  after_input(now, grant);
}

void Acquirer::ask(Instant now, Acquisition& call, Attempt& attempt, NodeSet nodes) {
  // Not while votes gather: nodes that grant by two floors grant two tokens, which must be settled.
  const bool gathers = attempt.granted().size() > 0 || attempt.tally().pending() != NodeSet();
  if (!gathers) attempt.raise_floor(floors_.floor(now, stripe_of(*call.what().name)));
  if (!call.waits_in_order()) {
    attempt.ask(now, nodes, out_);
    return;
  }
  const auto next = ordered_.first(call.what().name, 1);
  attempt.stand(
      {.line = ordered_.number(call.what().name),
       .began = rules::waits_since(call.in_line_since(), attempt.started()),
       .turn = length_of_turn(),
       .next_began = next ? std::optional(calls_.find(*next)->in_line_since()) : std::nullopt,
       .new_at = call.behind_earlier()});
  const bool blindly = round_trips_.of(electorate_.quorum()) == Duration::zero();
  call.asked(attempt.ask(now, nodes, out_), next.value_or(0), blindly);
}

/// Nodes are silent no more if the others that may vote are no quorum: all attempts would fail at
/// once, and none could get the answer that shows that the nodes are back.
NodeSet Acquirer::renew_silent(Instant now) {
  NodeSet voters;
  for (NodeIndex node = 0; node < electorate_.slots(); ++node) {
    const bool waited_for = electorate_.nodes().contains(node) && !silent_.contains(node);
    if (waited_for && !electorate_.objection(now, node)) voters.insert(node);
  }
  if (!electorate_.is_quorum(voters)) silent_ = {};
  return silent_;
}

bool Acquirer::on_reply(Instant now, NodeIndex node, const Tag& tag, const Reply& reply) {
  const bool answered = !std::holds_alternative<Unavailable>(reply);
  if (answered) silent_.erase(node);
  if (unreached(reply)) silent_.insert(node);
  if (answered && tag.kind == Tag::Kind::acquire) on_round_trip(node, now - tag.sent);
  Attempt* const attempt = attempts_.find(tag.grant);
  if (attempt == nullptr) {
    if (tag.kind == Tag::Kind::acquire) departed(now, node, tag, reply);
    return false;
  }
  attempt->on_reply(now, node, tag, reply, out_);
  Acquisition& call = *calls_.find(attempt->plan().request);
  const bool again =
      tag.kind == Tag::Kind::acquire && call.on_answer(now, node, reply) && call.still_waits();
  if (again) ask(now, call, *attempt, NodeSet::of(node));
  after_input(now, tag.grant);
  return true;
}

/// What comes after the node timeout is too late to count: no turn need wait for it.
void Acquirer::on_round_trip(NodeIndex node, Duration took) {
  round_trips_.add(node, std::min(took, electorate_.node_timeout()));
}

void Acquirer::node_ran_ahead(NodeIndex node, Duration by) {
  for (const GrantId grant : attempts_.ids()) attempts_.find(grant)->node_ran_ahead(node, by);
}

void Acquirer::node_removed(NodeIndex node) {
  for (const GrantId grant : attempts_.ids()) attempts_.find(grant)->node_removed(node);
}

void Acquirer::members_changed(Instant now) {
  for (const GrantId grant : attempts_.ids()) {
    Attempt& attempt = *attempts_.find(grant);
    if (attempt.members_changed(now, out_)) {
      after_input(now, grant);
    } else {
      calls_.find(attempt.plan().request)->on_votes(attempt);
      calls_.touched(attempt.plan().request);
    }
  }
}

/// What the node has of those that wait is not known.
void Acquirer::on_node_up(Instant now, NodeIndex node) {
  silent_.erase(node);
  for (const GrantId grant : attempts_.ids()) {
    Attempt& attempt = *attempts_.find(grant);
    attempt.node_up(now, node);
    attempts_.touched(grant);
    Acquisition& call = *calls_.find(attempt.plan().request);
    if (!call.still_waits()) continue;
    ask(now, call, attempt, NodeSet::of(node));
    after_input(now, grant);
  }
}

void Acquirer::on_wake(Instant now, NodeIndex node, std::uint64_t line, Duration after) {
  const auto first = ordered_.first_of(line);
  if (!first || held_without(now, ordered_.newest_grant(line), node)) return;
  if (!wakes_.take(now, node, attempts_.size())) return;
  Acquisition& call = *calls_.find(*first);
  const GrantId grant = call.attempt();
  Attempt* const attempt = attempts_.find(grant);
  const bool asks = call.on_wake(now, node, after, attempt, random_);
  if (attempt == nullptr) return calls_.touched(*first);
  if (asks) ask(now, call, *attempt, electorate_.nodes());
  after_input(now, grant);
}

/// Whether this client has the lock, by that grant, and has it without the node: whose turn it is
/// there changes nothing, as a quorum of the others would refuse.
bool Acquirer::held_without(Instant now, GrantId grant, NodeIndex node) {
  const HeldLease* const lease = leases_.find(grant);
  return lease != nullptr && now < lease->valid_until() &&
         !lease->nodes().may_hold().contains(node);
}

void Acquirer::after_input(Instant now, GrantId grant) {
  Attempt& attempt = *attempts_.find(grant);
  Acquisition& call = *calls_.find(attempt.plan().request);
  const bool first = !call.has_rested();
  if (attempt.out_of_reach() && !call.may_wait(now, attempt)) attempt.give_up();
  switch (call.follow(now, attempt, round_trips_.of(electorate_.quorum()), random_)) {
    case Acquisition::Step::rests:
      ++idle_;
      silent_ = silent_ | attempt.silent();
      if (turn_is_too_short(call)) call.asks_with_the_distance_known(now);
      tell_that_it_waits(now, call, attempt, first);
      break;
    case Acquisition::Step::asks:
      --idle_;
      break;
    case Acquisition::Step::same:
      break;
  }
  if (attempt.take_release() && rules::failed_attempt_is_released(attempt.failure())) {
    releaser_.release(now, attempt, place_to_keep(now, attempt));
  }
  calls_.touched(call.request());
  if (!attempt.ended()) return attempts_.touched(grant);
  finish_attempt(now, attempts_.take(grant));
}

void Acquirer::tell_that_it_waits(Instant now, Acquisition& call, const Attempt& attempt,
                                  bool first) {
  const std::uint32_t place = call.place();
  const bool moved = call.moved_to(place);
  if (first) admission_.ended(now, attempt.started(), true);
  if (!first && !moved) return;
  out_.put(AttemptWaits{call.what().name, place, first,
                        first ? attempt.ballots() : std::vector<Ballot>(),
                        now - attempt.started()});
}

void Acquirer::finish_attempt(Instant now, Attempt attempt) {
  const bool won = attempt.phase() == Attempt::Phase::won;
  const std::optional<Errc> failure = won ? std::nullopt : std::optional(attempt.failure());
  const RequestId request = attempt.plan().request;
  Acquisition& call = *calls_.find(request);
  // The time for which it waited for others says nothing of the nodes.
  if (!call.has_rested()) {
    admission_.ended(now, attempt.started(), won || failure == Errc::contended);
  }
  out_.put(AttemptDecided{attempt.plan().name, failure,
                          won ? attempt.take_ballots() : attempt.ballots(),
                          now - attempt.started()});
  silent_ = silent_ | attempt.silent();
  if (won) return succeed(now, std::move(attempt));
  auto final = call.on_failure(now, attempt, random_);
  if (final) return end(now, request, std::move(*final));
  if (call.waits_in_order() && failure != Errc::contended) return give_way(now, call, attempt);
  calls_.touched(request);
}

void Acquirer::succeed(Instant now, Attempt attempt) {
  const Attempt::Plan& plan = attempt.plan();
  const Acquisition call = calls_.take(plan.request);
  const AcquireRequest& what = call.what();
  HeldLease::Plan holding_plan{
      .grant = plan.grant,
      .name = plan.name,
      .owner = plan.owner,
      .token = attempt.token(),
      .lease = plan.lease,
      .renew_until = renew_until(now, what.renew, what.max_hold),
      .since = call.has_rested() ? now : attempt.started(),
  };
  floors_.on_token(stripe_of(*plan.name), attempt.token());
  const HeldLease& lease = leases_.add(
      plan.grant, HeldLease(electorate_, std::move(holding_plan), attempt.nodes(), now));
  out_.put(Finish{plan.request,
                  AcquireSucceeded{plan.grant, plan.owner, attempt.token(), lease.valid_until(),
                                   lease.loss_deadline(), lease.key()}});
  out_.put(WaitEnded{plan.grant, plan.name, attempt.token(), now - call.began()});
  if (call.was_woken()) wakes_.won();
  if (call.waits_in_order()) return hand_place_on(now, call, attempt);
  Lines* const lines = lines_of(what);
  const auto next = lines != nullptr ? lines->leave(what.name, plan.request) : std::nullopt;
  if (!next) return;
  const Config& config = electorate_.config();
  take_part(*next, now + random_between(config.retry_min, config.retry_max, random_));
}

void Acquirer::abandon_attempt(Instant now, GrantId grant) {
  if (attempts_.find(grant) == nullptr) return;
  Attempt attempt = attempts_.take(grant);
  if (calls_.find(attempt.plan().request)->is<Acquisition::Idle>()) --idle_;
  attempt.give_up();
  if (attempt.take_release()) releaser_.release(now, attempt, {});
}

void Acquirer::end(Instant now, RequestId request, Failed failure) {
  Acquisition call = calls_.take(request);
  out_.put(Finish{request, std::move(failure)});
  const AcquireRequest& what = call.what();
  Lines* const lines = lines_of(what);
  if (lines == nullptr) return;
  const std::uint64_t line = lines->number(what.name);
  const auto next = lines->leave(what.name, request);
  // Its turn, if it had one, is for the client's next call, if that is the first one there.
  Acquisition* const heir = next && what.in_order ? calls_.find(*next) : nullptr;
  if (heir != nullptr) heir->comes_behind_questions_of(call);
  leave(now, what.name, line, heir, call.take_nodes_to_leave());
  if (!next) return;
  calls_.find(*next)->wait_for_room();
  admission_.wait(*next);
  calls_.touched(*next);
}

Failed Acquirer::time_is_over(const Acquisition& call) {
  const Acquisition* of = &call;
  // A call that stands behind the first of its line waited for what that waited for. If it failed
  // itself before, that says more only as long as nothing has come of the first one's attempts.
  if (call.is<Acquisition::Local>()) {
    const Acquisition* const first = calls_.find(*lines_of(call.what())->first(call.what().name));
    if (!call.has_failed() || first->has_rested() || first->has_failed()) of = first;
  }
  return of->time_is_over(attempts_.find(of->attempt()));
}

void Acquirer::on_deadline(Instant now) {
  while (const auto request = calls_.due(now)) due(now, *request);
  while (const auto grant = attempts_.due(now)) {
    attempts_.find(*grant)->on_deadline(now, out_);
    after_input(now, *grant);
  }
}

void Acquirer::due(Instant now, RequestId request) {
  Acquisition& call = *calls_.find(request);
  const GrantId grant = call.attempt();
  if (!call.over(now)) {
    if (grant == 0) return begin(now, call);
    if (call.ask_due(now)) {
      ask(now, call, *attempts_.find(grant), electorate_.nodes());
    }
    return after_input(now, grant);
  }
  if (grant != 0 && call.still_waits() && now < call.what().deadline) {
    call.stop_waiting();
    return after_input(now, grant);
  }
  Failed failure = time_is_over(call);
  abandon_attempt(now, grant);
  end(now, request, std::move(failure));
}

// --- lines

Lines* Acquirer::lines_of(const AcquireRequest& what) {
  if (what.wait == Duration::zero()) return nullptr;
  return what.in_order ? &ordered_ : &barging_;
}

/// Tells nodes that a call stands in their lines no more (it has ended, or lets others of its
/// client go first): the next one has its place or, if that is null, the client leaves. No reply is
/// waited for: a node that is not reached forgets a waiter that does not ask again.
void Acquirer::leave(Instant now, const Name& name, std::uint64_t line, Acquisition* next,
                     NodeSet nodes) {
  LeaveCommand command{.name = name, .line = line, .since = now};
  if (next != nullptr) {
    command.next = {line, now - next->in_line_since(), length_of_turn()};
    next->stands_at(nodes);
  }
  for (NodeIndex node = 0; rules::end_leaves_lines() && node < electorate_.slots(); ++node) {
    if (!(nodes & electorate_.nodes()).contains(node)) continue;
    out_.send(node, Tag{0, now, {}, 0, Tag::Kind::leave}, command);
  }
}

Duration Acquirer::length_of_turn() const {
  return rules::length_of_turn(round_trips_.of(electorate_.quorum()));
}

/// Whether nodes were told of the shortest turns, before it was known how far away they are: a lock
/// would be kept for this client in vain. Other turns are good enough until it asks again.
bool Acquirer::turn_is_too_short(const Acquisition& call) const {
  return call.asked_blindly() && 2 * length_of_turn() > 3 * rules::length_of_turn({});
}

/// A node that granted has stood the client there for the next call, if one was named to it, or
/// taken it out. One that has not answered will do so if it grants; an earlier question may have
/// stood the client there, as may one that was refused. Where it stands for a call that has ended,
/// the next one has the place.
void Acquirer::hand_place_on(Instant now, const Acquisition& call, const Attempt& attempt) {
  const Name& name = call.what().name;
  const std::uint64_t line = ordered_.number(name);
  const auto first = ordered_.leave(name, call.request());
  Acquisition* const next = first ? calls_.find(*first) : nullptr;
  const NodeSet granted = attempt.granted();
  Departure departure{name, line, {}};
  for (NodeIndex node = 0; node < electorate_.slots(); ++node) {
    const RequestId named = call.next_named(node);
    const auto place = call.place_of_next(node);
    if (attempt.is_asked(node)) {
      departure.awaited[node] = named;
      if (next != nullptr) next->comes_behind(node, attempt.plan().grant);
    } else if (next != nullptr && named == *first && place && granted.contains(node)) {
      next->entered(node, *place);
    } else if (named != 0 || !granted.contains(node)) {
      leave(now, name, line, next, NodeSet::of(node));
    }
  }
  const GrantId grant = attempt.plan().grant;
  if (!departure.awaited.empty()) departures_[grant] = std::move(departure);
  if (next == nullptr) return;
  ordered_.granted(name, grant);
  const bool entered = next->entered_by_quorum();
  if (entered && next->moved_to(next->place())) {
    out_.put(AttemptWaits{name, next->place(), false, {}, {}});
  }
  const Duration pause = entered ? next->waits_untold(random_) : Acquisition::goes_with_a_release;
  take_part(*first, now + pause);
}

void Acquirer::departed(Instant now, NodeIndex node, const Tag& tag, const Reply& reply) {
  if (departures_.empty()) return;
  const auto found = departures_.find(tag.grant);
  if (found == departures_.end()) return;
  auto& [name, line, awaited] = found->second;
  const auto of_node = awaited.find(node);
  if (of_node == awaited.end()) return;
  const RequestId named = of_node->second;
  awaited.erase(of_node);
  const auto first = ordered_.first_of(line);
  Acquisition* const next = first ? calls_.find(*first) : nullptr;
  const auto* const granted = std::get_if<Granted>(&reply);
  const bool enters = next != nullptr &&
                      (next->is<Acquisition::Entering>() || next->is<Acquisition::AwaitingRoom>());
  // One that gave back what it was granted, and pauses, is to stay where it stands.
  const bool stands = enters || (next != nullptr && next->comes_with_a_release());
  if (next != nullptr && !next->earlier_answered(node, tag.grant)) {
    // The place there follows from the later question.
  } else if (enters && granted != nullptr && granted->next_place && named == *first) {
    next->entered(node, *granted->next_place);
  } else if (next != nullptr && next->attempt() != 0) {
    // It has asked there since, so that this place is its own.
  } else if (granted == nullptr || named != 0) {
    leave(now, name, line, stands ? next : nullptr, NodeSet::of(node));
  }
  if (awaited.empty()) departures_.erase(found);
}

void Acquirer::take_part(RequestId request, Instant ask_by) {
  calls_.find(request)->take_part(ask_by);
  calls_.touched(request);
}

/// Where its client stands after what a failed attempt was granted is given back: in its own place,
/// in that of the call that succeeds this one at once, or nowhere if it pauses in no line, or ends
/// and none of its client comes behind it.
Place Acquirer::place_to_keep(Instant now, const Attempt& attempt) {
  const Attempt::LinePlaces& standing = attempt.standing();
  if (standing.line == 0) return {};
  const auto next = successor_at_once(now, attempt);
  const bool ends = !calls_.find(attempt.plan().request)->still_waits() &&
                    !ordered_.first(attempt.plan().name, 1);
  const bool leaves =
      attempt.phase() == Attempt::Phase::failed && attempt.failure() != Errc::contended;
  if (!next && (ends || leaves)) return {};
  if (!next) return {standing.line, now - standing.began, standing.turn};
  return {standing.line, now - calls_.find(*next)->in_line_since(), standing.turn, true};
}

/// The call that is to ask in place of the first one of its line: the first that does not pause
/// after a failure of its own or, if all do, the one whose pause ends first.
std::optional<RequestId> Acquirer::next_to_ask(Instant now, const Name& name) {
  std::optional<RequestId> next;
  Instant earliest = never;
  for (std::size_t behind = 1; const auto request = ordered_.first(name, behind); ++behind) {
    const Instant retry_at = calls_.find(*request)->retry_at();
    if (retry_at <= now) return request;
    if (next && retry_at >= earliest) continue;
    next = request;
    earliest = retry_at;
  }
  return next;
}

/// If the first call of the line pauses as it was too late, the first one that does not pause has
/// its place, at once.
void Acquirer::overtake_pause(Instant now, const Name& name) {
  const RequestId first = *ordered_.first(name);
  Acquisition& pausing = *calls_.find(first);
  if (!pausing.pauses_as_too_late() || !rules::failed_call_gives_way()) return;
  const auto next = next_to_ask(now, name);
  if (!next || calls_.find(*next)->retry_at() > now) return;
  ordered_.bring_forward(name, *next);
  pausing.wait_locally();
  calls_.touched(first);
  begin(now, *calls_.find(*next));
}

/// The call that comes at once in place of this attempt's, which failed for want of time; if there
/// is none but calls that have failed so themselves a moment ago, nothing: calls of which none can
/// succeed would keep the lock from other clients without a pause.
std::optional<RequestId> Acquirer::successor_at_once(Instant now, const Attempt& attempt) {
  if (attempt.phase() != Attempt::Phase::failed || attempt.failure() != Errc::too_late ||
      !rules::failed_call_gives_way())
    return {};
  const auto next = next_to_ask(now, attempt.plan().name);
  return next && calls_.find(*next)->retry_at() <= now ? next : std::nullopt;
}

/// The call found no quorum, or was too late: others of its client are not to wait for it. It comes
/// again behind them. Without a quorum they would fail, too, so the next one comes when this one
/// would have. After a call that was too late one that has failed itself comes when its own pause
/// is over.
void Acquirer::give_way(Instant now, Acquisition& call, const Attempt& attempt) {
  const Name& name = call.what().name;
  const std::uint64_t line = ordered_.number(name);
  const bool at_once = successor_at_once(now, attempt).has_value();
  const bool too_late = attempt.failure() == Errc::too_late;
  const auto first = too_late ? next_to_ask(now, name) : ordered_.first(name, 1);
  if (first) calls_.find(*first)->comes_behind_questions_of(call);
  NodeSet left = call.take_nodes_to_leave();
  if (at_once) left = left - attempt.granted();
  leave(now, name, line, nullptr, left);
  if (first && rules::failed_call_gives_way()) {
    const Instant comes_again = call.deadline();
    ordered_.bring_forward(name, *first);
    call.wait_locally();
    Acquisition& next = *calls_.find(*first);
    if (at_once) {
      next.stands_at(attempt.granted());
      next.take_part(now);
    } else {
      next.pause(too_late ? next.retry_at() : comes_again);
    }
    calls_.touched(*first);
  }
  calls_.touched(call.request());
}

void Acquirer::release(Instant now, RequestId request, GrantId grant) {
  const auto freed = leases_.release(now, request, grant);
  if (freed) on_release(now, freed->name, freed->since);
}

void Acquirer::on_release(Instant now, const Name& name, Instant since) {
  const auto first = ordered_.first(name);
  if (!first) {
    if (Lines::passes_on(since, now)) pass_on_to_barging(now, name);
    return;
  }
  Acquisition& call = *calls_.find(*first);
  Attempt* const attempt = attempts_.find(call.attempt());
  if (attempt == nullptr) {
    const bool enters = call.is<Acquisition::Entering>() && !call.entered_by_quorum();
    if (enters || (call.comes_with_a_release() && call.is_next())) begin(now, call);
    return;
  }
  if (!call.still_waits() || attempt->granted().size() > 0 || !call.is_next()) return;
  ask(now, call, *attempt, electorate_.nodes());
  after_input(now, attempt->plan().grant);
}

void Acquirer::pass_on_to_barging(Instant now, const Name& name) {
  for (std::size_t behind = 0; behind < 2; ++behind) {
    const auto next = barging_.first(name, behind);
    if (!next) return;
    Acquisition& call = *calls_.find(*next);
    if (call.is<Acquisition::Pausing>() || call.is<Acquisition::Entering>())
      return begin(now, call);
  }
}

}  // namespace redlock::engine
