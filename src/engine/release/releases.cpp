// SPDX-License-Identifier: MIT
#include "engine/release/releases.hpp"

#include <algorithm>
#include <utility>

#include "engine/acquire/attempt.hpp"
#include "engine/lease/holding.hpp"

namespace redlock::engine {

void Releases::release(Instant now, const Attempt& attempt) {
  const Attempt::Plan& plan = attempt.plan();
  const NodeGrants& nodes = attempt.nodes();
  const ReleaseLedger::Grant owed{
      plan.grant, plan.name,          plan.owner, plan.lease, nodes.may_answer_late(),
      {},         nodes.awaits_hold()};
  if (!attempt.owner_is_shared()) return ledger_.release(now, owed, nodes.may_hold(), out_);
  ledger_.release(now, owed, attempt.granted(), out_);
  ledger_.release_if_granted(now, owed, attempt.unanswered());
}

void Releases::release(Instant now, RequestId request, const Holding& holding) {
  const Holding::Plan& plan = holding.plan();
  ReleaseLedger::Grant owed{plan.grant,
                            plan.name,
                            plan.owner,
                            holding.longest_lease(),
                            holding.nodes().may_answer_late(),
                            {},
                            holding.nodes().awaits_hold()};
  NodeSet nodes = holding.nodes().may_hold();
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

void Releases::begin(Instant now, RequestId request, const ReleaseLedger::Grant& grant,
                     NodeSet nodes, NodeSet confirmed) {
  ledger_.release(now, grant, nodes, out_);
  if (request == 0) return;
  releasings_.add(grant.id, Releasing(terms_, request, nodes, confirmed, now));
  after_releasing_input(grant.id);
}

void Releases::force(Instant now, RequestId request, Name name, OwnerId owner,
                     std::chrono::milliseconds lease) {
  const GrantId id = ids_.next();
  forcings_.add(id, Forcing(terms_, {id, request, std::move(name), owner, lease}, now, out_));
  forcings_.touched(id);
}

void Releases::on_release_reply(Instant now, NodeIndex node, const Tag& tag, const Reply& reply) {
  const bool again = ledger_.on_reply(now, node, tag, reply, out_);
  Releasing* const releasing = releasings_.find(tag.grant);
  if (releasing == nullptr || again) return;
  releasing->on_reply(now, node, reply);
  after_releasing_input(tag.grant);
}

void Releases::after_releasing_input(GrantId grant) {
  const Releasing* const releasing = releasings_.find(grant);
  const auto outcome = releasing->outcome();
  if (!outcome) return releasings_.touched(grant);
  out_.put(Finish{releasing->request(), ReleaseDone{*outcome}});
  releasings_.erase(grant);
}

void Releases::on_force_reply(NodeIndex node, const Tag& tag, const Reply& reply) {
  Forcing* const forcing = forcings_.find(tag.grant);
  if (forcing == nullptr) return;  // its end has been told
  forcing->on_reply(node, reply);
  after_forcing_input(tag.grant);
}

void Releases::after_forcing_input(GrantId id) {
  const Forcing& forcing = *forcings_.find(id);
  auto outcome = forcing.outcome();
  if (!outcome) return forcings_.touched(id);
  out_.put(Finish{forcing.request(), std::move(*outcome)});
  forcings_.erase(id);
}

Instant Releases::deadline() const {
  return std::min({releasings_.deadline(), forcings_.deadline(), ledger_.deadline()});
}

void Releases::on_deadline(Instant now) {
  while (const auto grant = releasings_.due(now)) {
    releasings_.find(*grant)->on_deadline(now);
    after_releasing_input(*grant);
  }
  while (const auto id = forcings_.due(now)) {
    forcings_.find(*id)->on_deadline(now);
    after_forcing_input(*id);
  }
  ledger_.on_deadline(now, out_);
}

}  // namespace redlock::engine
