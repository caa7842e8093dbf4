// SPDX-License-Identifier: MIT
#include "engine/release/releases.hpp"

#include <algorithm>
#include <utility>

#include "engine/acquire/attempt.hpp"
#include "engine/lease/holding.hpp"
#include "engine/rules.hpp"

namespace redlock::engine {
namespace {

/// No lease that is valid for its owner now lasts longer, nor does any heal of it.
std::chrono::milliseconds keep_out(const Terms& terms, std::chrono::milliseconds lease) {
  return std::chrono::ceil<std::chrono::milliseconds>(
      rules::over_everywhere(lease, terms.config().drift_factor));
}

/// Two nodes tell the second waiter when the turn of the first is over: it asks all, and only if
/// the first does not come. Others each time, so that none has more to do than the rest.
NodeSet all_but_two(NodeSet nodes, std::uint32_t count, GrantId grant) {
  NodeSet others = nodes;
  int tell = 0;
  for (std::uint32_t i = 0; i < count && tell < 2; ++i) {
    const auto node = static_cast<NodeIndex>((grant + i) % count);
    if (!nodes.contains(node)) continue;
    others.erase(node);
    ++tell;
  }
  return others;
}

}  // namespace

void Releases::release(Instant now, const Attempt& attempt, const Place& place) {
  const Attempt::Plan& plan = attempt.plan();
  const NodeGrants& nodes = attempt.nodes();
  const ReleaseLedger::OwedGrant owed{.id = plan.grant,
                                      .name = plan.name,
                                      .owner = plan.owner,
                                      .lease = plan.lease,
                                      .may_answer_late = nodes.may_answer_late(),
                                      .awaits_hold = nodes.awaits_hold(),
                                      .place = place};
  if (!nodes.is_shared()) return ledger_.release(now, owed, nodes.may_hold(), out_);
  ledger_.release(now, owed, nodes.ours(), out_);
  ledger_.release_if_granted(now, owed, attempt.unanswered());
}

void Releases::release(Instant now, RequestId request, const Holding& holding) {
  ReleaseLedger::OwedGrant owed{holding.id(),
                                holding.name(),
                                holding.key()->owner,
                                holding.longest_lease(),
                                holding.nodes().may_answer_late(),
                                {},
                                holding.nodes().awaits_hold()};
  NodeSet nodes = holding.nodes().is_shared() ? holding.nodes().ours() : holding.nodes().may_hold();
  owed.tell_first_only =
      all_but_two(nodes & terms_.nodes_that_wake(), terms_.nodes(), holding.id());
  if (holding.taken_up()) {
    // Whoever detached it may have an acquire or heal on its way, also to a node that denied it;
    // and what it was granted may last longer than what is asked for here.
    owed.keep_out = terms_.config().max_lease;
    owed.lease = std::max(owed.lease, owed.keep_out);
    nodes = NodeSet::first(terms_.nodes());
  }
  begin(now, request, owed, nodes, holding.nodes().trusted(now));
}

void Releases::release(Instant now, RequestId request, Name name, OwnerId owner,
                       std::chrono::milliseconds lease) {
  const auto keep_out = std::max(lease, terms_.config().max_lease);
  begin(now, request, {ids_.next(), std::move(name), owner, lease, {}, keep_out},
        NodeSet::first(terms_.nodes()), {});
}

void Releases::begin(Instant now, RequestId request, const ReleaseLedger::OwedGrant& grant,
                     NodeSet nodes, NodeSet confirmed) {
  ledger_.release(now, grant, nodes, out_);
  if (request == 0) return;
  removals_.add(grant.id, Removal(terms_, request, nodes, confirmed, now));
  after_input(grant.id);
}

void Releases::force(Instant now, RequestId request, Name name, OwnerId owner,
                     std::chrono::milliseconds lease) {
  const GrantId id = ids_.next();
  const ForceCommand command{std::move(name), owner, keep_out(terms_, lease)};
  for (NodeIndex node = 0; node < terms_.nodes(); ++node) {
    out_.send(node, Tag{id, now, {}, 0, Tag::Kind::force}, command, Form::source);
  }
  removals_.add(id, Removal(terms_, request, now));
  removals_.touched(id);
}

void Releases::on_reply(Instant now, NodeIndex node, const Tag& tag, const Reply& reply) {
  const bool again =
      tag.kind == Tag::Kind::release && ledger_.on_reply(now, node, tag, reply, out_);
  Removal* const removal = removals_.find(tag.grant);
  if (removal == nullptr || again) return;  // nobody waits, or its end has been told
  removal->on_reply(now, node, reply);
  after_input(tag.grant);
}

void Releases::after_input(GrantId grant) {
  auto result = removals_.find(grant)->result();
  if (!result) return removals_.touched(grant);
  out_.put(std::move(*result));
  removals_.erase(grant);
}

void Releases::on_deadline(Instant now) {
  while (const auto grant = removals_.due(now)) {
    removals_.find(*grant)->on_deadline(now);
    after_input(*grant);
  }
  ledger_.on_deadline(now, out_);
}

}  // namespace redlock::engine
