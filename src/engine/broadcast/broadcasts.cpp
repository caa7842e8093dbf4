// SPDX-License-Identifier: MIT
#include "engine/broadcast/broadcasts.hpp"

#include <cassert>
#include <utility>
#include <variant>

namespace redlock::engine {

void Broadcast::on_reply(NodeIndex node, const Reply& reply) {
  if (!pending_.contains(node)) return;
  pending_.erase(node);
  replies_[node] = reply;
}

void Broadcast::on_deadline(Instant now) {
  if (now < deadline_) return;
  for (NodeIndex node = 0; node < replies_.size(); ++node) {
    if (pending_.contains(node)) replies_[node] = no_answer();
  }
  pending_ = {};
}

void Broadcasts::begin(Instant now, RequestId request, Tag::Kind kind, const Command& command) {
  assert(is_broadcast(kind));
  const GrantId id = ids_.next();
  for (NodeIndex node = 0; node < electorate_.slots(); ++node) {
    if (!electorate_.nodes().contains(node)) continue;
    out_.send(node, Tag{id, now, {}, 0, kind}, command, Form::source);
  }
  under_way_.add(id, Broadcast(request, electorate_, now));
  under_way_.touched(id);
}

void Broadcasts::on_reply(NodeIndex node, const Tag& tag, const Reply& reply) {
  Broadcast* const broadcast = under_way_.find(tag.grant);
  if (broadcast == nullptr) return;  // it is over
  broadcast->on_reply(node, reply);
  after_input(tag.grant);
}

void Broadcasts::on_deadline(Instant now) {
  while (const auto id = under_way_.due(now)) {
    under_way_.find(*id)->on_deadline(now);
    after_input(*id);
  }
}

void Broadcasts::after_input(GrantId id) {
  Broadcast* const broadcast = under_way_.find(id);
  if (!broadcast->is_over()) return under_way_.touched(id);
  out_.put(broadcast->take_result());
  under_way_.erase(id);
}

}  // namespace redlock::engine
