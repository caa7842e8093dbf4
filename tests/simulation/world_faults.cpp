// SPDX-License-Identifier: MIT
// What goes wrong, and how it is mended.
#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "engine/quorum.hpp"
#include "simulation/world.hpp"

namespace redlock::simulation {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Ailment = NodeModel::Ailment;

constexpr std::int32_t small_drift = 4'500;
constexpr std::int32_t wild_drift = 300'000;

}  // namespace

void World::next_fault() {
  if (plan_.between_faults == Duration::zero() || ending_) return;
  at(now_ + random_.between(Duration::zero(), plan_.between_faults * 2), Event::What::next_fault);
}

/// Some moments are rare and short: trouble is drawn to them.
void World::attract_fault(std::uint32_t client, std::optional<Fault> fault,
                          std::uint32_t per_mille) {
  const bool possible = !fault || plan_.faults[static_cast<std::size_t>(*fault)];
  if (plan_.between_faults == Duration::zero() || ending_ || !possible) return;
  if (!random_.chance(per_mille)) return;
  const std::uint64_t which = fault ? static_cast<std::uint64_t>(*fault) : fault_count;
  at(now_ + random_.up_to(plan_.delay_min + plan_.delay_jitter), Event::What::fault, client, 0,
     which);
}

void World::inject() {
  std::array<Fault, fault_count> possible{};
  std::uint32_t count = 0;
  for (std::size_t fault = 0; fault < fault_count; ++fault) {
    if (plan_.faults[fault]) possible[count++] = static_cast<Fault>(fault);
  }
  if (count == 0) return;
  const Fault any = possible[random_.below(count)];
  const Fault fault = random_.chance(plan_.special_per_mille) ? special(any) : any;
  const bool forgets = fault == Fault::node_flushed || fault == Fault::node_wiped;
  if (forgets && !may_forget()) return;
  inject(fault, random_.below(plan_.clients));
}

/// The fault after which this kind of world is named.
Fault World::special(Fault otherwise) {
  switch (plan_.kind) {
    case WorldKind::orderly:
      return otherwise;
    case WorldKind::forgetful:
      return random_.chance(500) ? Fault::node_flushed : Fault::node_wiped;
    case WorldKind::wild_clocks:
      return random_.chance(700) ? Fault::node_clock_wild : Fault::client_clock_wild;
    case WorldKind::forced:
      return Fault::released_by_force;
  }
  return otherwise;
}

void World::inject(Fault fault, std::uint32_t client) {
  const std::uint32_t node = random_.below(plan_.engine.nodes);
  if (ending_ || !clients_[client].alive) return;
  const auto number = static_cast<std::uint32_t>(active_.size());
  ActiveFault& active = active_.emplace_back();
  active = {.fault = fault, .client = client, .node = node, .nodes = {}};
  // Before it changes what the clients are doing.
  const auto phases = [&] {
    if (!happens_to_node(fault)) return cover(fault, client);
    for (std::uint32_t each = 0; each < plan_.clients; ++each) cover(fault, each);
  };
  if (happens_to_client(fault)) {
    if (!inject_in_client(fault, client, active)) return;
  } else {
    phases();
    note(10, static_cast<std::uint64_t>(fault), client * 64 + node, [&] {
      return fmt::format("FAULT {} (client {}, node {})", in_words(fault), client, node);
    });
    if (happens_to_node(fault)) {
      inject_in_node(fault, node, active);
    } else {
      inject_in_network(fault, client, node, active);
    }
  }
  const bool long_one = random_.chance(150);
  const Duration length = long_one ? std::min<Duration>(plan_.max_lease() * 3, seconds(5))
                                   : plan_.engine.node_timeout * 4;
  at(now_ + random_.up_to(length), Event::What::repair, number);
}

void World::cover(Fault fault, std::uint32_t index) {
  const Client& client = clients_[index];
  if (!client.alive) return;
  using Kind = engine::Tag::Kind;
  const auto outstanding = [&](Kind kind) {
    return client.outstanding[static_cast<std::size_t>(kind)] > 0;
  };
  const auto hit_if = [&](bool doing, Phase phase) {
    if (doing) coverage_.hit(fault, phase);
  };
  bool idle = false;
  bool acquiring = false;
  bool holding = false;
  for (const User& user : users_) {
    if (user.client != index) continue;
    idle = idle || user.state == User::State::idle;
    acquiring = acquiring || user.state == User::State::acquiring;
    holding = holding || user.state == User::State::holding;
  }
  hit_if(idle, Phase::idle);
  hit_if(acquiring && !outstanding(Kind::acquire), Phase::waiting);
  hit_if(outstanding(Kind::acquire), Phase::voting);
  hit_if(outstanding(Kind::settle), Phase::settling);
  hit_if(holding, Phase::holding);
  hit_if(outstanding(Kind::hold), Phase::renewing);
  hit_if(outstanding(Kind::heal), Phase::healing);
  hit_if(outstanding(Kind::release), Phase::releasing);
}

