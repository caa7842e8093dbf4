// SPDX-License-Identifier: MIT
#include "engine/release_ledger.hpp"

#include <algorithm>
#include <utility>

#include "engine/planted_bug.hpp"

namespace redlock::engine {
namespace {

/// How long to wait before a node that answered a release with an error is asked again; and how
/// often at most the debts are looked through.
constexpr Duration pause = std::chrono::milliseconds(500);

/// Whether the answer to an acquire shows that nothing of it is on the node.
bool left_nothing(const Reply& reply) {
  if (const auto* unavailable = std::get_if<Unavailable>(&reply)) {
    return unavailable->delivery != Delivery::unknown;
  }
  return std::holds_alternative<Refused>(reply) || std::holds_alternative<NoScript>(reply) ||
         std::holds_alternative<ForcedOut>(reply);
}

/// The node itself said so, over a connection that goes on.
bool answered_with_error(const Unavailable& unavailable) {
  const bool about_the_command =
      unavailable.cause == Cause::server_error || unavailable.cause == Cause::permission;
  return unavailable.delivery == Delivery::refused ||
         (unavailable.delivery == Delivery::unknown && about_the_command);
}

}  // namespace

void ReleaseLedger::release(Instant now, const Grant& grant, NodeSet nodes, Outbox& out) {
  for (NodeIndex node = 0; node < owed_.size(); ++node) {
    if (!nodes.contains(node)) continue;
    Debt& debt = owed_[node][grant.id];
    debt = {.name = grant.name,
            .owner = grant.owner,
            .until = now + grant.lease,
            .may_come_late = grant.may_answer_late.contains(node)};
    send(now, node, grant.id, debt, Form::digest, out);
  }
}

void ReleaseLedger::send(Instant now, NodeIndex node, GrantId grant, Debt& debt, Form form,
                         Outbox& out) {
  debt.sent = true;
  debt.ask_again = false;
  ++under_way_;
  const Tag tag{grant, now, {}, 0, Tag::Kind::release};
  out.send(node, tag, ReleaseCommand{debt.name, debt.owner}, form);
}

void ReleaseLedger::answered(Debt& debt) {
  if (!debt.sent) return;
  debt.sent = false;
  --under_way_;
}

bool ReleaseLedger::on_reply(Instant now, NodeIndex node, const Tag& tag, const Reply& reply,
                             Outbox& out) {
  const auto found = owed_[node].find(tag.grant);
  if (found == owed_[node].end()) return false;
  Debt& debt = found->second;
  answered(debt);
  if (std::holds_alternative<NoScript>(reply)) {
    send(now, node, tag.grant, debt, Form::source, out);
    return true;
  }
  if (const auto* unavailable = std::get_if<Unavailable>(&reply)) {
    debt.ask_again = answered_with_error(*unavailable);
    look_again_by(debt.ask_again ? now + pause : std::max(debt.until, now + pause));
  } else {
    owed_[node].erase(found);
  }
  return false;
}

void ReleaseLedger::on_acquire_reply(NodeIndex node, GrantId grant, const Reply& reply) {
  const auto found = owed_[node].find(grant);
  if (found == owed_[node].end()) return;
  // It has been executed: the release, written behind it, takes it away.
  if (std::holds_alternative<Granted>(reply)) found->second.may_come_late = false;
  if (!left_nothing(reply)) return;
  answered(found->second);
  owed_[node].erase(found);
}

void ReleaseLedger::on_node_up(Instant now, NodeIndex node, Outbox& out) {
  if (planted(Bug::debts_not_repeated)) return;
  for (auto& [grant, debt] : owed_[node]) {
    if (debt.sent) continue;
    // A node that hung for longer than the lease may have executed the acquire just now.
    const bool late = std::exchange(debt.may_come_late, false);
    if (late || now < debt.until) send(now, node, grant, debt, Form::digest, out);
  }
}

void ReleaseLedger::on_deadline(Instant now, Outbox& out) {
  if (now < next_look_) return;
  next_look_ = never;
  for (NodeIndex node = 0; node < owed_.size(); ++node) {
    std::erase_if(owed_[node], [now](const auto& entry) {
      const Debt& debt = entry.second;
      return !debt.sent && !debt.may_come_late && debt.until <= now;
    });
    for (auto& [grant, debt] : owed_[node]) {
      if (debt.sent) continue;
      if (debt.ask_again) {
        send(now, node, grant, debt, Form::digest, out);
      } else if (debt.until > now) {
        look_again_by(std::max(debt.until, now + pause));
      }
    }
  }
}

}  // namespace redlock::engine
