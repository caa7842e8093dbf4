// SPDX-License-Identifier: MIT
#include "engine/lease/held_lease.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include "engine/rules.hpp"

namespace redlock::engine {

using Purpose = HoldRound::Purpose;

HeldLease::HeldLease(const Electorate& electorate, Plan plan, NodeGrants nodes, Instant now)
    : electorate_(&electorate),
      grant_(plan.grant),
      key_(std::make_shared<const LeaseKey>(LeaseKey{*plan.name, plan.owner, plan.token})),
      renew_until_(plan.renew_until),
      since_(plan.since),
      nodes_(std::move(nodes)),
      longest_lease_(std::chrono::ceil<Hundredths>(plan.lease)) {
  set_lease(plan.lease);
  valid_until_ = nodes_.valid_until(electorate_->majorities());
  assert(rules::enough_is_left(now, since_, valid_until_, Duration::zero()));
  set_lost_at(now);
  if (now < renew_until_) next_renewal_ = in_step(now + renewal_interval(now));
}

HeldLease::HeldLease(const Electorate& electorate, Plan plan, RequestId request, Instant now,
                     Outbox& out)
    : electorate_(&electorate),
      grant_(plan.grant),
      key_(std::make_shared<const LeaseKey>(LeaseKey{*plan.name, plan.owner, plan.token})),
      renew_until_(plan.renew_until),
      since_(plan.since),
      nodes_(electorate.nodes(), false),
      attaching_(true),
      taken_up_(true),
      longest_lease_(std::chrono::ceil<Hundredths>(plan.lease)) {
  set_lease(plan.lease);
  begin_round(now, Purpose::extend, request, plan.lease, out);
  conclude_rounds(now, out);  // it may be longer than the nodes allow
}

void HeldLease::begin_round_unless_over(Instant now, HoldRound::Purpose purpose, RequestId request,
                                        std::chrono::milliseconds lease, Outbox& out) {
  lose_if_over(now, out);
  if (lost_) return out.put(Finish{request, Failed{Errc::lost, "the lease was lost before", {}}});
  begin_round(now, purpose, request, lease, out);
  conclude_rounds(now, out);
}

void HeldLease::extend(Instant now, RequestId request, std::chrono::milliseconds lease,
                       Outbox& out) {
  begin_round_unless_over(now, Purpose::extend, request, lease, out);
}

void HeldLease::end_requests(Errc why, const char* detail, Outbox& out) {
  for (HoldRound& round : rounds_) {
    if (round.request() != 0 && round.announce_end()) {
      out.round_ended();
      out.put(Finish{round.request(), Failed{why, detail, round.ballots()}});
    }
  }
  rounds_.clear();
}

void HeldLease::begin_round(Instant now, HoldRound::Purpose purpose, RequestId request,
                            std::chrono::milliseconds lease, Outbox& out) {
  HoldRound& round = add_round(now, purpose, request, lease, out);
  for (NodeIndex node = 0; node < electorate_->slots(); ++node) {
    if (!electorate_->nodes().contains(node)) continue;
    const auto too_long = electorate_->sets().other_max_lease(node, lease);
    if (nodes_.is_shared(node)) {
      round.unavailable(node, shared_owner());
    } else if (too_long) {
      round.unavailable(node, *too_long);
    } else {
      send_hold(now, node, round, Form::digest, out);
    }
  }
}

HoldRound& HeldLease::add_round(Instant now, HoldRound::Purpose purpose, RequestId request,
                                std::chrono::milliseconds lease, Outbox& out) {
  ++round_;
  if (request != 0) out.round_began();
  return rounds_.emplace_back(round_, *electorate_, purpose, request, lease,
                              now + electorate_->node_timeout());
}

/// Renewals that are not answered must not make more of themselves: a node that has too little of a
/// processor would have ever more to answer, and leases would be lost that it could have renewed.
/// What it has answers for the lease as soon as it gets there.
bool HeldLease::is_asked_to_renew(Instant now, NodeIndex node, NodeSet full) const {
  if (!electorate_->nodes().contains(node)) return false;
  if (nodes_.hold_is_late(node) || nodes_.is_shared(node)) return false;
  const Instant until = nodes_[node].until();
  const bool urgent = now < until && until - now < lease() / 2;
  return !full.contains(node) || urgent || now >= urgent_at();
}

void HeldLease::begin_renewal(Instant now, NodeSet full, Outbox& out) {
  NodeSet asked;
  for (NodeIndex node = 0; node < electorate_->slots(); ++node) {
    if (is_asked_to_renew(now, node, full)) asked.insert(node);
  }
  if (asked == NodeSet{}) {
    next_renewal_ = now + lease() / 12;
    return;
  }
  HoldRound& round = add_round(now, Purpose::renew, 0, lease(), out);
  for (NodeIndex node = 0; node < electorate_->slots(); ++node) {
    if (!electorate_->nodes().contains(node)) continue;
    if (asked.contains(node)) {
      send_hold(now, node, round, Form::digest, out);
    } else {
      round.unavailable(node, no_answer());
    }
  }
}

void HeldLease::send_hold(Instant now, NodeIndex node, const HoldRound& round, Form form,
                          Outbox& out) {
  nodes_.hold_sent(node);
  longest_lease_ = std::max(longest_lease_, std::chrono::ceil<Hundredths>(round.lease()));
  const Tag tag{grant_, now, round.lease(), round.number(), Tag::Kind::hold};
  const Token token = rules::token_to_raise(attaching_, key_->token);
  // The count of this moment, also of a round that is sent again: an old one must not come last.
  out.send(node, tag, HoldCommand{name(), key_->owner, round.lease(), asked_count(), token}, form);
}

void HeldLease::on_reply(Instant now, NodeIndex node, const Tag& tag, const Reply& reply,
                         Outbox& out) {
  const bool holds = tag.kind == Tag::Kind::hold || tag.kind == Tag::Kind::settle;
  if (holds) nodes_.hold_answered(node, reply, tag.round == round_);
  lose_if_over(now, out);
  if (!rules::may_be_confirmed(lost_)) return on_reply_after_loss(now, node, tag, reply, out);
  if (std::holds_alternative<ForcedOut>(reply)) {
    on_forced_out(now, node, tag);
    update_validity(now, out);
    return conclude_rounds(now, out);
  }
  switch (tag.kind) {
    case Tag::Kind::acquire:
    case Tag::Kind::settle:
      if (std::holds_alternative<AlreadyOurs>(reply)) {
        nodes_.share(node);  // see Attempt::on_shared_owner
        is_kept_ = false;
        if (rules::one_reply_is_a_veto()) return lose(LossReason::taken, out);
      } else {
        on_straggler(now, node, tag, reply);
      }
      break;
    case Tag::Kind::heal:
      on_heal_reply(now, node, tag, reply, out);
      break;
    case Tag::Kind::hold:
      on_hold_reply(now, node, tag, reply, out);
      break;
    default:  // not about a lease
      assert(false);
  }
  update_validity(now, out);
  conclude_rounds(now, out);
}

/// Nothing lengthens a lost lease, but its holder may act on it until the end that it was last
/// told.
void HeldLease::on_reply_after_loss(Instant now, NodeIndex node, const Tag& tag, const Reply& reply,
                                    Outbox& out) {
  const bool already = std::holds_alternative<AlreadyOurs>(reply);
  if (already && tag.kind == Tag::Kind::acquire) {
    return nodes_.share(node);  // the lock there is not to be released
  }
  // It is this process's to release, also where another one has the same owner.
  if (already || std::holds_alternative<Granted>(reply)) return nodes_.confirm_without_trust(node);
  const bool denied = std::holds_alternative<Free>(reply) || std::holds_alternative<Taken>(reply) ||
                      std::holds_alternative<Refused>(reply) ||
                      std::holds_alternative<ForcedOut>(reply);
  if (!denied) return;
  deny(now, node, tag);
  shorten_after_loss(now, out);
}

void HeldLease::shorten_after_loss(Instant now, Outbox& out) {
  const Instant confirmed = confirmed_until();
  const Instant until = confirmed == Instant::min() ? now : confirmed;
  if (until >= valid_until_) return;
  valid_until_ = until;
  if (!attach_failed_) out.put(ValidityChanged{grant_, valid_until_, loss_deadline()});
}

void HeldLease::on_forced_out(Instant now, NodeIndex node, const Tag& tag) {
  deny(now, node, tag);
  on_denied_by_voter();
  forced_ = true;
  HoldRound* const round = tag.kind == Tag::Kind::hold ? find_round(tag.round) : nullptr;
  if (round != nullptr) round->denied(node, false);
}

/// A late answer to the attempt that was granted without it.
void HeldLease::on_straggler(Instant now, NodeIndex node, const Tag& tag, const Reply& reply) {
  const bool confirms =
      std::holds_alternative<Granted>(reply) || std::holds_alternative<Held>(reply);
  if (confirms) {
    if (nodes_[node].possession != Possession::not_ours) confirm(now, node, tag);
    return;
  }
  const auto* unavailable = std::get_if<Unavailable>(&reply);
  // An acquire that was not executed is not repeated: the next round heals the node.
  const bool not_executed = std::holds_alternative<NoScript>(reply) ||
                            (unavailable != nullptr && unavailable->delivery != Delivery::unknown);
  const bool free = std::holds_alternative<Free>(reply);
  if (free && explained_by_quarantine(now, node)) return nodes_.forget(node);
  const bool denied =
      free || std::holds_alternative<Refused>(reply) || std::holds_alternative<Taken>(reply);
  if (denied || (tag.kind == Tag::Kind::acquire && not_executed)) deny(now, node, tag);
}

void HeldLease::on_hold_reply(Instant now, NodeIndex node, const Tag& tag, const Reply& reply,
                              Outbox& out) {
  HoldRound* round = find_round(tag.round);
  if (!rules::rounds_are_apart() && !rounds_.empty()) round = &rounds_.back();
  if (const auto* held = std::get_if<Held>(&reply)) {
    if (rules::confirms(attaching_, held->fence, key_->token)) {
      on_held(now, node, tag, round);
    } else if (round != nullptr) {
      round->below_token(node, held->fence);
    }
  } else if (std::holds_alternative<Free>(reply)) {
    on_free(now, node, tag, round, out);
  } else if (const auto* taken = std::get_if<Taken>(&reply)) {
    if (!rules::denies(*taken)) return;
    deny(now, node, tag);
    if (round != nullptr) round->denied(node, false);
  } else if (std::holds_alternative<NoScript>(reply)) {
    if (round != nullptr) send_hold(now, node, *round, Form::source, out);
  } else if (const auto* unavailable = std::get_if<Unavailable>(&reply)) {
    if (round != nullptr) round->unavailable(node, *unavailable);
  } else if (round != nullptr) {
    round->unavailable(node, {Cause::protocol_error, Delivery::unknown, answered_otherwise});
  }
}

void HeldLease::on_held(Instant now, NodeIndex node, const Tag& tag, HoldRound* round) {
  // Sent before the heal, behind which the next answer comes.
  if (nodes_[node].possession == Possession::healing) return;
  const auto why = confirm(now, node, tag);
  if (round == nullptr) return;
  if (nodes_.is_shared(node)) return round->unavailable(node, shared_owner());
  why ? round->unavailable(node, *why) : round->held(node);
}

/// Why that does not count; nothing if it does.
std::optional<Unavailable> HeldLease::confirm(Instant now, NodeIndex node, const Tag& tag) {
  auto why = electorate_->distrust(now, node, tag.lease);
  if (!why && contradicts(now, node)) why = other_members();
  nodes_.confirm(node, why ? Instant::min() : electorate_->trusted_until(tag.sent, tag.lease));
  nodes_.at(node).in_quarantine = electorate_->quarantined(now, node);
  return why;
}

void HeldLease::node_removed(NodeIndex node) {
  nodes_.limit(node, confirmed_until());
  if (!electorate_->nodes().contains(node)) nodes_.withdraw(node);
  for (HoldRound& round : rounds_) round.node_removed(node);
}

/// A quorum of the members of before still has the lease until its end, and shares a node with each
/// quorum that counts from now on, unless one of its nodes is found not to have the lease. What is
/// confirmed later is counted over the members of then.
void HeldLease::majorities_changed() {
  is_kept_ = true;
}

Instant HeldLease::confirmed_until() const {
  const Instant confirmed = nodes_.valid_until(electorate_->majorities());
  return is_kept_ ? std::max(confirmed, valid_until_) : confirmed;
}

bool HeldLease::contradicts(Instant now, NodeIndex node) const {
  const SetMembership& sets = electorate_->sets();
  if (sets.is_unknown(node)) return true;
  // Asked with every confirmation.
  return sets.is_changing() && sets.contradicts(node, nodes_.trusted(now));
}

void HeldLease::node_ran_ahead(Instant now, NodeIndex node, Duration by, Outbox& out) {
  nodes_.shorten(node, by);
  is_kept_ = false;
  if (lost_) return shorten_after_loss(now, out);
  update_validity(now, out);
  // What ends earlier is to be renewed earlier.
  if (!lost_ && next_renewal_ != never) {
    next_renewal_ = std::min(next_renewal_, now + renewal_interval(now));
  }
  conclude_rounds(now, out);
}

void HeldLease::update_validity(Instant now, Outbox& out) {
  const Instant valid_until = confirmed_until();
  if (valid_until == Instant::min()) {
    // A grant being taken up may still find its quorum; a lease without one is over.
    const bool hopeless = !electorate_->is_quorum(nodes_.can_be_ours());
    if (!rules::is_over(nodes_.may_hold().size(), electorate_->quorum())) return;
    if (!attaching_ || hopeless) lose(forced_ ? LossReason::forced : LossReason::taken, out);
    return;
  }
  if (valid_until == valid_until_) return;
  const bool longer = valid_until > valid_until_;
  if (longer) is_kept_ = false;  // that was counted over the members of now
  valid_until_ = valid_until;
  set_lost_at(now);
  // What was asked before was confirmed after all, late: that need not be asked again.
  if (retries_ && longer && next_renewal_ != never) {
    next_renewal_ = std::clamp(renewal_by_validity(), now, now + lease() / 3);
  }
  if (!attaching_) out.put(ValidityChanged{grant_, valid_until_, loss_deadline()});
  lose_if_over(now, out);
}

/// Leases of one length are renewed at common moments, so that many go in one message.
Instant HeldLease::in_step(Instant when) const {
  const auto step = std::max<Duration>(lease() / 3'000, std::chrono::milliseconds(1));
  return Instant(when.time_since_epoch() / step * step);
}

bool HeldLease::postpone_renewal(Instant now, std::uint32_t number) {
  if (postponed_ || lost_at_ - now < lease() / 3) return false;
  constexpr std::uint32_t moments = 32;
  const Duration longest = lease() / 30;
  next_renewal_ = in_step(now + longest * (number % moments + 1) / moments);
  postponed_ = next_renewal_ > now;
  return postponed_;
}

Instant HeldLease::wait_for_room() {
  waits_for_room_ = true;
  next_renewal_ = urgent_at();
  return next_renewal_;
}

bool HeldLease::end_waiting(Instant now) {
  if (lost_ || !waits_for_room_) return false;
  next_renewal_ = now;
  return true;
}

/// A third of the lease after the nodes were asked for what they confirmed.
Instant HeldLease::renewal_by_validity() const {
  return in_step(valid_until_ - 2 * lease() / 3);
}

/// A third of the lease; sooner if the grant took so long that little is left of it.
Duration HeldLease::renewal_interval(Instant now) const {
  return std::min<Duration>(lease() / 3, (lost_at_ - now) / 2);
}

/// A margin before the validity ends.
void HeldLease::set_lost_at(Instant now) {
  lost_at_ = rules::lost_at(now, valid_until_, lease());
}

void HeldLease::conclude_rounds(Instant now, Outbox& out) {
  const std::uint32_t asked = asked_count();
  for (HoldRound& round : rounds_) {
    if (lost_) return;
    if (round.announce()) conclude(now, round, out);
    if (round.some_free()) heal_free_nodes(now, round, out);
  }
  rounds_.erase_complete();
  // What a failed entry left on the nodes.
  if (asked_count() < asked && rules::failed_entry_is_taken_back()) tell_count(now, out);
}

void HeldLease::conclude(Instant now, HoldRound& round, Outbox& out) {
  const bool ok = round.won();
  if (ok && !round.denied_since()) denied_ = false;
  if (round.purpose() == Purpose::tell_count) return;
  if (round.request() == 0) {
    retries_ = !ok;
    if (!ok) {
      next_renewal_ = std::min(next_renewal_, std::max(now + lease() / 12, renewal_by_validity()));
    }
    out.put(RenewalDecided{grant_, ok, valid_until_});
    return;
  }
  out.round_ended();
  const bool attached = attaching_;
  attaching_ = false;
  if (!ok && attached && round.refutes_token()) {
    attach_failed_ = true;
    out.put(Finish{round.request(),
                   Failed{Errc::invalid_argument,
                          "the token " + std::to_string(key_->token) + " was never given for it",
                          round.ballots()}});
  } else if (!ok) {
    attach_failed_ = attached;
    if (round.enters() && rules::failed_entry_counts()) ++count_;
    out.put(Finish{round.request(), Failed{Errc::no_quorum, {}, round.ballots()}});
    for (NodeIndex node = 0; rules::failed_extend_releases() && node < electorate_->slots();
         ++node) {
      out.send(node, Tag{grant_, now, {}, 0, Tag::Kind::release},
               ReleaseCommand{name(), key_->owner});
    }
  } else if (round.enters()) {
    entered(now, round, out);
  } else if (attached) {
    if (now < renew_until_) next_renewal_ = in_step(now + renewal_interval(now));
    out.put(Finish{round.request(), AcquireSucceeded{grant_, key_->owner, key_->token, valid_until_,
                                                     loss_deadline(), key_}});
  } else {
    out.put(Finish{round.request(), ExtendSucceeded{valid_until_}});
  }
}

void HeldLease::on_deadline(Instant now, NodeSet full, Outbox& out) {
  lose_if_over(now, out);
  if (lost_) return;
  for (HoldRound& round : rounds_) {
    if (round.deadline() > now) continue;
    const NodeSet silent = round.time_out();
    for (NodeIndex node = 0; node < electorate_->slots(); ++node) {
      if (silent.contains(node)) nodes_.hold_timed_out(node);
    }
  }
  conclude_rounds(now, out);
  if (next_renewal_ > now) return;
  if (now >= renew_until_) {
    next_renewal_ = never;
    return;
  }
  postponed_ = false;
  waits_for_room_ = false;
  next_renewal_ = in_step(now + lease() / 3);
  begin_renewal(now, full, out);
}

Instant HeldLease::deadline() const {
  if (lost_) return never;
  Instant first = std::min(lost_at_, next_renewal_);
  for (const HoldRound& round : rounds_) first = std::min(first, round.deadline());
  return first;
}

void HeldLease::lose_if_over(Instant now, Outbox& out) {
  if (lost_ || now < lost_at_) return;
  lose(reason_at(now), out);
}

void HeldLease::give_up(Instant now, LossReason reason, Outbox& out) {
  lose_if_over(now, out);
  lose(reason, out);
}

void HeldLease::lose(LossReason reason, Outbox& out) {
  if (lost_) return;
  lost_ = true;
  attach_failed_ = attaching_;
  attaching_ = false;
  // Whoever is told so does not act on it any more.
  const bool gone = reason == LossReason::taken || reason == LossReason::forced;
  if (gone) valid_until_ = Instant::min();
  if (!rules::requests_end_with_the_lease()) rounds_.clear();
  const char* detail = "its validity ended meanwhile";
  if (reason == LossReason::forced) detail = "somebody released it by force";
  if (reason == LossReason::taken) {
    detail =
        attach_failed_ ? "too few nodes have it for this owner" : "too few nodes still have it";
  }
  // Before the requests end: whoever is told `lost` finds the lease lost.
  if (!attach_failed_) out.put(LeaseLost{grant_, reason});
  end_requests(Errc::lost, detail, out);
}

HoldRound* HeldLease::find_round(std::uint32_t number) {
  for (HoldRound& round : rounds_) {
    if (round.number() == number) return &round;
  }
  return nullptr;
}

// --- nodes that do not have the lease: what follows from their answers, and how they take part
// again

void HeldLease::on_free(Instant now, NodeIndex node, const Tag& tag, HoldRound* round,
                        Outbox& out) {
  if (explained_by_quarantine(now, node)) {
    nodes_.forget(node);
  } else {
    deny(now, node, tag);
  }
  if (const auto why = electorate_->quarantine(now, node)) {
    if (round != nullptr) round->unavailable(node, *why);
    return;
  }
  if (round != nullptr) return round->denied(node, true);
  // Its round is over: no later moment will do.
  if (now < confirmed_until()) heal(now, node, tag.lease, out);
}

/// Whether the node does not have the lease because it lost its data: it confirmed before it was
/// quarantined, and grants nothing until the lease is over.
bool HeldLease::explained_by_quarantine(Instant now, NodeIndex node) const {
  const NodeGrant& grant = nodes_[node];
  return grant.possession == Possession::ours && !grant.in_quarantine && !denied_ &&
         electorate_->quarantined(now, node);
}

/// It has nothing of this owner.
void HeldLease::deny(Instant now, NodeIndex node, const Tag& tag) {
  const NodeGrant& grant = nodes_[node];
  // Messages to a node are answered in their order: this one was sent before the heal.
  if (grant.possession == Possession::healing && tag.kind != Tag::Kind::heal) return;
  if (now < grant.until()) is_kept_ = false;
  if (now < grant.until() && !electorate_->quarantined(now, node)) on_denied_by_voter();
  nodes_.withdraw(node);
}

/// Somebody took the lease away (by force, or by releasing it from elsewhere), or data was lost
/// that should not be. A node in quarantine may have lost the trace of that as well, and not only
/// the lease.
void HeldLease::on_denied_by_voter() {
  denied_ = true;
  is_kept_ = false;
  for (HoldRound& round : rounds_) round.on_denial();
  nodes_.withdraw_forgotten();
}

void HeldLease::send_heal(Instant now, NodeIndex node, std::chrono::milliseconds lease, Form form,
                          Outbox& out) {
  nodes_.at(node).possession = Possession::healing;
  const Tag tag{grant_, now, lease, round_, Tag::Kind::heal};
  const Token floor = std::min(key_->token, floor_limit);
  out.send(
      node, tag,
      AcquireCommand{name(), key_->owner, lease, floor, electorate_->config().quarantine, since_},
      form);
}

/// A valid lease has its quorum, whichever nodes answer at the moment, so no other owner has one.
/// A grant that this node had given to another was released, or is over.
void HeldLease::heal(Instant now, NodeIndex node, std::chrono::milliseconds asked, Outbox& out) {
  // What is not renewed lasts no longer here than was asked for, or than it does elsewhere.
  const auto left = std::chrono::floor<std::chrono::milliseconds>(valid_until_ - now);
  const auto lasts = now < renew_until_ ? lease() : std::max(asked, left);
  const bool gone = nodes_[node].possession == Possession::not_ours;
  if (!gone || electorate_->objection(now, node, lasts)) return;
  send_heal(now, node, lasts, Form::digest, out);
}

/// Once the round has shown what there is.
void HeldLease::heal_free_nodes(Instant now, HoldRound& round, Outbox& out) {
  if (lost_ || attach_failed_ || !round.announced()) return;
  const NodeSet free = round.take_free();
  for (NodeIndex node = 0; node < electorate_->slots(); ++node) {
    if (free.contains(node)) heal(now, node, round.lease(), out);
  }
}

void HeldLease::on_heal_reply(Instant now, NodeIndex node, const Tag& tag, const Reply& reply,
                              Outbox& out) {
  if (nodes_[node].possession != Possession::healing) return;
  if (std::holds_alternative<Granted>(reply) || std::holds_alternative<AlreadyOurs>(reply)) {
    confirm(now, node, tag);
  } else if (std::holds_alternative<Refused>(reply)) {
    nodes_.withdraw(node);
  } else if (std::holds_alternative<NoScript>(reply)) {
    send_heal(now, node, tag.lease, Form::source, out);
  } else if (const auto* unavailable = std::get_if<Unavailable>(&reply)) {
    // It may have the lock, and the next round will show.
    if (unavailable->delivery == Delivery::unknown) {
      nodes_.at(node).possession = Possession::asked;
    } else {
      nodes_.withdraw(node);
    }
  }
}

// --- re-entry: a lease that is held more than once. Each node is told an absolute count, so that
// one that missed a message is put right by the next; the count of this lease rises only when a
// quorum has confirmed it, and falls at once

std::uint32_t HeldLease::asked_count() const {
  return count_ + static_cast<std::uint32_t>(std::ranges::count_if(rounds_, &HoldRound::entering));
}

void HeldLease::enter(Instant now, RequestId request, const EnterRequest& what, Outbox& out) {
  assert(!attaching_);
  const Purpose purpose = what.renew ? Purpose::enter_and_renew : Purpose::enter;
  begin_round_unless_over(now, purpose, request, what.lease, out);
}

void HeldLease::entered(Instant now, const HoldRound& round, Outbox& out) {
  ++count_;
  const bool renewed = renew_until_ != Instant::min();
  if (round.purpose() == Purpose::enter_and_renew && !renewed) {
    renew_until_ = never;
    set_lease(std::max(lease(), round.lease()));
    next_renewal_ = in_step(now + renewal_interval(now));
  }
  out.put(Finish{round.request(), EnterSucceeded{count_, valid_until_}});
}

void HeldLease::leave(Instant now, Outbox& out) {
  lose_if_over(now, out);
  if (lost_ || count_ == 1) return;
  --count_;
  if (rules::level_left_is_told()) tell_count(now, out);
}

/// Asks for no more than there is: an explicit lease is not lengthened by the way.
void HeldLease::tell_count(Instant now, Outbox& out) {
  const auto left = std::chrono::floor<std::chrono::milliseconds>(valid_until_ - now);
  begin_round(now, Purpose::tell_count, 0, std::max(left, std::chrono::milliseconds(1)), out);
}

}  // namespace redlock::engine
