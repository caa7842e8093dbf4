// SPDX-License-Identifier: MIT
// A client's loop: gives the engine its inputs, performs its outputs, and can be stopped anywhere
// in between.
#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "engine/planted_bug.hpp"
#include "simulation/words.hpp"
#include "simulation/world.hpp"

namespace redlock::simulation {

using engine::Bug;
using engine::planted;
using std::chrono::milliseconds;
using std::chrono::seconds;

void World::start(std::uint32_t index) {
  Client& client = clients_[index];
  engine::Config config = plan_.engine;
  config.quarantine = config.quarantine && !(plan_.careless && index == 0);
  client.quarantine = config.quarantine;
  client.engine = std::make_unique<engine::Engine>(config, client.random);
  // Within a minute of the nodes', mostly; tokens must not rest on it.
  const Duration most =
      random_.chance(900) ? Duration(std::chrono::minutes(1)) : Duration(std::chrono::hours(1'000));
  const Duration error = random_.between(-most, most);
  client.engine->on_own_clock(local(index), nodes_.front().now_us(now_) + error.count() / 1'000);
  client.alive = true;
  client.life = invariants_.client_starts(client.clock);
  client.links.resize(nodes_.size());
  for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
    // One that reaches only nodes that have just forgotten cannot know (safety.md, A4).
    if (plan_.careless && index == 0) {
      client.engine->on_node_facts(local(index), node, {.marker = true, .set = own_set});
    }
    connect(index, node);
  }
  for (User& user : users_) {
    if (user.client == index) user_next(user, plan_.think);
  }
}

/// Events for a paused client wait for it.
bool World::defer(std::uint32_t client, const Event& event) {
  if (!clients_[client].paused) return false;
  clients_[client].deferred.push_back(event);
  return true;
}

void World::turn(std::uint32_t index) {
  Client& client = clients_[index];
  if (!client.alive || client.paused) return;
  for (;;) {
    outputs_.clear();
    client.engine->take_outputs(outputs_);
    if (outputs_.empty() && client.unsendable.empty()) break;
    invariants_.told(now_, client.life, outputs_);
    auto& [for_nodes, for_client] = outputs_;
    std::size_t performed = for_nodes.size() + for_client.size();
    if (client.interrupt && performed > 0) {
      performed = random_.below(static_cast<std::uint32_t>(performed) + 1);
    }
    const std::size_t first = std::min(performed, for_nodes.size());
    for (std::size_t i = 0; i < first; ++i) perform(index, for_nodes[i]);
    for (std::size_t i = 0; i < performed - first; ++i) perform(index, for_client[i]);
    if (client.interrupt && !outputs_.empty()) {
      client.interrupt = false;
      const auto places = [](std::size_t count) { return static_cast<std::ptrdiff_t>(count); };
      for_nodes.erase(for_nodes.begin(), for_nodes.begin() + places(first));
      for_client.erase(for_client.begin(), for_client.begin() + places(performed - first));
      client.undone = std::move(outputs_);
      return pause(index, random_.up_to(plan_.max_lease() * 2));
    }
    for (const engine::Send& send : std::exchange(client.unsendable, {})) {
      answer(index, send.node, send.tag,
             engine::Unavailable{Cause::connection_failed, engine::Delivery::not_sent, ""});
    }
  }
  invariants_.turn_ends(now_, client.life);
  set_timer(index);
}

void World::perform(std::uint32_t client, const engine::ClientOutput& output) {
  note(4, client, 8 + output.index(),
       [&] { return fmt::format("client {}: {}", client, in_words(output)); });
  tell_user(client, output);
}

void World::perform(std::uint32_t client, const engine::NodeOutput& output) {
  note(4, client, output.index(),
       [&] { return fmt::format("client {}: {}", client, in_words(output)); });
  if (const auto* send = std::get_if<engine::Send>(&output)) return perform_send(client, *send);
  if (const auto* tend = std::get_if<engine::TendMarker>(&output)) {
    // 0: to look; 1: to write a marker without a name; 2: with that of the set.
    const std::uint64_t named = tend->set == own_set ? 2 : 1;
    return at(now_ + delay(tend->node), Event::What::tend, client, tend->node,
              tend->write ? named : 0);
  }
  if (ending_) return;
  for (const Link& link : clients_[client].links) {
    if (link.up) read_clock(link.wire);
  }
}

void World::perform_send(std::uint32_t index, const engine::Send& send) {
  Client& client = clients_[index];
  ++client.outstanding[static_cast<std::size_t>(send.tag.kind)];
  using Kind = engine::Tag::Kind;
  if (send.tag.kind == Kind::heal || send.tag.kind == Kind::settle) attract_fault(index, {}, 300);
  if (send.tag.kind == Kind::heal && plan_.kind == WorldKind::forgetful) {
    attract_fault(index, special(Fault::node_flushed), 300);
  }
  if (send.tag.kind == Kind::release) attract_fault(index, Fault::disconnected, 20);
  const Link& link = client.links[send.node];
  if (!link.up) {
    client.unsendable.push_back(send);
    return;
  }
  Wire& wire = wires_[link.wire];
  if (wire.outstanding.empty()) wire.busy_since = now_;
  wire.outstanding.push_back(send.tag);
  if (!std::exchange(wire.silence_watched, true)) {
    at(now_ + seconds(1), Event::What::silence, link.wire);
  }
  push_to_node(link.wire, {.kill = {}, .send = send});
}

void World::answer(std::uint32_t index, std::uint32_t node, const engine::Tag& tag,
                   const engine::Reply& reply) {
  note(5, index, node * 16 + reply.index(), [&] {
    return fmt::format("client {} hears of node {} for grant {}: {}", index, node, tag.grant,
                       in_words(reply));
  });
  Client& client = clients_[index];
  --client.outstanding[static_cast<std::size_t>(tag.kind)];
  invariants_.answered(now_, client.life, node, tag, reply);
  client.engine->on_reply(local(index), node, tag, reply);
}

void World::set_timer(std::uint32_t index) {
  Client& client = clients_[index];
  const Instant deadline = client.engine->deadline();
  if (deadline == engine::never) return;
  Instant when = std::max(client.clock.when(deadline), now_);
  if (planted(Bug::timers_sleep_in_suspend)) when += client.slept;
  if (when >= client.timer) return;
  client.timer = when;
  at(when, Event::What::timer, index);
}

void World::timer(const Event& event) {
  Client& client = clients_[event.a];
  if (!client.alive || event.when != client.timer) return;
  if (defer(event.a, event)) return;
  client.timer = engine::never;
  if (client.engine->deadline() <= local(event.a)) {
    note(6, event.a, 0, [&] { return fmt::format("client {}: its time has come", event.a); });
    client.engine->on_deadline(local(event.a));
    return turn(event.a);
  }
  set_timer(event.a);
}

void World::pause(std::uint32_t index, Duration length) {
  Client& client = clients_[index];
  if (client.paused || !client.alive) return;
  note(7, index, 0, [&] { return fmt::format("client {} is paused", index); });
  client.paused = true;
  client.paused_at = now_;
  at(now_ + length, Event::What::resume, index);
}

void World::resume(std::uint32_t index) {
  Client& client = clients_[index];
  if (!client.paused) return;
  note(8, index, 0, [&] { return fmt::format("client {} goes on", index); });
  client.paused = false;
  client.slept += now_ - client.paused_at;
  client.timer = engine::never;
  invariants_.client_resumes(client.life, now_, plan_.engine.node_timeout);
  for (std::uint32_t node = 0; node < nodes_.size(); ++node) disturb(index, node);
  const engine::Outputs undone = std::exchange(client.undone, {});
  for (const engine::NodeOutput& output : undone.nodes) perform(index, output);
  for (const engine::ClientOutput& output : undone.client) perform(index, output);
  // Whether it looks at its clock or at its connections first is not promised.
  const bool clock_first = random_.chance(500);
  const bool unnoticed = planted(Bug::timers_sleep_in_suspend);
  if (clock_first && !unnoticed) {
    client.engine->on_deadline(local(index));
    turn(index);
  }
  std::vector<Event> deferred = std::exchange(client.deferred, {});
  for (Event& event : deferred) {
    if (event.what == Event::What::timer) continue;
    event.when = now_;
    dispatch(event);
  }
  if (!clock_first && !unnoticed && client.alive && !client.paused)
    client.engine->on_deadline(local(index));
  turn(index);
}

/// Its connections close, and what it had written may still arrive.
void World::crash(std::uint32_t index) {
  Client& client = clients_[index];
  note(9, index, 0, [&] { return fmt::format("client {} crashes", index); });
  invariants_.client_crashes(client.life);
  client.alive = false;
  client.paused = false;
  client.interrupt = false;
  client.timer = engine::never;
  client.deferred.clear();
  client.undone.clear();
  client.unsendable.clear();
  client.outstanding = {};
  client.engine.reset();
  for (Link& link : client.links) {
    if (link.wire != none) close_at_client(link.wire);
    link.wire = none;
    link.up = false;
    link.to_kill.clear();
  }
  for (User& user : users_) {
    if (user.client != index) continue;
    user = {.client = index, .turn = user.turn + 1};
  }
  at(now_ + random_.up_to(milliseconds(2'000)), Event::What::revive, index);
}

void World::watch_validity(std::uint32_t client, engine::GrantId grant, Instant valid_until) {
  const Instant ends = clients_[client].clock.when(valid_until);
  if (!plan_.judges_possession() || ends <= now_ || ends == engine::never) return;
  agenda_.add({.when = ends - Duration(1),
               .what = Event::What::validity_ends,
               .a = clients_[client].life,
               .c = grant,
               .until = valid_until});
}

}  // namespace redlock::simulation
