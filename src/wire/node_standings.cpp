// SPDX-License-Identifier: MIT
#include "wire/node_standings.hpp"

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

namespace redlock::wire {
namespace {

/// Whether the clock that moved is the node's or ours is known when all clocks were read again.
constexpr engine::Duration time_to_read_clocks = std::chrono::seconds(1);

/// Whether the node gives this error to every client, whatever the name of the lock.
bool is_of_whole_node(Cause cause) {
  switch (cause) {
    case Cause::loading:
    case Cause::busy:
    case Cause::write_error:
    case Cause::out_of_memory:
    case Cause::read_only:
    case Cause::master_down:
    case Cause::too_few_replicas:
      return true;
    default:
      return false;
  }
}

/// A hold writes nothing that needs memory, so it may succeed where the node grants no lock.
bool takes_a_lock(const engine::Tag& tag) {
  return tag.kind == engine::Tag::Kind::acquire || tag.kind == engine::Tag::Kind::heal;
}

}  // namespace

void NodeStandings::on_link_up(engine::NodeIndex node, std::string warnings) {
  nodes_[node].connected = true;
  nodes_[node].warnings = std::move(warnings);
  nodes_[node].refusal.reset();
}

void NodeStandings::on_link_down(engine::NodeIndex node, const engine::Unavailable& why) {
  Node& state = nodes_[node];
  state.connected = false;
  state.refusal.reset();
  // The cause that ended the connection may have been reported as an answer to a command.
  const bool told =
      state.down && state.down->cause == why.cause && state.down->detail == why.detail;
  if (!told) tell_down(node, why);
}

void NodeStandings::on_reply(engine::NodeIndex node, const engine::Tag& tag,
                             const engine::Reply& reply) {
  Node& state = nodes_[node];
  if (const auto* const why = std::get_if<engine::Unavailable>(&reply)) {
    if (state.connected && is_of_whole_node(why->cause)) state.refusal = *why;
  } else if (takes_a_lock(tag) && !std::holds_alternative<engine::NoScript>(reply)) {
    state.refusal.reset();
  }
}

void NodeStandings::judge(engine::Instant now, engine::NodeIndex node,
                          std::optional<engine::Unavailable> objection) {
  Node& state = nodes_[node];
  if (!state.connected) return;  // which was told with its reason
  const bool moved = objection && objection->cause == Cause::clock_moved;
  state.clock_moved = moved ? std::min(state.clock_moved, now) : engine::never;
  if (moved && now - state.clock_moved < time_to_read_clocks) return;
  if (!objection) objection = state.refusal;
  if (objection) {
    // The remaining time is part of the detail, and its change is no news.
    if (state.down && state.down->cause == objection->cause) return;
    if (!state.warnings.empty()) {
      objection->detail += (objection->detail.empty() ? "" : "; ") + state.warnings;
    }
    tell_down(node, *objection);
  } else if (!state.up || *state.up != state.warnings) {
    state.down.reset();
    state.up = state.warnings;
    host_.on_node_up(node, state.warnings);
  }
}

void NodeStandings::tell_down(engine::NodeIndex node, const engine::Unavailable& why) {
  nodes_[node].up.reset();
  nodes_[node].down = why;
  host_.on_node_down(node, why);
}

}  // namespace redlock::wire
