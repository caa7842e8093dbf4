// SPDX-License-Identifier: MIT
#include "engine/release/release_ledger.hpp"

#include <algorithm>
#include <utility>

#include "engine/rules.hpp"

namespace redlock::engine {
namespace {

/// How long to wait before a node that answered a release with an error is asked again; and how
/// often at most the debts are looked through.
constexpr Duration pause = std::chrono::milliseconds(500);

/// How many debts are repeated to a node before it has answered: a few milliseconds of its time, so
/// that what is asked of it meanwhile is answered in time.
constexpr std::size_t repeats_at_once = 256;

/// Whether the answer to an acquire shows that nothing of it is on the node.
bool left_nothing(const Reply& reply) {
  if (const auto* unavailable = std::get_if<Unavailable>(&reply)) {
    return unavailable->delivery != Delivery::unknown;
  }
  return std::holds_alternative<Refused>(reply) || std::holds_alternative<NoScript>(reply) ||
         std::holds_alternative<ForcedOut>(reply);
}

/// An error about one of the locks of the call, and not about the state of the node.
bool about_the_command(const Reply& reply) {
  const auto* unavailable = std::get_if<Unavailable>(&reply);
  return unavailable != nullptr && unavailable->delivery != Delivery::not_sent &&
         (unavailable->cause == Cause::server_error || unavailable->cause == Cause::permission);
}

/// The node itself said so, over a connection that goes on.
bool answered_with_error(const Unavailable& unavailable) {
  return unavailable.delivery == Delivery::refused || about_the_command(unavailable);
}

}  // namespace

void ReleaseLedger::release(Instant now, const OwedGrant& grant, NodeSet nodes, Outbox& out) {
  for (NodeIndex node = 0; node < owed_.size(); ++node) {
    if (!nodes.contains(node)) continue;
    Late late = Late::nothing;
    if (grant.may_answer_late.contains(node)) {
      late = grant.awaits_hold.contains(node) ? Late::one_hold : Late::anything;
    }
    Debt& debt = owe(owed_[node], {.grant = grant.id,
                                   .name = grant.name,
                                   .owner = grant.owner,
                                   .until = now + grant.lease,
                                   .lease = grant.lease,
                                   .keep_out = grant.keep_out,
                                   .late = late});
    const ForWaiters waiters{.place = grant.place,
                             .first_only = grant.tell_first_only.contains(node)};
    send(now, node, debt, Form::digest, out, waiters);
  }
}

void ReleaseLedger::release_if_granted(Instant now, const OwedGrant& grant, NodeSet nodes) {
  for (NodeIndex node = 0; node < owed_.size(); ++node) {
    if (!nodes.contains(node)) continue;
    owe(owed_[node], {.grant = grant.id,
                      .name = grant.name,
                      .owner = grant.owner,
                      .until = now + grant.lease,
                      .lease = grant.lease,
                      .state = State::awaits_grant});
    look_again_by(now + grant.lease);
  }
}

ReleaseLedger::Debt& ReleaseLedger::owe(Owed& owed, Debt debt) {
  Debt* const known = owed.debts.find(debt.grant);
  return known != nullptr ? *known = std::move(debt) : owed.debts.add(std::move(debt));
}

void ReleaseLedger::send(Instant now, NodeIndex node, Debt& debt, Form form, Outbox& out,
                         const ForWaiters& waiters) {
  if (!debt.under_way()) {
    debt.state = State::sent;
    ++owed_[node].under_way;
    if (debt.taken_elsewhere()) ++owed_[node].taken_elsewhere_under_way;
  }
  const Tag tag{debt.grant, now, {}, 0, Tag::Kind::release};
  if (debt.taken_elsewhere()) {
    out.send(node, tag, ForceCommand{debt.name, debt.owner, debt.keep_out, debt.keep_out}, form);
  } else {
    out.send(node, tag,
             ReleaseCommand{.name = debt.name,
                            .owner = debt.owner,
                            .alone = debt.alone,
                            .first_only = waiters.first_only,
                            .place = waiters.place,
                            .since = now},
             form);
  }
}

/// A new connection ends what was sent on older ones, and an answer stands behind what was sent
/// before on the same: what might come late has done so, and lasts one lease at most.
void ReleaseLedger::extend_for_late(Instant now, Debt& debt) {
  if (std::exchange(debt.late, Late::nothing) == Late::nothing) return;
  debt.until = std::max(debt.until, now + debt.lease);
}

void ReleaseLedger::answered(Owed& owed, Debt& debt, State next) {
  if (debt.under_way()) {
    --owed.under_way;
    if (debt.taken_elsewhere()) --owed.taken_elsewhere_under_way;
  }
  if (debt.state == State::repeated) --owed.repeats_under_way;
  debt.state = next;
}

std::size_t ReleaseLedger::under_way() const {
  std::size_t sum = 0;
  for (const Owed& owed : owed_) sum += owed.under_way;
  return sum;
}

bool ReleaseLedger::taken_elsewhere_under_way() const {
  return std::ranges::any_of(owed_,
                             [](const Owed& owed) { return owed.taken_elsewhere_under_way > 0; });
}

std::uint32_t ReleaseLedger::nodes_under_way() const {
  std::uint32_t nodes = 0;
  for (const Owed& owed : owed_) nodes += owed.under_way > 0 ? 1 : 0;
  return nodes;
}

bool ReleaseLedger::on_reply(Instant now, NodeIndex node, const Tag& tag, const Reply& reply,
                             Outbox& out) {
  Owed& owed = owed_[node];
  Debt* const found = owed.debts.find(tag.grant);
  if (found == nullptr) return false;
  Debt& debt = *found;
  if (std::holds_alternative<NoScript>(reply)) {
    send(now, node, debt, Form::source, out);
    return true;
  }
  if (about_the_command(reply) && !std::exchange(debt.alone, true)) {
    send(now, node, debt, Form::digest, out);
    return true;
  }
  const auto* const unavailable = std::get_if<Unavailable>(&reply);
  if (unavailable == nullptr) {
    answered(owed, debt, State::waits);
    owed.debts.take(debt);
  } else if (answered_with_error(*unavailable)) {
    answered(owed, debt, State::refused);
    extend_for_late(now, debt);
    look_again_by(now + pause);
  } else {
    answered(owed, debt, State::waits);
    look_again_by(std::max(debt.until, now + pause));
    owed.to_repeat.clear();  // the connection is gone: the next one begins anew
  }
  repeat_next(now, node, out);
  return false;
}

void ReleaseLedger::on_acquire_reply(Instant now, NodeIndex node, const Tag& tag,
                                     const Reply& reply, Outbox& out) {
  Debt* const found = owed_[node].debts.find(tag.grant);
  if (found == nullptr) return;
  Debt& debt = *found;
  const bool granted = std::holds_alternative<Granted>(reply);
  if (debt.state == State::awaits_grant) {
    if (granted) return send(now, node, debt, Form::digest, out);
    // Its lock, if it has one, may be that of another process with the same owner.
    owed_[node].debts.take(debt);
    return;
  }
  // It has been executed, perhaps just now. The release behind it may be lost with the connection.
  if (granted || std::holds_alternative<AlreadyOurs>(reply)) extend_for_late(now, debt);
  // What this client sent left nothing; what others sent may be executed after it.
  if (rules::is_turned_away(debt.keep_out)) return;
  const bool of_another =
      std::holds_alternative<AlreadyOurs>(reply) && tag.kind == Tag::Kind::acquire;
  if (!left_nothing(reply) && !of_another) return;
  answered(owed_[node], debt, State::waits);
  owed_[node].debts.take(debt);
}

void ReleaseLedger::on_hold_reply(Instant now, NodeIndex node, const Tag& tag, const Reply& reply) {
  Debt* const found = owed_[node].debts.find(tag.grant);
  if (found == nullptr) return;
  Debt& debt = *found;
  if (executed(reply)) {
    extend_for_late(now, debt);
  } else if (debt.late == Late::one_hold) {
    const bool not_sent = std::get<Unavailable>(reply).delivery == Delivery::not_sent;
    debt.late = not_sent ? Late::nothing : Late::anything;
  }
  look_again_by(std::max(debt.until, now + pause));
}

void ReleaseLedger::on_node_up(Instant now, NodeIndex node, Outbox& out) {
  if (!rules::releases_are_repeated()) return;
  Owed& owed = owed_[node];
  owed.to_repeat.clear();
  for (const GrantId grant : owed.debts.ids()) {
    Debt& debt = *owed.debts.find(grant);
    if (debt.under_way() || debt.state == State::awaits_grant) continue;
    debt.state = State::waits;
    owed.to_repeat.push_back(grant);
  }
  repeat_next(now, node, out);
}

void ReleaseLedger::repeat_next(Instant now, NodeIndex node, Outbox& out) {
  Owed& owed = owed_[node];
  while (owed.repeats_under_way < repeats_at_once && !owed.to_repeat.empty()) {
    const GrantId grant = owed.to_repeat.front();
    owed.to_repeat.pop_front();
    Debt* const found = owed.debts.find(grant);
    if (found == nullptr || found->under_way()) continue;
    Debt& debt = *found;
    // A node that hung for longer than the lease may have executed an acquire or hold just now.
    if (debt.until <= now && debt.late == Late::nothing) continue;
    if (debt.state == State::waits) extend_for_late(now, debt);  // on a new connection
    send(now, node, debt, Form::digest, out);
    debt.state = State::repeated;
    ++owed.repeats_under_way;
  }
}

void ReleaseLedger::on_deadline(Instant now, Outbox& out) {
  if (now < next_look_) return;
  next_look_ = never;
  for (NodeIndex node = 0; node < owed_.size(); ++node) {
    Owed& owed = owed_[node];
    const bool others_wait = !owed.to_repeat.empty();
    for (const GrantId grant : owed.debts.ids()) {
      Debt& debt = *owed.debts.find(grant);
      if (debt.under_way()) continue;
      if (debt.late == Late::nothing && debt.until <= now) {
        owed.debts.take(debt);
        continue;
      }
      const bool refused = debt.state == State::refused;
      if (refused && others_wait) {
        look_again_by(now + pause);
      } else if (refused) {
        owed.to_repeat.push_back(grant);
      } else if (debt.until > now) {
        look_again_by(std::max(debt.until, now + pause));
      }
    }
    repeat_next(now, node, out);
  }
}

}  // namespace redlock::engine
