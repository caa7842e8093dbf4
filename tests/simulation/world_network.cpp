// SPDX-License-Identifier: MIT
// Connections and what passes over them. The client's side behaves as the io layer does: broken
// connections answer what was outstanding, silent ones are given up, a new one first kills the old.
#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "engine/planted_bug.hpp"
#include "simulation/words.hpp"
#include "simulation/world.hpp"

namespace redlock::simulation {
namespace {

using engine::Bug;
using engine::planted;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr Duration given_up_after = milliseconds(1'000);
constexpr Duration connect_within = milliseconds(1'000);
constexpr Duration most_stalled = milliseconds(2'000);

std::string run_of(Instant started) {
  return std::to_string(started.time_since_epoch().count());
}

}  // namespace

Duration World::delay(std::uint32_t node) {
  Duration delay = plan_.delay_min + states_[node].slow;
  // Little jitter is common, much of it rare.
  const Duration jitter = plan_.delay_jitter / (1 + random_.below(64));
  delay += jitter / (1 + random_.below(8));
  if (random_.chance(plan_.slow_per_mille)) {
    delay += random_.between(Duration::zero(), plan_.engine.node_timeout * 3 / 2);
  }
  return delay;
}

void World::push_to_node(std::uint32_t id, Wire::Request request) {
  Wire& wire = wires_[id];
  wire.to_node.push_back(std::move(request));
  wire.last_at_node = std::max(wire.last_at_node, now_ + delay(wire.node));
  at(wire.last_at_node, Event::What::at_node, id);
}

void World::push_to_client(std::uint32_t id, Wire::Answer answer) {
  Wire& wire = wires_[id];
  wire.to_client.push_back(std::move(answer));
  wire.last_at_client = std::max(wire.last_at_client, now_ + delay(wire.node));
  at(wire.last_at_client, Event::What::at_client, id);
}

void World::packet_at_node(std::uint32_t id) {
  Wire& wire = wires_[id];
  if (wire.to_node.empty() || wire.dead) return;
  if (now_ < wire.stalled_until) return at(wire.stalled_until, Event::What::at_node, id);
  if (clients_[wire.client].links[wire.node].cut_to_node > 0) {
    ++wire.waiting_to_node;
  } else if (states_[wire.node].hung > 0) {
    states_[wire.node].waiting.push_back(id);
  } else {
    process_at_node(id);
  }
}

void World::process_at_node(std::uint32_t id) {
  Wire& wire = wires_[id];
  if (wire.to_node.empty()) return;
  const Wire::Request request = std::move(wire.to_node.front());
  wire.to_node.pop_front();
  if (!wire.node_open) {
    if (!states_[wire.node].unreachable) {
      push_to_client(id, {.kind = Wire::Answer::Kind::reset, .tag = {}, .reply = {}});
    }
    return;
  }
  if (request.handshake) return shake_hands(id, request);
  SimNode& node = nodes_[wire.node];
  if (request.time) {
    return push_to_client(id, {.kind = Wire::Answer::Kind::time,
                               .tag = {},
                               .reply = {},
                               .clock_us = node.now_us(now_),
                               .asked = request.asked,
                               .ahead = ahead_of(wire.client, wire.node),
                               .world = now_,
                               .astray = node.wall.read(now_) - now_});
  }
  const engine::Reply reply = run_at_node(wire, request.send);
  note(1, id, reply.index(), [&] {
    return fmt::format("node {} runs of client {}: {} -> {}", wire.node, wire.client,
                       in_words(request.send), in_words(reply));
  });
  invariants_.executed(now_, wire.node, request.send.command, reply);
  // What is forced out may be followed by somebody's key of another type.
  const auto* force = std::get_if<engine::ForceCommand>(&request.send.command);
  const bool deletes = force != nullptr && std::holds_alternative<engine::ReleasedHere>(reply);
  if (deletes && plan_.kind == WorldKind::forced && random_.chance(500)) {
    node.model.put_foreign(*force->name);
  }
  push_to_client(id, {.tag = request.send.tag, .reply = reply});
}

/// The connection says with each acquire what the marker named when it began.
engine::Reply World::run_at_node(const Wire& wire, const engine::Send& send) {
  SimNode& node = nodes_[wire.node];
  const auto* acquire = std::get_if<engine::AcquireCommand>(&send.command);
  if (acquire != nullptr && acquire->marker_wanted && node.model.has_marker() &&
      node.model.marker() != wire.set && node.model.ailment() == NodeModel::Ailment::none) {
    return engine::Unavailable{Cause::incompatible, engine::Delivery::refused, "OTHERSET"};
  }
  return node.model.execute(send.command, send.form, node.now_ms(now_));
}

engine::NodeFacts World::facts_of(std::uint32_t node) const {
  const NodeModel& model = nodes_[node].model;
  return {.marker = model.has_marker(),
          .durable = plan_.durable,
          .promoted = false,
          .uptime = now_ - states_[node].started,
          .run = run_of(states_[node].started),
          .set = model.marker().value_or("")};
}

void World::shake_hands(std::uint32_t id, const Wire::Request& request) {
  Wire& wire = wires_[id];
  SimNode& node = nodes_[wire.node];
  const auto ailment = node.model.ailment();
  if (ailment == NodeModel::Ailment::busy || ailment == NodeModel::Ailment::loading) {
    return push_to_client(id, {.kind = Wire::Answer::Kind::turned_away, .tag = {}, .reply = {}});
  }
  if (!planted(Bug::replaced_connection_left_alive)) {
    for (const std::uint32_t old : request.kill) close_at_node(old);
  }
  wire.set = node.model.marker();
  node.model.load_scripts();
  push_to_client(id, {.kind = Wire::Answer::Kind::welcome,
                      .tag = {},
                      .reply = {},
                      .clock_us = node.now_us(now_),
                      .facts = facts_of(wire.node),
                      .asked = request.asked,
                      .ahead = ahead_of(wire.client, wire.node),
                      .world = now_,
                      .astray = node.wall.read(now_) - now_});
}

void World::close_at_node(std::uint32_t id) {
  Wire& wire = wires_[id];
  if (!std::exchange(wire.node_open, false)) return;
  if (!states_[wire.node].unreachable) {
    push_to_client(id, {.kind = Wire::Answer::Kind::reset, .tag = {}, .reply = {}});
  }
}

/// What is on its way may still arrive, or only the first part of it.
void World::close_at_client(std::uint32_t id) {
  Wire& wire = wires_[id];
  wire.client_open = false;
  const auto kept = random_.below(static_cast<std::uint32_t>(wire.to_node.size()) + 1);
  wire.to_node.resize(kept);
  wire.to_client.clear();
  // Some of it long after, when the client has connected anew.
  if (kept > 0 && random_.chance(700)) wire.stalled_until = now_ + random_.up_to(most_stalled);
}

void World::packet_at_client(const Event& event) {
  Wire& wire = wires_[event.a];
  if (wire.to_client.empty() || wire.dead || !wire.client_open) return;
  Link& link = clients_[wire.client].links[wire.node];
  if (link.cut_from_node > 0) {
    ++wire.waiting_to_client;
    return;
  }
  if (defer(wire.client, event)) return;
  const Wire::Answer answer = std::move(wire.to_client.front());
  wire.to_client.pop_front();
  wire.busy_since = now_;
  switch (answer.kind) {
    case Wire::Answer::Kind::welcome:
      return link_up(event.a, answer);
    case Wire::Answer::Kind::time:
      clock_read(event.a, answer);
      return turn(wire.client);
    case Wire::Answer::Kind::turned_away:
    case Wire::Answer::Kind::reset:
      return link_broken(event.a);
    case Wire::Answer::Kind::reply:
      break;
  }
  wire.outstanding.pop_front();
  const std::uint32_t client = wire.client;
  this->answer(client, wire.node, answer.tag, answer.reply);
  turn(client);
  // What the marker names now is for a handshake to read.
  const auto* const why = std::get_if<engine::Unavailable>(&answer.reply);
  const bool moved = why != nullptr && why->cause == Cause::incompatible;
  if (moved && clients_[client].quarantine && wire.client_open) link_broken(event.a);
}

void World::connect(std::uint32_t client, std::uint32_t node) {
  if (!clients_[client].alive || clients_[client].links[node].wire != none) return;
  if (defer(client, {.when = now_, .what = Event::What::connect, .a = client, .b = node})) return;
  if (states_[node].down && !states_[node].unreachable) return reconnect_later(client, node);
  const auto id = static_cast<std::uint32_t>(wires_.size());
  wires_.emplace_back();
  wires_[id].client = client;
  wires_[id].node = node;
  wires_[id].dead = states_[node].unreachable;
  Link& link = clients_[client].links[node];
  link.wire = id;
  push_to_node(id, {.kill = link.to_kill, .send = {}, .handshake = true, .asked = local(client)});
  at(now_ + connect_within, Event::What::connect_timeout, id);
}

void World::connect_timeout(std::uint32_t id) {
  Wire& wire = wires_[id];
  if (!wire.client_open || clients_[wire.client].links[wire.node].up) return;
  close_at_client(id);
  clients_[wire.client].links[wire.node].wire = none;
  reconnect_later(wire.client, wire.node);
}

void World::reconnect_later(std::uint32_t client, std::uint32_t node) {
  const Duration backoff = random_.between(milliseconds(5), milliseconds(250));
  at(now_ + backoff, Event::What::connect, client, node);
}

void World::link_up(std::uint32_t id, const Wire::Answer& welcome) {
  const Wire& wire = wires_[id];
  note(2, id, wire.node,
       [&] { return fmt::format("client {} is connected with node {}", wire.client, wire.node); });
  Client& client = clients_[wire.client];
  Link& link = client.links[wire.node];
  link.up = true;
  link.to_kill.clear();
  disturb(wire.client, wire.node);
  invariants_.marker_shown(now_, client.life, wire.node);
  client.engine->on_node_facts(local(wire.client), wire.node, welcome.facts);
  client.engine->on_node_up(local(wire.client), wire.node);
  clock_read(id, welcome);
  turn(wire.client);
}

void World::clock_read(std::uint32_t id, const Wire::Answer& answer) {
  Wire& wire = wires_[id];
  Client& client = clients_[wire.client];
  const Instant now = local(wire.client);
  const Duration half = (now - answer.asked) / 2;
  invariants_.clock_read(client.life, wire.node,
                         {now, answer.ahead, half, answer.world, answer.astray});
  client.engine->on_node_clock(now, wire.node, answer.clock_us + half / microseconds(1), half);
  at(now_ + random_.between(plan_.between_probes / 2, plan_.between_probes), Event::What::probe, id,
     0, ++wire.next_probe);
}

void World::probe(const Event& event) {
  const Wire& wire = wires_[event.a];
  if (!wire.client_open || ending_ || event.c != wire.next_probe) return;
  if (!defer(wire.client, event)) read_clock(event.a);
}

void World::read_clock(std::uint32_t id) {
  push_to_node(id, {.kill = {}, .send = {}, .time = true, .asked = local(wires_[id].client)});
}

/// By which the node's clock shows more than the client's.
Duration World::ahead_of(std::uint32_t client, std::uint32_t node) const {
  return nodes_[node].wall.read(now_) - local(client);
}

/// A question beside the commands. If it finds a marker that somebody else has written, the client
/// connects anew.
void World::tend_marker(const Event& event) {
  const std::uint32_t client = event.a;
  const std::uint32_t node = event.b;
  if (!clients_[client].alive || !well(client, node)) return;
  if (!clients_[client].quarantine) return look_for_marker(client, node);
  const std::uint32_t wire = clients_[client].links[node].wire;
  NodeModel& model = nodes_[node].model;
  if (model.has_marker()) return link_broken(wire);
  const ClientId life = clients_[client].life;
  const std::string set = event.c == 2 ? own_set : "";
  const bool marked = event.c != 0 && model.set_marker(life, set);
  if (!marked && !model.note(life) && event.c == 0) return;
  note(11, client, node, [&] {
    return fmt::format("client {} {} node {}", client, marked ? "marks" : "leaves its note on",
                       node);
  });
  invariants_.marker_shown(now_, life, node);
  clients_[client].engine->on_marker(
      local(client), node, marked ? engine::Marker::there : engine::Marker::gone_anew, set);
  if (marked) wires_[wire].set = set;
  turn(client);
}

/// Of a client without quarantine.
void World::look_for_marker(std::uint32_t client, std::uint32_t node) {
  const NodeModel& model = nodes_[node].model;
  if (!model.has_marker() && !model.has_notes()) return;
  clients_[client].engine->on_marker(local(client), node, engine::Marker::there);
  turn(client);
}

void World::link_broken(std::uint32_t id) {
  const std::uint32_t client = wires_[id].client;
  const std::uint32_t node = wires_[id].node;
  note(3, id, node,
       [&] { return fmt::format("client {} has lost its connection with node {}", client, node); });
  close_at_client(id);
  Link& link = clients_[client].links[node];
  // A connection whose handshake did not end has carried nothing else.
  if (std::exchange(link.up, false)) link.to_kill.push_back(id);
  link.wire = none;
  disturb(client, node);
  reconnect_later(client, node);
  const std::deque<engine::Tag> outstanding = std::exchange(wires_[id].outstanding, {});
  for (const engine::Tag& tag : outstanding) {
    answer(client, node, tag,
           engine::Unavailable{Cause::connection_lost, engine::Delivery::unknown, ""});
  }
  turn(client);
}

void World::silence(const Event& event) {
  Wire& wire = wires_[event.a];
  if (!wire.client_open) return;
  wire.silence_watched = false;
  if (wire.outstanding.empty()) return;
  if (defer(wire.client, event)) return;
  const Instant given_up = wire.busy_since + given_up_after;
  if (now_ >= given_up) return link_broken(event.a);
  wire.silence_watched = true;
  at(given_up, Event::What::silence, event.a);
}

/// A cut is over: what waited at it goes on.
void World::release_waiting(std::uint32_t client, std::uint32_t node) {
  const Link& link = clients_[client].links[node];
  for (std::uint32_t id = 0; id < wires_.size(); ++id) {
    Wire& wire = wires_[id];
    if (wire.client != client || wire.node != node) continue;
    // A network may deliver last what was sent first, on a connection that was given up.
    if (link.cut_to_node == 0 && wire.waiting_to_node > 0 && !wire.client_open &&
        random_.chance(700)) {
      wire.stalled_until = now_ + random_.up_to(most_stalled);
    }
    if (link.cut_to_node == 0) {
      for (; wire.waiting_to_node > 0; --wire.waiting_to_node) {
        wire.last_at_node = std::max(wire.last_at_node, now_ + microseconds(50));
        at(wire.last_at_node, Event::What::at_node, id);
      }
    }
    if (link.cut_from_node == 0) {
      for (; wire.waiting_to_client > 0; --wire.waiting_to_client) {
        wire.last_at_client = std::max(wire.last_at_client, now_ + microseconds(50));
        at(wire.last_at_client, Event::What::at_client, id);
      }
    }
  }
}

}  // namespace redlock::simulation
