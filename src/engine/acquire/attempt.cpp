// SPDX-License-Identifier: MIT
#include "engine/acquire/attempt.hpp"

#include <algorithm>
#include <cassert>
#include <functional>
#include <utility>

#include "engine/rules.hpp"

namespace redlock::engine {
namespace {

constexpr std::chrono::milliseconds a_day = std::chrono::hours(24);

}  // namespace

Attempt::Attempt(const Electorate& electorate, Plan plan, Instant now)
    : electorate_(electorate),
      plan_(std::move(plan)),
      started_(now),
      of_(electorate.nodes()),
      nodes_(of_, true),
      per_node_(electorate.slots()),
      patience_(electorate.node_timeout()),
      silent_(plan_.silent),
      ballots_(electorate.slots()) {
  for (NodeIndex node = 0; node < ballots_.size(); ++node) {
    ballots_[node].counts = of_.contains(node);
  }
  // Waiting for an answer past the end of the validity could only end in too_late.
  const Duration validity = electorate.trusted_until(now, plan_.lease) - plan_.min_validity - now;
  if (!plan_.waits) patience_ = std::min(patience_, validity);
}

NodeSet Attempt::ask(Instant now, NodeSet nodes, Outbox& out) {
  NodeSet asked;
  if (phase_ != Phase::voting) return asked;
  for (NodeIndex node = 0; node < ballots_.size(); ++node) {
    if (nodes.contains(node) && ask(now, node, out)) asked.insert(node);
  }
  decide(now, out);
  return asked;
}

bool Attempt::ask(Instant now, NodeIndex node, Outbox& out) {
  const bool has_it = nodes_[node].possession == Possession::ours;
  if (has_it || is_asked(node) || spent_.contains(node)) return false;
  if (auto why = electorate_.objection(now, node, plan_.lease)) {
    withdraw(node);
    lose_vote(node, std::move(*why));
    return false;
  }
  of_.insert(node);  // it may be new
  ballots_[node] = {};
  nodes_.at(node).possession = Possession::asked;
  per_node_[node].asked = now;
  send_acquire(now, node, Form::digest, out);
  if (silent_.contains(node)) lose_vote(node, not_waited_for());
  return true;
}

void Attempt::send_acquire(Instant sent, NodeIndex node, Form form, Outbox& out) const {
  const Tag tag{plan_.grant, sent, plan_.lease, 0, Tag::Kind::acquire};
  AcquireCommand command{
      plan_.name, plan_.owner,   plan_.lease, plan_.floor, electorate_.config().quarantine,
      sent,       plan_.in_order};
  if (standing_.line != 0) {
    command.place = {standing_.line, sent - standing_.began, standing_.turn,
                     standing_.new_at.contains(node)};
    if (standing_.next_began) command.next_waited = sent - *standing_.next_began;
  }
  out.send(node, tag, std::move(command), form);
}

void Attempt::on_reply(Instant now, NodeIndex node, const Tag& tag, const Reply& reply,
                       Outbox& out) {
  assert(!ended());
  if (tag.kind == Tag::Kind::settle) nodes_.hold_answered(node, reply, false);
  if (tag.kind == Tag::Kind::acquire) {
    const Instant asked = std::exchange(per_node_[node].asked, never);
    silent_.erase(node);
    if (unreached(reply)) silent_.insert(node);
    if (std::holds_alternative<NoScript>(reply)) {
      on_no_script(now, node, asked, out);
    } else {
      on_acquire_reply(now, node, tag, reply, out);
    }
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
    }
  } else if (std::holds_alternative<ForcedOut>(reply)) {
    forced_out(node);
  } else if (std::holds_alternative<AlreadyOurs>(reply)) {
    on_shared_owner(node);
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

/// The node did nothing with the question, which is sent once more: what it grants counts from
/// then, but it has been asked since before.
void Attempt::on_no_script(Instant now, NodeIndex node, Instant asked, Outbox& out) {
  if (rules::may_repeat_acquire(phase_ == Phase::failing)) {
    per_node_[node].asked = asked;
    return send_acquire(now, node, Form::source, out);
  }
  // Its release is written already: an acquire behind it would stay for a whole lease.
  withdraw(node);
  lose_vote(node, Vote::unavailable, Cause::server_error, "the script was not loaded");
}

/// Another process has drawn this owner (a machine that was cloned, a snapshot that was restored),
/// or the node says so wrongly: its vote is lost, and no other.
void Attempt::on_shared_owner(NodeIndex node) {
  assert(per_node_[node].granted == 0);  // what has granted is not asked again
  nodes_.share(node);
  spent_.insert(node);
  const Unavailable why = shared_owner();
  lose_vote(node, why);
  if (rules::one_reply_is_a_veto()) fail(Errc::no_quorum);
}

void Attempt::on_granted(Instant now, NodeIndex node, const Tag& tag, Token token, Outbox& out) {
  if (auto why = electorate_.distrust(now, node, plan_.lease)) {
    nodes_.confirm_without_trust(node);
    return lose_vote(node, std::move(*why));
  }
  if (phase_ == Phase::settling && electorate_.sets().contradicts(node, nodes_.trusted(now))) {
    nodes_.confirm_without_trust(node);
    return lose_vote(node, other_members());
  }
  ballots_[node] = {Vote::granted, Cause::none, {}};
  nodes_.confirm(node, electorate_.trusted_until(rules::counts_from(tag.sent, now), plan_.lease));
  per_node_[node].granted = token;
  if (phase_ != Phase::settling) return;
  if (token == token_) return settled_.insert(node);
  if (rules::may_settle(token, token_)) send_settle(now, node, Form::digest, out);
}

/// The largest token that is believed: by clocks, or because a quorum of nodes has come as far.
Token Attempt::ceiling() const {
  std::vector<Node> sorted = per_node_;
  if (quorum() > sorted.size()) return std::max(plan_.ceiling, token_);
  const auto of_quorum = sorted.begin() + static_cast<std::ptrdiff_t>(quorum() - 1);
  std::ranges::nth_element(sorted, of_quorum, std::ranges::greater(), &Node::granted);
  return std::max({plan_.ceiling, token_, rules::ceiling_above(of_quorum->granted)});
}

/// A node's damaged fence costs its vote. That vote is pending as long as a quorum may turn out to
/// have come as far.
void Attempt::judge_fences() {
  const auto beyond = [](Token ceiling) { return [=](Token token) { return token > ceiling; }; };
  if (std::ranges::none_of(per_node_, beyond(plan_.ceiling), &Node::granted)) [[likely]]
    return;
  const auto is_far = beyond(ceiling());
  std::uint32_t near = 0;
  std::uint32_t others = 0;  // that may be as far
  for (NodeIndex node = 0; node < ballots_.size(); ++node) {
    const bool far = is_far(per_node_[node].granted);
    const bool undecided_yet = per_node_[node].granted != 0 && ballots_[node].vote == Vote::pending;
    if (!far && undecided_yet) ballots_[node] = {Vote::granted, Cause::none, {}};
    near += !far && ballots_[node].vote == Vote::granted;
    others += far || ballots_[node].vote == Vote::pending;
  }
  const bool undecided = phase_ == Phase::voting && near < quorum() && others >= quorum();
  for (NodeIndex node = 0; node < ballots_.size(); ++node) {
    if (!is_far(per_node_[node].granted)) continue;
    if (undecided) {
      ballots_[node] = {};
    } else {
      lose_vote(node, Vote::unavailable, Cause::server_error,
                "its fence counter is damaged (" + std::to_string(per_node_[node].granted) + ")");
      per_node_[node].granted = 0;
    }
  }
}

void Attempt::begin_settling(Instant now, Outbox& out) {
  phase_ = Phase::settling;
  token_ = std::ranges::max_element(per_node_, {}, &Node::granted)->granted;
  if (!rules::enough_is_left(now, started_, nodes_.valid_until(electorate_.majorities()),
                             plan_.min_validity)) {
    return fail(Errc::too_late);
  }
  for (NodeIndex node = 0; node < ballots_.size(); ++node) {
    if (rules::settles_as_granted(per_node_[node].granted, token_)) settled_.insert(node);
  }
  if (is_quorum(settled_)) return;
  settles_by_ = now + electorate_.node_timeout();
  for (NodeIndex node = 0; node < ballots_.size(); ++node) {
    const bool lags = per_node_[node].granted != 0 && !settled_.contains(node);
    if (lags) send_settle(now, node, Form::digest, out);
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
    if (rules::settled(per_node_[node].granted, token_, held->fence)) settled_.insert(node);
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

void Attempt::node_up(Instant now, NodeIndex node) {
  if (ended() || !silent_.contains(node)) return;
  silent_.erase(node);
  if (!is_asked(node)) return;
  ballots_[node] = {};
  per_node_[node].asked = now;
}

void Attempt::on_deadline(Instant now, Outbox& out) {
  if (ended()) return;
  const bool settling = phase_ == Phase::settling;
  if (settling && now < settles_by_) {
    if (now >= too_late_from()) fail(Errc::too_late);
    return;
  }
  for (NodeIndex node = 0; node < ballots_.size(); ++node) {
    const bool late = is_asked(node) && !silent_.contains(node) &&
                      (settling || now >= per_node_[node].asked + patience_);
    if (late) silent_.insert(node);
    if (!late && !settle_pending_.contains(node)) continue;
    const Unavailable why = electorate_.silence(now, node);
    lose_vote(node, why);
  }
  settle_pending_ = {};
  decide(now, out);
}

Instant Attempt::deadline() const {
  if (ended()) return never;
  if (phase_ == Phase::settling) return std::min(settles_by_, too_late_from());
  Instant first = never;
  for (NodeIndex node = 0; node < ballots_.size(); ++node) {
    if (is_asked(node) && !silent_.contains(node))
      first = std::min(first, per_node_[node].asked + patience_);
  }
  return first;
}

/// When too little of the validity is left, which grows with later grants, and ends where grants
/// are withdrawn: then the node timeout decides.
Instant Attempt::too_late_from() const {
  const Instant until = nodes_.valid_until(electorate_.majorities());
  return until == Instant::min() ? never : until - plan_.min_validity;
}

void Attempt::give_up() {
  if (!ended()) phase_ = Phase::failing;
  decide_failing();
}

/// What is granted by a node of another set is worth nothing, as nobody else of this set knows of
/// it. Which set it is may turn out only when nodes were reached that are still to answer.
void Attempt::judge_sets() {
  const SetMembership& sets = electorate_.sets();
  awaits_set_ = false;
  if (!sets.open() && !sets.has_strangers() && !sets.is_changing()) [[likely]]
    return;
  for (NodeIndex node = 0; node < ballots_.size() && sets.open(); ++node) {
    const bool pending = of_.contains(node) && ballots_[node].vote == Vote::pending;
    if (pending && !sets.seen(node)) awaits_set_ = true;
  }
  if (awaits_set_ || phase_ == Phase::settling) return;
  NodeSet granted;
  NodeSet strangers;
  for (NodeIndex node = 0; node < ballots_.size(); ++node) {
    if (ballots_[node].vote != Vote::granted) continue;
    sets.is_stranger(node) ? strangers.insert(node) : granted.insert(node);
  }
  const NodeSet dropped = strangers | without_conflict(granted);
  for (NodeIndex node = 0; node < ballots_.size(); ++node) {
    if (!dropped.contains(node)) continue;
    nodes_.at(node).set_until(Instant::min());
    per_node_[node].granted = 0;
    lose_vote(node, electorate_.stranger(node).value_or(other_members()));
  }
}

/// There is nothing to be asked, or released, there any more.
void Attempt::leaves(NodeIndex node) {
  withdraw(node);
  lose_vote(node, other_members());
}

/// Before there is a quorum its vote is worth nothing, and the others may still be one.
void Attempt::node_removed(NodeIndex node) {
  nodes_.limit(node, nodes_.valid_until(electorate_.majorities()));
  if (!electorate_.nodes().contains(node) && !ended()) return leaves(node);
  const bool counts = nodes_[node].until() != Instant::min();
  if (counts || phase_ != Phase::voting || ballots_[node].vote != Vote::granted) return;
  per_node_[node].granted = 0;
  lose_vote(node, electorate_.stranger(node).value_or(other_members()));
}

bool Attempt::members_changed(Instant now, Outbox& out) {
  const bool voting = phase_ == Phase::voting;
  if (voting ? !electorate_.won(tally()) : !is_quorum(settled_)) return false;
  decide(now, out);
  return true;
}

/// The votes that are lost because one of these nodes was replaced, as another one shows. Either
/// side may be the wrong one: the one without which the others are a quorum.
NodeSet Attempt::without_conflict(NodeSet granted) {
  const auto [removing, removed] = electorate_.sets().conflict_in(granted);
  if (removing == NodeSet()) return {};
  if (is_quorum(granted - removed)) return removed;
  const bool may_change = tally().pending() != NodeSet();
  awaits_set_ = may_change && !is_quorum(granted - removing);
  return awaits_set_ ? NodeSet() : removing;
}

void Attempt::decide(Instant now, Outbox& out) {
  judge_sets();
  judge_fences();
  if (phase_ == Phase::voting && electorate_.won(tally())) begin_settling(now, out);
  decide_settling(now);
  decide_failing();
}

void Attempt::decide_settling(Instant now) {
  if (phase_ != Phase::settling) return;
  if (is_quorum(settled_)) return win_or_be_late(now);
  if (!is_quorum(settled_ | settle_pending_ | tally().pending())) phase_ = Phase::failing;
}

/// The failure is certain; its kind is known once a quorum voted or cannot vote any more.
void Attempt::decide_failing() {
  if (phase_ != Phase::failing) return;
  const Tally its = tally();
  if (electorate_.quorum_unavailable(its)) return fail(Errc::no_quorum);
  if (electorate_.quorum_voted(its) && its.no != NodeSet()) return fail(Errc::contended);
  if (its.pending() == NodeSet()) fail(Errc::no_quorum);
}

void Attempt::win_or_be_late(Instant now) {
  if (!rules::enough_is_left(now, started_, nodes_.valid_until(electorate_.majorities()),
                             plan_.min_validity)) {
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
  per_node_[node].granted = 0;
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

NodeSet Attempt::asked() const {
  NodeSet set;
  for (NodeIndex node = 0; node < ballots_.size(); ++node) {
    if (is_asked(node)) set.insert(node);
  }
  return set;
}

std::uint32_t Attempt::quorum() const {
  return rules::quorum(electorate_.quorum(), tally().of.size());
}

bool Attempt::is_quorum(NodeSet nodes) const {
  return electorate_.is_quorum(nodes, tally().of);
}

Tally Attempt::tally() const {
  Tally tally{of_, {}, {}, {}};
  for (NodeIndex node = 0; node < ballots_.size(); ++node) {
    const Ballot& ballot = ballots_[node];
    if (ballot.cause == Cause::connection_failed && !rules::unreached_nodes_count()) {
      tally.of.erase(node);
      continue;
    }
    if (ballot.vote == Vote::granted && !awaits_set_) tally.yes.insert(node);
    if (ballot.vote == Vote::refused) tally.no.insert(node);
    if (ballot.vote == Vote::unavailable) tally.unavailable.insert(node);
  }
  return tally;
}

}  // namespace redlock::engine
