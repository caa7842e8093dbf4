// SPDX-License-Identifier: MIT
#include "engine/engine.hpp"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <utility>

#include "engine/rules.hpp"

namespace redlock::engine {
namespace {

/// Any number can come out of a damaged clock.
constexpr std::int64_t absurd_us = std::int64_t{1} << 60;

}  // namespace

Engine::Engine(const Config& config, RandomSource& random)
    : quarantines_(config),
      clocks_(config, quarantines_.sets()),
      electorate_(config, quarantines_, clocks_),
      broadcasts_(electorate_, ids_, out_),
      releaser_(electorate_, ids_, out_),
      leases_(electorate_, ids_, releaser_, out_),
      acquirer_(electorate_, random, ids_, leases_, releaser_, out_),
      owners_(electorate_, random, acquirer_, leases_, out_),
      majorities_(electorate_.majorities()) {}

void Engine::take(Instant now, RequestId request, TakeRequest what) {
  owners_.take(now, request, std::move(what));
  admit(now);
}

GrantId Engine::leave(Instant now, RequestId request, const OwnerKey& key) {
  const GrantId released = owners_.leave(now, request, key);
  admit(now);
  return released;
}

void Engine::cancel(Instant now, RequestId request, Errc why) {
  if (owners_.cancel(now, request, why)) {
    while (owners_.advance(now)) {
    }
  } else if (!acquirer_.cancel(now, request, why)) {
    leases_.cancel(request, why);
  }
  // A client that closes ends its waiting calls, too: none of them is begun in between.
  if (why != Errc::closed) admit(now);
}

void Engine::leave(Instant now, GrantId grant) {
  leases_.leave(now, grant);
  admit(now);
}

void Engine::release(Instant now, RequestId request, GrantId grant) {
  acquirer_.release(now, request, grant);
  admit(now);
}

void Engine::force_release(Instant now, RequestId request, Name name, OwnerId owner) {
  // No lease that is valid for its owner now lasts longer, nor does any heal of it.
  const auto longest = electorate_.longest_lease();
  const auto keep_out = std::chrono::ceil<std::chrono::milliseconds>(
      rules::over_everywhere(longest, electorate_.config().drift_factor));
  broadcast(now, request, Tag::Kind::force,
            ForceCommand{std::move(name), owner, keep_out, longest});
}

void Engine::give_up(Instant now, GrantId grant, LossReason reason) {
  leases_.give_up(now, grant, reason);
  admit(now);
}

void Engine::detach(Instant now, GrantId grant) {
  leases_.detach(grant);
  admit(now);
}

void Engine::on_reply(Instant now, NodeIndex node, const Tag& tag, const Reply& reply) {
  assert(node < electorate_.slots());
  if (is_broadcast(tag.kind)) return broadcasts_.on_reply(node, tag, reply);
  if (tag.kind == Tag::Kind::release) return releaser_.on_reply(now, node, tag, reply);
  if (tag.kind == Tag::Kind::leave) return;
  const bool acquires = tag.kind == Tag::Kind::acquire || tag.kind == Tag::Kind::heal;
  if (acquires) {
    releaser_.on_acquire_reply(now, node, tag, reply);
    quarantines_.on_acquire_reply(now, node, reply);
  }
  const bool wanted =
      acquirer_.on_reply(now, node, tag, reply) || leases_.on_reply(now, node, tag, reply);
  if (tag.kind == Tag::Kind::hold) leases_.on_hold_ended(now, node, tag, reply);
  // Otherwise the message concerns a grant that is over, whose release is written behind it.
  if (!wanted && !acquires) releaser_.on_hold_reply(now, node, tag, reply);
  admit(now);
}

void Engine::follow_members(Instant now) {
  bool changed = electorate_.majorities() != majorities_;
  if (changed) {
    leases_.majorities_changed();
    majorities_ = electorate_.majorities();
  }
  NodeSet strangers;
  for (NodeIndex node = 0; node < electorate_.slots(); ++node) {
    if (electorate_.stranger(node)) strangers.insert(node);
  }
  const NodeSet limited = std::exchange(limited_, strangers);
  for (NodeIndex node = 0; node < electorate_.slots(); ++node) {
    if (!(strangers - limited).contains(node)) continue;
    changed = true;
    acquirer_.node_removed(node);
    leases_.node_removed(node);
  }
  for (auto& [node, address] : quarantines_.sets().relocations()) {
    changed = true;
    quarantines_.relocate(node, address);
    acquirer_.node_removed(node);  // it may show no marker, and so be no stranger
    leases_.node_removed(node);
    out_.put(MoveNode{node, std::move(address)});
  }
  if (!changed) return;
  acquirer_.members_changed(now);
  admit(now);
}

void Engine::on_moved(Instant now, NodeIndex node) {
  clocks_.forget(node);
  acquirer_.floors().forget(node);
  if (!electorate_.nodes().contains(node)) releaser_.forget(node);
  quarantines_.forget(node);
  follow_members(now);
}

void Engine::on_node_up(Instant now, NodeIndex node) {
  electorate_.connected(now, node);
  releaser_.on_node_up(now, node);
  acquirer_.on_node_up(now, node);
  admit(now);
}

void Engine::on_node_clock(Instant now, NodeIndex node, std::int64_t unix_us, Duration uncertainty,
                           Duration round_trip) {
  unix_us = std::clamp(unix_us, -absurd_us, absurd_us);
  // A node that was busy has most likely read its clock in the end, right before it answered.
  const Duration early = uncertainty - round_trip / 2;
  acquirer_.floors().on_node_clock(now, node, unix_us - early / std::chrono::microseconds(1),
                                   electorate_.quorum());
  acquirer_.on_round_trip(node, round_trip);
  quarantines_.on_sign_of_life(now, node);
  if (!rules::clocks_are_watched()) return;
  const auto found = clocks_.on_reading(now, node, unix_us, uncertainty);
  if (const auto& moved = found.movement) {
    if (moved->ask_all) out_.put(ReadClocks{});
    out_.put(NodeClockMoved{node, moved->by, moved->ours});
  }
  for (const NodeIndex blamed : found.to_note) {
    out_.put(NoteClock{blamed, clocks_.trusted_from(blamed) - now});
  }
  if (!rules::a_clock_ahead_shortens()) return;
  for (const auto& earlier : found.earlier) {
    acquirer_.node_ran_ahead(earlier.node, earlier.by);
    leases_.node_ran_ahead(now, earlier.node, earlier.by);
    admit(now);
  }
}

Instant Engine::deadline() const {
  return std::min({acquirer_.deadline(), leases_.deadline(), releaser_.deadline(),
                   broadcasts_.deadline(), quarantines_.deadline(), owners_.deadline()});
}

void Engine::on_deadline(Instant now) {
  acquirer_.on_deadline(now);
  leases_.on_deadline(now);
  releaser_.on_deadline(now);
  broadcasts_.on_deadline(now);
  quarantines_.on_deadline(now, out_);
  owners_.on_deadline(now);
  admit(now);
}

void Engine::admit(Instant now) {
  do {
    acquirer_.admit(now);
    leases_.admit(now);
  } while (owners_.advance(now));
}

}  // namespace redlock::engine
