// SPDX-License-Identifier: MIT
#include "engine/release_ledger.hpp"

#include <algorithm>

#include "engine/planted_bug.hpp"

namespace redlock::engine {
namespace {

/// How long to wait before a node that answered a release with an error is asked again.
constexpr Duration ask_again = std::chrono::milliseconds(500);

/// Whether the answer to an acquire shows that nothing of it is on the node.
bool left_nothing(const Reply& reply) {
  if (const auto* unavailable = std::get_if<Unavailable>(&reply)) {
    return unavailable->delivery != Delivery::unknown;
  }
  return std::holds_alternative<Refused>(reply) || std::holds_alternative<NoScript>(reply);
}

}  // namespace

void ReleaseLedger::release(Instant now, const Grant& grant, NodeSet nodes, Outbox& out) {
  for (NodeIndex node = 0; node < owed_.size(); ++node) {
    if (!nodes.contains(node)) continue;
    Debt& debt = owed_[node][grant.id];
    debt = {grant.name, grant.owner, now + grant.lease, false, false};
    send(now, node, grant.id, debt, Form::digest, out);
  }
}

void ReleaseLedger::send(Instant now, NodeIndex node, GrantId grant, Debt& debt, Form form,
                         Outbox& out) {
  debt.sent = true;
  debt.refused = false;
  ++under_way_;
  const Tag tag{grant, now, {}, 0, Tag::Kind::release};
  out.send(node, tag, ReleaseCommand{debt.name, debt.owner}, form);
}

void ReleaseLedger::answered(Debt& debt) {
  if (!debt.sent) return;
  debt.sent = false;
  --under_way_;
}

void ReleaseLedger::on_reply(Instant now, NodeIndex node, const Tag& tag, const Reply& reply,
                             Outbox& out) {
  const auto found = owed_[node].find(tag.grant);
  if (found == owed_[node].end()) return;
  Debt& debt = found->second;
  answered(debt);
  if (std::holds_alternative<NoScript>(reply)) {
    send(now, node, tag.grant, debt, Form::source, out);
  } else if (const auto* unavailable = std::get_if<Unavailable>(&reply)) {
    debt.refused = unavailable->delivery == Delivery::refused;
    look_again_by(debt.refused ? now + ask_again : debt.until);
  } else {
    owed_[node].erase(found);
  }
}

void ReleaseLedger::on_acquire_reply(NodeIndex node, GrantId grant, const Reply& reply) {
  const auto found = owed_[node].find(grant);
  if (found == owed_[node].end() || !left_nothing(reply)) return;
  answered(found->second);
  owed_[node].erase(found);
}

void ReleaseLedger::on_node_up(Instant now, NodeIndex node, Outbox& out) {
  if (planted(Bug::debts_not_repeated)) return;
  for (auto& [grant, debt] : owed_[node]) {
    if (!debt.sent && now < debt.until) send(now, node, grant, debt, Form::digest, out);
  }
}

void ReleaseLedger::on_deadline(Instant now, Outbox& out) {
  if (now < next_look_) return;
  next_look_ = never;
  for (NodeIndex node = 0; node < owed_.size(); ++node) {
    std::erase_if(owed_[node], [now](const auto& entry) {
      return !entry.second.sent && entry.second.until <= now;
    });
    for (auto& [grant, debt] : owed_[node]) {
      if (debt.sent) continue;
      if (debt.refused) send(now, node, grant, debt, Form::digest, out);
      if (!debt.sent) look_again_by(debt.until);
    }
  }
}

}  // namespace redlock::engine
