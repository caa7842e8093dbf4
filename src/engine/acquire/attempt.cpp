// SPDX-License-Identifier: MIT
#include "engine/acquire/attempt.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include "engine/rules.hpp"

namespace redlock::engine {
namespace {

constexpr std::chrono::milliseconds a_day = std::chrono::hours(24);

using rules::is_far;

/// For so long after its first grant an attempt keeps what is not a quorum: refusals from before
/// may be out of date, as the holder's release may still be on its way to some nodes.
Duration time_to_gather(Duration round_trip) {
  constexpr Duration shortest = std::chrono::microseconds(500);
  return std::clamp<Duration>(4 * round_trip, shortest, 2 * AskSchedule::window);
}

}  // namespace

Attempt::Attempt(const Terms& terms, Plan plan, RandomSource& random, Instant now, Outbox& out)
    : terms_(terms),
      plan_(std::move(plan)),
      started_(now),
      // Waiting for an answer past the end of the validity could only end in too_late.
      deadline_(std::min(now + terms.node_timeout(),
                         terms.trusted_until(now, plan_.lease) - plan_.min_validity)),
      nodes_(terms.nodes(), true),
      granted_(terms.nodes()),
      random_(&random),
      patient_(plan_.waiter.number != 0),
      ballots_(terms.nodes()) {
  if (patient_) asks_ = AskSchedule(terms.nodes(), plan_.silent);
  for (NodeIndex node = 0; node < terms.nodes(); ++node) {
    if (plan_.enters_at.contains(node)) {
      await_entry(now, node);
    } else {
      ask(now, node, out);
    }
  }
  decide(now, out);
}

void Attempt::ask(Instant now, NodeIndex node, Outbox& out) {
  if (auto why = terms_.objection(now, node)) {
    withdraw(node);
    return lose_vote(node, std::move(*why));
  }
  if (patient_) asks_.sent(now, node);
  send_acquire(now, node, Form::digest, out);
  count_as_silent(now, node);
}

/// It is not waited for, if it did not answer the attempt before.
void Attempt::count_as_silent(Instant now, NodeIndex node) {
  if (!patient_ || !asks_.silent().contains(node)) return;
  const Unavailable why = terms_.silence(now, node);
  lose_vote(node, why);
}

/// As if it were asked and will refuse: the lock has just been given back to those who wait.
void Attempt::await_entry(Instant now, NodeIndex node) {
  withdraw(node);
  asks_.entering(now, node);
  count_as_silent(now, node);
}

void Attempt::on_entry_reply(Instant now, NodeIndex node, const Reply& reply, Outbox& out) {
  if (!asks_.enters(node)) return;  // it has been asked since
  const bool woken = asks_.replied(now, node);
  const auto place = entered_place(reply);
  const auto* const unavailable = std::get_if<Unavailable>(&reply);
  if (unavailable != nullptr) {
    lose_vote(node, *unavailable);
  } else if (place) {
    lose_vote(node, Vote::refused, Cause::none, "");
    asks_.refused(now, node, {}, *place);
    if (woken && gathers()) ask_again(now, node, out);
  } else if (gathers()) {
    ask_again(now, node, out);  // it is not in the queue there
  } else {
    const Unavailable why = terms_.silence(now, node);
    lose_vote(node, why);
  }
  decide(now, out);
}

void Attempt::send_acquire(Instant sent, NodeIndex node, Form form, Outbox& out) const {
  const Tag tag{plan_.grant, sent, plan_.lease, 0, Tag::Kind::acquire};
  out.send(node, tag,
           AcquireCommand{plan_.name, plan_.owner, plan_.lease, plan_.floor,
                          terms_.config().quarantine, sent, plan_.in_order, plan_.waiter},
           form);
}

/// Only a node that has nothing of this owner, and cannot get it any more from what was sent.
void Attempt::ask_again(Instant now, NodeIndex node, Outbox& out) {
  const bool has_it = nodes_[node].possession == Possession::ours;
  if (has_it || asks_.under_way(node) || spent_.contains(node)) return;
  ballots_[node] = {};
  nodes_[node].possession = Possession::asked;
  ask(now, node, out);
}

void Attempt::ask_all_again(Instant now, Outbox& out) {
  for (NodeIndex node = 0; node < nodes_.size(); ++node) ask_again(now, node, out);
}

void Attempt::on_reply(Instant now, NodeIndex node, const Tag& tag, const Reply& reply,
                       Outbox& out) {
  assert(!ended());
  if (tag.kind == Tag::Kind::settle) nodes_.hold_answered(node, reply, false);
  if (tag.kind == Tag::Kind::acquire) {
    const bool woken = in_queues() && asks_.replied(now, node);
    on_acquire_reply(now, node, tag, reply, out);
    if (woken && gathers() && ballots_[node].vote == Vote::refused) ask_again(now, node, out);
  } else {
    assert(tag.kind == Tag::Kind::settle);
    on_settle_reply(now, node, reply, out);
  }
  decide(now, out);
}

void Attempt::on_acquire_reply(Instant now, NodeIndex node, const Tag& tag, const Reply& reply,
                               Outbox& out) {
  if (const auto* granted = std::get_if<Granted>(&reply)) {
    on_granted(now, node, tag, granted->token, out);
  } else if (const auto* refused = std::get_if<Refused>(&reply)) {
    withdraw(node);
    lose_vote(node, Vote::refused, Cause::none,
              refused->foreign_type ? "a key of another type stands where the lock would be" : "");
    if (refused->expires_in) {
      // Somebody's key may say centuries, which overflow.
      const auto expires_in = std::min<std::chrono::milliseconds>(*refused->expires_in, a_day);
      expires_in_ = std::min<Duration>(expires_in_.value_or(a_day), expires_in);
      if (patient_) asks_.refused(now, node, expires_in, refused->place);
    } else if (patient_) {
      asks_.refused(now, node, {}, refused->place);
    }
  } else if (std::holds_alternative<ForcedOut>(reply)) {
    forced_out(node);
  } else if (std::holds_alternative<AlreadyOurs>(reply)) {
    on_shared_owner(node);
  } else if (std::holds_alternative<NoScript>(reply)) {
    if (rules::may_repeat_acquire(phase_ == Phase::failing)) {
      if (in_queues()) asks_.sent(tag.sent, node);
      // With the first send's time: time counts from there.
      return send_acquire(tag.sent, node, Form::source, out);
    }
    // Its release is written already: an acquire behind it would stay for a whole lease.
    withdraw(node);
    lose_vote(node, Vote::unavailable, Cause::server_error, "the script was not loaded");
  } else if (const auto* unavailable = std::get_if<Unavailable>(&reply)) {
    if (unavailable->delivery != Delivery::unknown) {
      withdraw(node);
    } else {
      spent_.insert(node);
    }
    lose_vote(node, *unavailable);
  } else {
    spent_.insert(node);
    lose_vote(node, Vote::unavailable, Cause::protocol_error, answered_otherwise);
  }
}

/// Another process has drawn this owner (a machine that was cloned, a snapshot that was restored):
/// nodes cannot tell the two apart, so whatever one has here the other may release at any time.
void Attempt::on_shared_owner(NodeIndex node) {
  withdraw(node);
  lose_vote(node, Vote::unavailable, Cause::server_error,
            "another process locks with the same random numbers");
  owner_is_shared_ = true;
  fail(Errc::no_quorum);
}

void Attempt::on_granted(Instant now, NodeIndex node, const Tag& tag, Token token, Outbox& out) {
  if (gathers() && give_back_ == never) give_back_ = now + time_to_gather(asks_.round_trip());
  if (auto why = terms_.distrust(now, node)) {
    nodes_.confirm_without_trust(node);
    return lose_vote(node, std::move(*why));
  }
  ballots_[node] = {Vote::granted, Cause::none, {}};
  nodes_.confirm(node, terms_.trusted_until(rules::counts_from(tag.sent, now), plan_.lease));
  granted_[node] = token;
  if (phase_ != Phase::settling) return;
  // What was settled among believable fences is not carried by, or to, one that is beyond them.
  if (!rules::of_one_range(token, token_)) return;
  if (token == token_) return settled_.insert(node);
  if (rules::may_settle(token, token_)) send_settle(now, node, Form::digest, out);
}

/// Until it is known whether a quorum shares a fence beyond what floors reach, its vote is pending.
void Attempt::judge_far_fences() {
  if (!rules::damage_is_contained() || std::ranges::none_of(granted_, is_far)) return;
  std::uint32_t far = 0;
  std::uint32_t open = 0;
  std::uint32_t near = 0;
  for (NodeIndex node = 0; node < nodes_.size(); ++node) {
    if (is_far(granted_[node])) {
      ++far;
    } else if (ballots_[node].vote == Vote::pending) {
      ++open;
    } else if (ballots_[node].vote == Vote::granted) {
      ++near;
    }
  }
  const bool shared = far >= quorum() || (phase_ == Phase::settling && is_far(token_));
  const bool may_be_shared = phase_ == Phase::voting && near < quorum() && far + open >= quorum();
  for (NodeIndex node = 0; node < nodes_.size(); ++node) {
    if (!is_far(granted_[node])) continue;
    if (shared) {
      ballots_[node] = {Vote::granted, Cause::none, {}};
    } else if (may_be_shared) {
      ballots_[node] = {};
    } else {
      lose_vote(node, Vote::unavailable, Cause::server_error,
                "its fence counter is damaged (" + std::to_string(granted_[node]) + ")");
      granted_[node] = 0;
    }
  }
}

void Attempt::begin_settling(Instant now, Outbox& out) {
  phase_ = Phase::settling;
  token_ = *std::ranges::max_element(granted_);
  const Instant at_most = nodes_.valid_until();
  const Instant latest = at_most - plan_.min_validity;
  if (!rules::enough_is_left(now, started_, at_most, plan_.min_validity)) {
    return fail(Errc::too_late);
  }
  for (NodeIndex node = 0; node < nodes_.size(); ++node) {
    if (rules::settles_as_granted(granted_[node], token_)) settled_.insert(node);
  }
  if (settled_.size() >= quorum()) return;
  deadline_ = std::min(now + terms_.node_timeout(), latest);
  for (NodeIndex node = 0; node < nodes_.size(); ++node) {
    if (granted_[node] != 0 && !settled_.contains(node) &&
        rules::of_one_range(granted_[node], token_)) {
      send_settle(now, node, Form::digest, out);
    }
  }
}

void Attempt::send_settle(Instant now, NodeIndex node, Form form, Outbox& out) {
  settle_pending_.insert(node);
  nodes_.hold_sent(node);
  const Tag tag{plan_.grant, now, plan_.lease, 0, Tag::Kind::settle};
  out.send(node, tag, HoldCommand{plan_.name, plan_.owner, plan_.lease, 1, token_}, form);
}

void Attempt::on_settle_reply(Instant now, NodeIndex node, const Reply& reply, Outbox& out) {
  if (phase_ != Phase::settling) return;
  settle_pending_.erase(node);
  if (const auto* held = std::get_if<Held>(&reply)) {
    if (rules::settled(granted_[node], token_, held->fence)) settled_.insert(node);
    if (held->fence < token_) {
      lose_vote(node, Vote::unavailable, Cause::server_error, "its fence counter does not rise");
    }
  } else if (std::holds_alternative<Free>(reply)) {
    withdraw(node);
    lose_vote(node, Vote::unavailable, Cause::timed_out, "its grant ended before it was settled");
  } else if (std::holds_alternative<Taken>(reply)) {
    withdraw(node);
    lose_vote(node, Vote::refused, Cause::none, "its grant ended and somebody else has the lock");
  } else if (std::holds_alternative<ForcedOut>(reply)) {
    forced_out(node);
  } else if (std::holds_alternative<NoScript>(reply)) {
    send_settle(now, node, Form::source, out);
  } else if (const auto* unavailable = std::get_if<Unavailable>(&reply)) {
    lose_vote(node, *unavailable);
  } else {
    lose_vote(node, Vote::unavailable, Cause::protocol_error, answered_otherwise);
  }
}

void Attempt::forced_out(NodeIndex node) {
  withdraw(node);
  lose_vote(node, Vote::refused, Cause::none, "somebody released it by force");
}

void Attempt::on_deadline(Instant now, Outbox& out) {
  if (gathers()) return look_ahead_due(now, out);
  if (ended() || now < deadline_) return;
  // Grants may have waited for nodes that were to say which set it is: they are judged below.
  if (phase_ == Phase::voting && !awaits_set_) phase_ = Phase::failing;
  judge_far_fences();
  for (NodeIndex node = 0; node < nodes_.size(); ++node) {
    if (ballots_[node].vote == Vote::pending || settle_pending_.contains(node)) {
      const Unavailable why = terms_.silence(now, node);
      lose_vote(node, why);
    }
  }
  settle_pending_ = {};
  decide_settling(now);
  if (awaits_set_) decide(now, out);
  if (phase_ == Phase::voting) phase_ = Phase::failing;
  decide_failing();
}

/// What is granted by a node of another set is worth nothing, as nobody else of this set knows of
/// it. Which set it is may turn out only when nodes were reached that are still to answer.
void Attempt::judge_sets() {
  const SetMembership& sets = terms_.sets();
  awaits_set_ = false;
  if (!sets.open() && !sets.has_strangers()) [[likely]]
    return;
  for (NodeIndex node = 0; node < nodes_.size() && sets.open(); ++node) {
    if (ballots_[node].vote == Vote::pending && !sets.seen(node)) awaits_set_ = true;
  }
  if (awaits_set_ || phase_ == Phase::settling) return;
  for (NodeIndex node = 0; node < nodes_.size(); ++node) {
    if (ballots_[node].vote != Vote::granted || !sets.is_stranger(node)) continue;
    nodes_[node].set_until(Instant::min());
    granted_[node] = 0;
    Unavailable why = sets.refusal(node);
    lose_vote(node, std::move(why));
  }
}

void Attempt::decide(Instant now, Outbox& out) {
  judge_sets();
  judge_far_fences();
  const Tally votes = tally();
  if (phase_ == Phase::voting && votes.won()) begin_settling(now, out);
  if (phase_ == Phase::voting && votes.out_of_reach() && !may_wait(now, votes)) {
    phase_ = Phase::failing;
  }
  decide_settling(now);
  decide_failing();
  if (gathers()) look_ahead(now);
}

/// Whether one that cannot win by what it knows waits for nodes to answer otherwise.
bool Attempt::may_wait(Instant now, const Tally& votes) {
  if (!patient_ || votes.quorum_unavailable()) return false;
  // Also what does not count: the lock is not there for others meanwhile.
  if (granted().size() > 0) return now < give_back_;
  // With a new owner the nodes that this one cannot ask any more can be asked again.
  return spent_ == NodeSet();
}

/// When nothing is under way, the next look is by a timer.
void Attempt::look_ahead(Instant now) {
  if (tally().pending() > 0 || granted().size() > 0 || asks_.is_idle()) return;
  const bool woken = terms_.nodes_that_wake().size() >= terms_.quorum();
  const Duration polled = woken ? AskSchedule::refresh : AskSchedule::between_polls(*random_);
  asks_.idle(now, terms_.quorum(), polled, *random_);
  has_waited_ = true;
}

void Attempt::look_ahead_due(Instant now, Outbox& out) {
  bool turn_is_over = false;
  for (NodeIndex node = 0; node < nodes_.size(); ++node) {
    if (asks_.silent_by(now, node, terms_.node_timeout())) {
      const Unavailable why = terms_.silence(now, node);
      lose_vote(node, why);
    }
    if (asks_.wake_due(now, node)) turn_is_over = true;
  }
  if (asks_.poll_due(now) || turn_is_over) ask_all_again(now, out);
  decide(now, out);
}

void Attempt::on_wake(Instant now, NodeIndex node, Duration after, Outbox& out) {
  if (!gathers() || !rules::wakes_are_heeded()) return;
  // The others have been told of the same release, or soon will be.
  if (asks_.wake(now, node, after, *random_)) ask_all_again(now, out);
  decide(now, out);
}

void Attempt::on_release(Instant now, Outbox& out) {
  if (!gathers() || granted().size() > 0 || !asks_.is_next(terms_.quorum())) return;
  // On its connection the question stands behind what enters the waiter.
  asks_.await_no_entries();
  ask_all_again(now, out);
  decide(now, out);
}

void Attempt::on_node_up(Instant now, NodeIndex node, Outbox& out) {
  if (!gathers()) return;
  ask_again(now, node, out);
  decide(now, out);
}

void Attempt::stop_waiting(Instant now, Outbox& out) {
  if (!std::exchange(patient_, false)) return;
  deadline_ = now + terms_.node_timeout();
  if (!ended()) decide(now, out);
}

Instant Attempt::deadline() const {
  if (ended()) return never;
  if (!gathers()) return deadline_;
  const Instant first = asks_.deadline(terms_.node_timeout());
  return tally().out_of_reach() ? std::min(first, give_back_) : first;
}

void Attempt::decide_settling(Instant now) {
  if (phase_ != Phase::settling) return;
  const std::uint32_t settled = settled_.size();
  if (settled >= quorum()) return win_or_be_late(now);
  if (settled + settle_pending_.size() + tally().pending() < quorum()) {
    phase_ = Phase::failing;
  }
}

/// The failure is certain; its kind is known once a quorum voted or cannot vote any more.
void Attempt::decide_failing() {
  if (phase_ != Phase::failing) return;
  const Tally votes = tally();
  if (votes.quorum_unavailable()) return fail(Errc::no_quorum);
  if (votes.quorum_voted() && votes.no > 0) return fail(Errc::contended);
  if (votes.pending() == 0) fail(Errc::no_quorum);
}

void Attempt::win_or_be_late(Instant now) {
  if (!rules::enough_is_left(now, started_, nodes_.valid_until(), plan_.min_validity)) {
    return fail(Errc::too_late);
  }
  phase_ = Phase::won;
}

void Attempt::fail(Errc why) {
  phase_ = Phase::failed;
  failure_ = why;
}

void Attempt::withdraw(NodeIndex node) {
  nodes_.withdraw(node);
  granted_[node] = 0;
  settled_.erase(node);
}

void Attempt::lose_vote(NodeIndex node, Unavailable why) {
  lose_vote(node, Vote::unavailable, why.cause, std::move(why.detail));
  ballots_[node].objection = std::move(why.objection);
}

void Attempt::lose_vote(NodeIndex node, Vote vote, Cause cause, std::string detail) {
  if (vote == Vote::unavailable) vote = rules::vote_of_unavailable();
  ballots_[node] = {vote, cause, std::move(detail)};
}

NodeSet Attempt::granted() const {
  NodeSet set;
  for (NodeIndex node = 0; node < nodes_.size(); ++node) {
    if (nodes_[node].possession == Possession::ours) set.insert(node);
  }
  return set;
}

NodeSet Attempt::unanswered() const {
  NodeSet set;
  for (NodeIndex node = 0; node < nodes_.size(); ++node) {
    const bool pending = ballots_[node].vote == Vote::pending;
    if (pending && nodes_[node].possession == Possession::asked) set.insert(node);
  }
  return set;
}

std::uint32_t Attempt::quorum() const {
  return rules::quorum(terms_.nodes(), tally().nodes);
}

Tally Attempt::tally() const {
  Tally tally{.nodes = terms_.nodes()};
  for (const Ballot& ballot : ballots_) {
    if (ballot.cause == Cause::connection_failed && !rules::unreached_nodes_count()) {
      --tally.nodes;
      continue;
    }
    if (ballot.vote == Vote::granted && !awaits_set_) ++tally.yes;
    if (ballot.vote == Vote::refused) ++tally.no;
    if (ballot.vote == Vote::unavailable) ++tally.unavailable;
  }
  return tally;
}

}  // namespace redlock::engine
