// SPDX-License-Identifier: MIT
#include "engine/lease/node_grants.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <variant>

#include "engine/rules.hpp"

namespace redlock::engine {

NodeGrants::NodeGrants(NodeSet nodes, bool asked) {
  if (nodes.width() > few) grants_ = Many(nodes.width());
  const NodeGrant first(asked ? Possession::asked : Possession::unknown);
  NodeIndex node = 0;
  for (NodeGrant& grant : all()) grant = nodes.contains(node++) ? first : nothing;
}

NodeGrant& NodeGrants::make_room(NodeIndex node) {
  Many more(node + 1, nothing);
  std::ranges::copy(all(), more.begin());
  grants_ = std::move(more);
  return all()[node];
}

void NodeGrants::confirm(NodeIndex node, Instant until) {
  NodeGrant& grant = at(node);
  if (is_shared(node)) return;
  const bool was_ours = grant.possession == Possession::ours;
  // Messages only ever lengthen a lease, so an older, longer confirmation stays true.
  grant.set_until(was_ours ? std::max(grant.until(), until) : until);
  grant.possession = Possession::ours;
  grant.in_quarantine = false;
  grant.forgotten = false;
}

void NodeGrants::shorten(NodeIndex node, Duration by) {
  const Instant until = (*this)[node].until();
  if (until != Instant::min()) at(node).set_until(until - by);
}

void NodeGrants::limit(NodeIndex node, Instant until) {
  if ((*this)[node].until() > until) at(node).set_until(until);
}

void NodeGrants::withdraw(NodeIndex node) {
  if (node >= all().size()) return;
  NodeGrant& grant = at(node);
  if (!rules::denial_withdraws(grant.possession == Possession::ours)) return;
  if (is_shared(node)) return;
  grant.possession = Possession::not_ours;
  grant.set_until(Instant::min());
  grant.forgotten = false;
}

void NodeGrants::share(NodeIndex node) {
  withdraw(node);
  at(node).possession = Possession::shared;
}

bool NodeGrants::is_shared() const {
  return in(Possession::shared) != NodeSet();
}

template <typename Condition>
NodeSet NodeGrants::where(const Condition& condition) const {
  NodeSet set;
  NodeIndex node = 0;
  for (const NodeGrant& grant : all()) {
    if (condition(grant)) set.insert(node);
    ++node;
  }
  return set;
}

NodeSet NodeGrants::in(Possession possession) const {
  return where([&](const NodeGrant& grant) { return grant.possession == possession; });
}

void NodeGrants::hold_sent(NodeIndex node) {
  NodeGrant& grant = at(node);
  if (grant.holds_awaited < NodeGrant::uncounted) ++grant.holds_awaited;
}

/// What is executed ends every wait, as it was written behind the others. What was never sent says
/// nothing of those before it, and adds nothing: a node that is down is not waited for.
void NodeGrants::hold_answered(NodeIndex node, const Reply& reply, bool last) {
  NodeGrant& grant = at(node);
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
  NodeGrant& grant = at(node);
  const bool counted = grant.holds_awaited < NodeGrant::uncounted;
  if (counted && grant.holds_awaited > 0) grant.hold_is_late = true;
}

void NodeGrants::withdraw_forgotten() {
  for (NodeIndex node = 0; node < all().size(); ++node) {
    if ((*this)[node].forgotten) withdraw(node);
  }
}

Instant NodeGrants::valid_until(const Majorities& majorities) const {
  const auto grants = all();
  const auto of_quorum = [&](const Majority& majority, NodeSet nodes) {
    const NodeSet counted = majority.of & nodes;
    std::array<Instant, NodeSet::max_nodes> until;
    std::uint32_t count = 0;
    for (NodeIndex node = 0; node < grants.size(); ++node) {
      if (counted.contains(node)) until[count++] = grants[node].until();
    }
    // Counted only where it matters: this runs with every confirmation.
    const std::uint32_t connected = rules::unreached_nodes_count() ? 0 : may_hold().size();
    return rules::valid_until({until.data(), count}, rules::quorum(majority.quorum, connected));
  };
  return majorities.best(ours(), of_quorum);
}

NodeSet NodeGrants::can_be_ours() const {
  return where([](const NodeGrant& grant) {
    return grant.possession != Possession::healing && grant.possession != Possession::not_ours &&
           grant.possession != Possession::shared;
  });
}

NodeSet NodeGrants::trusted(Instant now) const {
  return where([now](const NodeGrant& grant) {
    return grant.possession == Possession::ours && now < grant.until();
  });
}

NodeSet NodeGrants::may_hold() const {
  return where([](const NodeGrant& grant) {
    const bool may_have_it =
        grant.possession != Possession::not_ours && grant.possession != Possession::shared;
    return rules::is_owed_a_release(may_have_it, grant.possession == Possession::ours);
  });
}

NodeSet NodeGrants::may_answer_late() const {
  return where([](const NodeGrant& grant) {
    const bool hold = grant.holds_awaited > 0 || grant.hold_is_out;
    return grant.may_take() || rules::late_hold_is_awaited(hold);
  });
}

NodeSet NodeGrants::awaits_hold() const {
  return where([](const NodeGrant& grant) {
    return grant.holds_awaited == 1 && !grant.hold_is_out && !grant.may_take();
  });
}

}  // namespace redlock::engine
