// SPDX-License-Identifier: MIT
#include "engine/lease/node_grants.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <variant>

#include "engine/rules.hpp"

namespace redlock::engine {

NodeGrants::NodeGrants(std::uint32_t slots, NodeSet nodes, bool asked)
    : size_(static_cast<std::uint8_t>(slots)) {
  const NodeGrant first(asked ? Possession::asked : Possession::unknown);
  if (slots > few) grants_ = Many(slots);
  for (NodeIndex node = 0; node < slots; ++node) {
    (*this)[node] = nodes.contains(node) ? first : NodeGrant(Possession::not_ours);
  }
}

void NodeGrants::confirm(NodeIndex node, Instant until) {
  NodeGrant& grant = (*this)[node];
  if (is_shared(node)) return;
  const bool was_ours = grant.possession == Possession::ours;
  // Messages only ever lengthen a lease, so an older, longer confirmation stays true.
  grant.set_until(was_ours ? std::max(grant.until(), until) : until);
  grant.possession = Possession::ours;
  grant.in_quarantine = false;
  grant.forgotten = false;
}

void NodeGrants::shorten(NodeIndex node, Duration by) {
  NodeGrant& grant = (*this)[node];
  if (grant.until() != Instant::min()) grant.set_until(grant.until() - by);
}

void NodeGrants::limit(NodeIndex node, Instant until) {
  NodeGrant& grant = (*this)[node];
  grant.set_until(std::min(grant.until(), until));
}

void NodeGrants::withdraw(NodeIndex node) {
  NodeGrant& grant = (*this)[node];
  if (!rules::denial_withdraws(grant.possession == Possession::ours)) return;
  if (is_shared(node)) return;
  grant.possession = Possession::not_ours;
  grant.set_until(Instant::min());
  grant.forgotten = false;
}

void NodeGrants::share(NodeIndex node) {
  withdraw(node);
  (*this)[node].possession = Possession::shared;
}

bool NodeGrants::is_shared() const {
  return in(Possession::shared) != NodeSet();
}

NodeSet NodeGrants::in(Possession possession) const {
  NodeSet set;
  for (NodeIndex node = 0; node < size(); ++node) {
    if ((*this)[node].possession == possession) set.insert(node);
  }
  return set;
}

void NodeGrants::hold_sent(NodeIndex node) {
  NodeGrant& grant = (*this)[node];
  if (grant.holds_awaited < NodeGrant::uncounted) ++grant.holds_awaited;
}

/// What is executed ends every wait, as it was written behind the others. What was never sent says
/// nothing of those before it, and adds nothing: a node that is down is not waited for.
void NodeGrants::hold_answered(NodeIndex node, const Reply& reply, bool last) {
  NodeGrant& grant = (*this)[node];
  if (grant.holds_awaited < NodeGrant::uncounted) {
    if (grant.holds_awaited > 0) --grant.holds_awaited;
  } else if (last) {
    grant.holds_awaited = 0;
  }
  if (grant.holds_awaited == 0) grant.hold_is_late = false;
  if (executed(reply)) {
    grant.hold_is_out = false;
  } else if (std::get<Unavailable>(reply).delivery == Delivery::unknown) {
    grant.hold_is_out = true;
  }
}

/// So many that they are not counted are asked again: otherwise nobody knew which is the last.
void NodeGrants::hold_timed_out(NodeIndex node) {
  NodeGrant& grant = (*this)[node];
  const bool counted = grant.holds_awaited < NodeGrant::uncounted;
  if (counted && grant.holds_awaited > 0) grant.hold_is_late = true;
}

void NodeGrants::withdraw_forgotten() {
  for (NodeIndex node = 0; node < size(); ++node) {
    if ((*this)[node].forgotten) withdraw(node);
  }
}

Instant NodeGrants::valid_until(const Majorities& majorities) const {
  const auto of_quorum = [this](const Majority& majority, NodeSet nodes) {
    std::array<Instant, NodeSet::max_nodes> until;
    std::uint32_t count = 0;
    for (NodeIndex node = 0; node < size(); ++node) {
      if ((majority.of & nodes).contains(node)) until[count++] = (*this)[node].until();
    }
    const std::uint32_t quorum = rules::quorum(majority.quorum, may_hold().size());
    return rules::valid_until({until.data(), count}, quorum);
  };
  return majorities.best(ours(), of_quorum);
}

NodeSet NodeGrants::can_be_ours() const {
  NodeSet set;
  for (NodeIndex node = 0; node < size(); ++node) {
    const Possession possession = (*this)[node].possession;
    if (possession != Possession::healing && possession != Possession::not_ours &&
        possession != Possession::shared) {
      set.insert(node);
    }
  }
  return set;
}

NodeSet NodeGrants::trusted(Instant now) const {
  NodeSet set;
  for (NodeIndex node = 0; node < size(); ++node) {
    const NodeGrant& grant = (*this)[node];
    if (grant.possession == Possession::ours && now < grant.until()) set.insert(node);
  }
  return set;
}

NodeSet NodeGrants::may_hold() const {
  NodeSet set;
  for (NodeIndex node = 0; node < size(); ++node) {
    const Possession possession = (*this)[node].possession;
    const bool may_have_it = possession != Possession::not_ours && possession != Possession::shared;
    if (rules::is_owed_a_release(may_have_it, possession == Possession::ours)) set.insert(node);
  }
  return set;
}

NodeSet NodeGrants::may_answer_late() const {
  NodeSet set;
  for (NodeIndex node = 0; node < size(); ++node) {
    const NodeGrant& grant = (*this)[node];
    const bool takes =
        grant.possession == Possession::asked || grant.possession == Possession::healing;
    const bool hold = grant.holds_awaited > 0 || grant.hold_is_out;
    if (takes || rules::late_hold_is_awaited(hold)) set.insert(node);
  }
  return set;
}

NodeSet NodeGrants::awaits_hold() const {
  NodeSet set;
  for (NodeIndex node = 0; node < size(); ++node) {
    const NodeGrant& grant = (*this)[node];
    const bool takes =
        grant.possession == Possession::asked || grant.possession == Possession::healing;
    if (grant.holds_awaited == 1 && !grant.hold_is_out && !takes) set.insert(node);
  }
  return set;
}

}  // namespace redlock::engine
