// SPDX-License-Identifier: MIT
#include "engine/release/releaser.hpp"

#include <algorithm>
#include <utility>

#include "engine/acquire/attempt.hpp"
#include "engine/lease/held_lease.hpp"
#include "engine/rules.hpp"

namespace redlock::engine {
namespace {

/// Two nodes tell the second waiter when the turn of the first is over: it asks all then. Others
/// each time, so that none has more to do than the rest.
NodeSet all_but_two(NodeSet nodes, GrantId grant) {
  constexpr std::uint64_t two = 2;
  const std::uint64_t count = nodes.size();
  NodeSet others = nodes;
  std::uint64_t at = 0;
  for (NodeIndex node = 0; at < count; ++node) {
    if (!nodes.contains(node)) continue;
    if ((grant + at++) % count < two) others.erase(node);
  }
  return others;
}

}  // namespace

void Releaser::release(Instant now, const Attempt& attempt, const Place& place) {
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
  ledger_.release_if_granted(now, owed, attempt.asked());
}

void Releaser::release(Instant now, RequestId request, const HeldLease& lease) {
  ReleaseLedger::OwedGrant owed{lease.id(),
                                lease.name(),
                                lease.key()->owner,
                                lease.longest_lease(),
                                lease.nodes().may_answer_late(),
                                {},
                                lease.nodes().awaits_hold()};
  NodeSet nodes = lease.nodes().is_shared() ? lease.nodes().ours() : lease.nodes().may_hold();
  // Which nodes can wake the waiters of other clients is not known: those that can wake this client
  // stand for them.
  owed.tell_first_only = all_but_two(nodes & electorate_.nodes_that_wake(), lease.id());
  if (lease.taken_up()) {
    // Whoever detached it may have an acquire or heal on its way, also to a node that denied it;
    // and what it was granted may last longer than what is asked for here.
    owed.keep_out = electorate_.longest_lease();
    owed.lease = std::max(owed.lease, owed.keep_out);
    nodes = electorate_.nodes();
  }
  // Where another process has this owner, a node that may still grant is released when it did.
  const bool if_granted = lease.nodes().is_shared() && !lease.taken_up();
  const NodeSet awaited = if_granted ? lease.nodes().asked() : NodeSet();
  begin(now, request, owed, nodes, lease.nodes().trusted(now), awaited);
  ledger_.release_if_granted(now, owed, awaited);
}

void Releaser::release(Instant now, RequestId request, Name name, OwnerId owner) {
  const auto longest = electorate_.longest_lease();
  begin(now, request, {ids_.next(), std::move(name), owner, longest, {}, longest},
        electorate_.nodes(), {});
}

void Releaser::begin(Instant now, RequestId request, const ReleaseLedger::OwedGrant& grant,
                     NodeSet nodes, NodeSet confirmed, NodeSet awaited) {
  ledger_.release(now, grant, nodes, out_);
  if (request == 0) return;
  tallies_.add(grant.id, ReleaseTally(electorate_, request, nodes, confirmed, awaited, now));
  after_input(grant.id);
}

void Releaser::on_reply(Instant now, NodeIndex node, const Tag& tag, const Reply& reply) {
  const bool again = ledger_.on_reply(now, node, tag, reply, out_);
  ReleaseTally* const tally = tallies_.find(tag.grant);
  if (tally == nullptr || again) return;  // nobody waits, or its end has been told
  tally->on_reply(now, node, reply);
  after_input(tag.grant);
}

void Releaser::after_input(GrantId grant) {
  auto result = tallies_.find(grant)->result();
  if (!result) return tallies_.touched(grant);
  out_.put(std::move(*result));
  tallies_.erase(grant);
}

void Releaser::on_deadline(Instant now) {
  while (const auto grant = tallies_.due(now)) {
    tallies_.find(*grant)->on_deadline(now);
    after_input(*grant);
  }
  ledger_.on_deadline(now, out_);
}

}  // namespace redlock::engine