// --- nodes

void World::inject_in_node(Fault fault, std::uint32_t node, ActiveFault& active) {
  NodeState& state = states_[node];
  SimNode& at_node = nodes_[node];
  disturb_node(node);
  switch (fault) {
    case Fault::node_killed:
    case Fault::node_wiped:
      active.over = std::exchange(state.down, true);
      if (active.over) return;
      state.unreachable = random_.chance(300);
      kill_node(node);
      if (fault == Fault::node_wiped) forget(node);
      // Without appendfsync always it comes back as it was before the newest grants.
      if (plan_.kind == WorldKind::forgetful && !plan_.durable) forget_newest(node);
      return;
    case Fault::node_flushed:
      return forget(node);
    case Fault::node_hung:
      ++state.hung;
      return;
    case Fault::scripts_forgotten:
      return at_node.model.forget_scripts();
    case Fault::node_clock_stepped: {
      const Duration to = random_.between(-microseconds(450), microseconds(450));
      at_node.wall.step(now_, to - std::exchange(state.stepped, to));
      return;
    }
    case Fault::node_clock_drifted:
      return at_node.wall.set_speed(now_, random_.between(-small_drift, small_drift));
    case Fault::node_clock_wild:
      if (random_.chance(500)) {
        const Duration by = random_.up_to(plan_.max_lease() * 2);
        at_node.wall.step(now_, random_.chance(700) ? by : -by);
      } else {
        at_node.wall.set_speed(now_, random_.between(-wild_drift, wild_drift));
      }
      return;
    case Fault::node_slow:
      state.slow = random_.up_to(plan_.engine.node_timeout * 2);
      return;
    default:
      active.over = at_node.model.ailment() != Ailment::none;
      if (!active.over) at_node.model.set_ailment(ailment_of(fault));
  }
}

/// The process is gone; nothing that it had not run will be run.
void World::kill_node(std::uint32_t node) {
  nodes_[node].model.forget_scripts();
  states_[node].waiting.clear();
  for (std::uint32_t id = 0; id < wires_.size(); ++id) {
    Wire& wire = wires_[id];
    if (wire.node != node || !wire.node_open) continue;
    if (states_[node].unreachable) wire.dead = true;
    close_at_node(id);
  }
}

/// When it may vote again is for the clients to find out.
void World::forget(std::uint32_t node) {
  nodes_[node].model.forget_everything();
  nodes_[node].forgot.push_back(now_);
}

void World::forget_newest(std::uint32_t node) {
  nodes_[node].model.forget_locks();
  nodes_[node].forgot.push_back(now_);
}

/// Not before a quarantine is over and somebody has had the lock again.
bool World::may_forget() {
  if (now_ < may_forget_from_) return false;
  const Duration quarantine = plan_.max_lease() + plan_.max_lease() / 20 + seconds(1);
  may_forget_from_ = now_ + quarantine + random_.up_to(quarantine);
  return true;
}

/// What makes it matter: enough nodes for another quorum. They are back at once.
void World::many_forget() {
  if (ending_ || !may_forget()) return;
  const std::uint32_t first = random_.below(plan_.engine.nodes);
  const bool restarted = !plan_.durable || random_.chance(500);
  const bool replaced = plan_.other_sets && random_.chance(700);
  for (std::uint32_t i = 0; i <= plan_.engine.nodes / 2; ++i) {
    const std::uint32_t node = (first + i) % plan_.engine.nodes;
    if (states_[node].down) continue;
    disturb_node(node);
    note(12, node, restarted ? 1 : 0, [&] {
      return fmt::format("node {} {}", node, restarted ? "restarts and forgets" : "is flushed");
    });
    if (restarted) {
      kill_node(node);
      states_[node].started = now_;
    }
    if (plan_.durable || replaced) {
      forget(node);
    } else {
      forget_newest(node);
    }
    if (replaced) become_of_another_set(node);
  }
}

// --- network

void World::cut(std::uint32_t client, std::uint32_t node, int to_node, int from_node) {
  Link& link = clients_[client].links[node];
  link.cut_to_node += static_cast<std::uint32_t>(to_node);
  link.cut_from_node += static_cast<std::uint32_t>(from_node);
  disturb(client, node);
  release_waiting(client, node);
}

void World::inject_in_network(Fault fault, std::uint32_t client, std::uint32_t node,
                              ActiveFault& active) {
  const Link& link = clients_[client].links[node];
  disturb(client, node);
  switch (fault) {
    case Fault::disconnected:
      if (!link.up || clients_[client].paused) return;
      if (random_.chance(500)) return close_at_node(link.wire);
      return link_broken(link.wire);
    case Fault::half_open:
      if (link.up) wires_[link.wire].dead = true;
      return;
    case Fault::cut_to_node:
      return cut(client, node, 1, 0);
    case Fault::cut_from_node:
      return cut(client, node, 0, 1);
    default: {
      const std::uint32_t first = random_.below(plan_.engine.nodes);
      for (std::uint32_t i = 0; i < engine::quorum_of(plan_.engine.nodes); ++i) {
        active.nodes.push_back((first + i) % plan_.engine.nodes);
        cut(client, active.nodes.back(), 1, 1);
      }
    }
  }
}

// --- clients

bool World::inject_in_client(Fault fault, std::uint32_t index, ActiveFault& active) {
  Client& client = clients_[index];
  active.over = true;  // nothing is to be mended
  const auto happens = [&] {
    cover(fault, index);
    note(11, static_cast<std::uint64_t>(fault), index,
         [&] { return fmt::format("FAULT {} (client {})", in_words(fault), index); });
  };
  if (client.paused) return false;
  switch (fault) {
    case Fault::client_paused:
      happens();
      pause(index, random_.up_to(random_.chance(700) ? plan_.engine.node_timeout * 3
                                                     : plan_.max_lease() * 2));
      return true;
    case Fault::client_interrupted:
      happens();
      client.interrupt = true;
      return true;
    case Fault::client_crashed:
      happens();
      crash(index);
      return true;
    case Fault::client_clock_drifted:
    case Fault::client_clock_wild: {
      happens();
      const std::int32_t most = fault == Fault::client_clock_wild ? wild_drift : small_drift;
      client.clock.set_speed(now_, random_.between(-most, most));
      client.timer = engine::never;
      set_timer(index);
      return true;
    }
    case Fault::request_cancelled:
      return cancel_one(index);
    case Fault::release_races_hold:
      return race_release_with_hold(index);
    default:
      return release_by_force(index);
  }
}

bool World::cancel_one(std::uint32_t client) {
  for (User& user : users_) {
    if (user.client != client || user.state != User::State::acquiring) continue;
    cover(Fault::request_cancelled, client);
    invariants_.must_end_now(clients_[client].life, user.request, local(client));
    clients_[client].engine->cancel(local(client), user.request, Errc::cancelled);
    turn(client);
    return true;
  }
  return false;
}

bool World::race_release_with_hold(std::uint32_t client) {
  for (User& user : users_) {
    if (user.client != client || user.state != User::State::holding) continue;
    cover(Fault::release_races_hold, client);
    extend(user);
    turn(client);
    if (clients_[client].paused) return true;
    give_back(user, random_.chance(500));
    turn(client);
    return true;
  }
  return false;
}

/// By an operator, with what status shows: the name and the owner.
bool World::release_by_force(std::uint32_t client) {
  for (User& user : users_) {
    if (user.state != User::State::holding || random_.chance(500)) continue;
    // Most often beside a round of the holder, which then finds it here and there.
    if (!clients_[user.client].paused && random_.chance(700)) {
      extend(user);
      turn(user.client);
      if (user.state != User::State::holding) return false;
      if (!clients_[client].alive || clients_[client].paused) return false;
    }
    for (std::uint32_t each = 0; each < plan_.clients; ++each) {
      cover(Fault::released_by_force, each);
    }
    const engine::RequestId request = ++last_request_;
    invariants_.requested(clients_[client].life,
                          {.id = request,
                           .name = {},
                           .expected = local(client) + plan_.engine.node_timeout,
                           .forces = Invariants::Forced{user.name, user.owner}});
    clients_[client].engine->force_release(local(client), request,
                                           std::make_shared<const std::string>(user.name),
                                           user.owner, plan_.max_lease());
    turn(client);
    return true;
  }
  return false;
}

}  // namespace redlock::simulation
