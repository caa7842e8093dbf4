// SPDX-License-Identifier: MIT
#include "simulation/faults.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>

#include "engine/quorum.hpp"
#include "engine/stripe.hpp"

namespace redlock::simulation {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::int32_t wild_drift = 300'000;

}  // namespace

void Faults::schedule_next() {
  const Duration between = scene_.plan.between_faults;
  if (between == Duration::zero() || scene_.ending) return;
  scene_.at(scene_.now + scene_.random.between(Duration::zero(), between * 2),
            Event::What::next_fault);
}

void Faults::next_fault() {
  schedule_next();
  inject_any();
}

void Faults::fault(const Event& event) {
  event.c == fault_count ? inject_any() : inject(static_cast<Fault>(event.c), event.a);
}

void Faults::attract_fault(ClientIndex client, std::optional<Fault> fault,
                           std::uint32_t per_mille) {
  const Plan& plan = scene_.plan;
  const bool possible = !fault || plan.faults[static_cast<std::size_t>(*fault)];
  if (plan.between_faults == Duration::zero() || scene_.ending || !possible) return;
  if (!scene_.random.chance(per_mille)) return;
  const std::uint64_t which = fault ? static_cast<std::uint64_t>(*fault) : fault_count;
  scene_.at(scene_.now + scene_.random.up_to(plan.longest_way()), Event::What::fault, client, 0,
            which);
}

void Faults::on_sent(ClientIndex client, const engine::Send& send) {
  using Message = engine::Tag::Kind;
  const Message kind = send.tag.kind;
  if (kind == Message::heal || kind == Message::settle) attract_fault(client, {}, 300);
  if (kind == Message::heal && scene_.plan.kind == WorldKind::forgetful) {
    attract_fault(client, special(Fault::node_flushed), 300);
  }
  if (kind == Message::release) attract_fault(client, Fault::disconnected, 20);
}

/// Whose turn will come soon dies, or stops.
void Faults::on_first_in_line(ClientIndex client) {
  const Plan& plan = scene_.plan;
  if (!plan.waits || plan.is_calm() || scene_.ending) return;
  for (const Fault fault : {Fault::client_crashed, Fault::client_paused}) {
    if (!plan.faults[static_cast<std::size_t>(fault)] || !scene_.random.chance(20)) continue;
    scene_.at(scene_.now + scene_.random.up_to(plan.think), Event::What::fault, client, 0,
              static_cast<std::uint64_t>(fault));
  }
}

void Faults::on_granted(Duration lease) {
  if (!scene_.plan.forgets()) return;
  if (scene_.plan.flushed_twice) scene_.at(scene_.now, Event::What::flush_again);
  if (!scene_.random.chance(scene_.plan.flushed_twice ? 700 : 250)) return;
  scene_.at(scene_.now + scene_.random.up_to(lease / 2), Event::What::many_forget);
}

void Faults::inject_any() {
  std::array<Fault, fault_count> possible{};
  std::uint32_t count = 0;
  for (std::size_t fault = 0; fault < fault_count; ++fault) {
    if (scene_.plan.faults[fault]) possible[count++] = static_cast<Fault>(fault);
  }
  if (count == 0) return;
  const Fault any = possible[scene_.random.below(count)];
  const bool named = scene_.random.chance(scene_.plan.special_per_mille);
  const Fault fault = named ? special(any) : any;
  const bool forgets = fault == Fault::node_flushed || fault == Fault::node_wiped;
  if (forgets && !may_forget()) return;
  inject(fault, scene_.random.below(scene_.plan.clients));
}

/// The fault after which this kind of world is named.
Fault Faults::special(Fault otherwise) {
  switch (scene_.plan.kind) {
    case WorldKind::orderly:
      return otherwise;
    case WorldKind::forgetful:
      return scene_.random.chance(500) ? Fault::node_flushed : Fault::node_wiped;
    case WorldKind::wild_clocks:
      return scene_.random.chance(700) ? Fault::node_clock_wild : Fault::client_clock_wild;
    case WorldKind::forced:
      return Fault::released_by_force;
    case WorldKind::forced_and_forgetful:
      return scene_.random.chance(500) ? Fault::released_by_force : Fault::node_flushed;
    case WorldKind::damaged:
      return Fault::fence_lost;
  }
  return otherwise;
}

void Faults::inject(Fault fault, ClientIndex client) {
  const NodeIndex node = scene_.random.below(static_cast<std::uint32_t>(scene_.nodes.size()));
  if (scene_.ending || !clients_.is_alive(client)) return;
  const auto number = static_cast<std::uint32_t>(active_.size());
  ActiveFault& active = active_.emplace_back();
  active = {.fault = fault, .client = client, .node = node, .nodes = {}};
  // Before it changes what the clients are doing.
  if (happens_to_client(fault)) {
    active.over = true;  // nothing is to be mended
    if (!inject_in_client(fault, client)) return;
  } else {
    happens_to_node(fault) ? cover_all(fault) : cover(fault, client);
    scene_.note(10, static_cast<std::uint64_t>(fault), client * 64 + node, [&] {
      return fmt::format("FAULT {} (client {}, node {})", in_words(fault), client, node);
    });
    happens_to_node(fault) ? inject_in_node(fault, node, active)
                           : inject_in_network(fault, client, node, active);
  }
  const bool long_one = scene_.random.chance(150);
  const Duration length = long_one ? std::min<Duration>(scene_.plan.max_lease() * 3, seconds(5))
                                   : scene_.plan.engine.node_timeout * 4;
  scene_.at(scene_.now + scene_.random.up_to(length), Event::What::repair, number);
}

void Faults::cover(Fault fault, ClientIndex client) {
  if (!clients_.is_alive(client)) return;
  using Message = engine::Tag::Kind;
  const auto outstanding = [&](Message kind) { return clients_.outstanding(client, kind) > 0; };
  const auto hit_if = [&](bool doing, Phase phase) {
    if (doing) scene_.coverage.hit(fault, phase);
  };
  const Workload::Doing doing = workload_.doing(client);
  hit_if(doing.idle, Phase::idle);
  hit_if(doing.acquiring && !outstanding(Message::acquire), Phase::waiting);
  hit_if(outstanding(Message::acquire), Phase::voting);
  hit_if(outstanding(Message::settle), Phase::settling);
  hit_if(doing.holding, Phase::holding);
  hit_if(outstanding(Message::hold), Phase::renewing);
  hit_if(outstanding(Message::heal), Phase::healing);
  hit_if(outstanding(Message::release), Phase::releasing);
}

void Faults::cover_all(Fault fault) {
  for (ClientIndex client = 0; client < clients_.count(); ++client) cover(fault, client);
}

// --- nodes

void Faults::inject_in_node(Fault fault, NodeIndex node, ActiveFault& active) {
  SimNode& at_node = scene_.nodes[node];
  clients_.disturb_node(node);
  switch (fault) {
    case Fault::node_killed:
    case Fault::node_wiped:
      // What a server writes to an append-only file does not say that it was a replica.
      active.over = servers_.is_down(node) || scene_.now < promoted_until_[node];
      if (active.over) return;
      servers_.stop(node, scene_.random.chance(300));
      if (fault == Fault::node_wiped) servers_.forget(node);
      // Without appendfsync always it comes back as it was before the newest grants.
      if (fault == Fault::node_killed && scene_.plan.forgets() && !scene_.plan.durable) lose(node);
      return;
    case Fault::node_flushed:
      return servers_.forget(node);
    case Fault::node_hung:
      return servers_.hang(node);
    case Fault::scripts_forgotten:
      return servers_.forget_scripts(node);
    case Fault::node_clock_stepped: {
      const Duration to = scene_.random.between(-microseconds(450), microseconds(450));
      at_node.wall.step(scene_.now, to - std::exchange(stepped_[node], to));
      return;
    }
    case Fault::node_clock_drifted:
      return at_node.wall.set_speed(scene_.now, scene_.random.between(-drift_within, drift_within));
    case Fault::node_clock_wild:
      if (scene_.random.chance(500)) {
        const Duration by = scene_.random.up_to(scene_.plan.max_lease() * 2);
        at_node.wall.step(scene_.now, scene_.random.chance(700) ? by : -by);
      } else {
        at_node.wall.set_speed(scene_.now, scene_.random.between(-wild_drift, wild_drift));
      }
      return;
    case Fault::node_slow:
      return servers_.be_slow(node, scene_.random.up_to(scene_.plan.engine.node_timeout * 2));
    case Fault::fence_lost:
    case Fault::foreign_key:
      return inject_by_hand(fault, node);
    default:
      active.over = at_node.data.ailment != Ailment::none;
      if (!active.over) at_node.data.ailment = ailment_of(fault);
  }
}

/// What happens to a node's keys by hand.
void Faults::inject_by_hand(Fault fault, NodeIndex node) {
  SimNode& at_node = scene_.nodes[node];
  const std::string& name = scene_.random.pick(std::span<const std::string>(scene_.plan.names));
  const std::uint32_t stripe = engine::stripe_of(name);
  if (fault == Fault::fence_lost) {
    const bool may_be_damaged = node == 0 && scene_.plan.engine.nodes >= 3;
    if (!may_be_damaged || scene_.random.chance(500)) return at_node.data.lose_fence(stripe);
    const std::string text = scene_.random.pick(std::span<const char* const>(damaged_fences));
    scene_.invariants.fence_damaged(node);
    return at_node.data.put_fence(stripe, text);
  }
  // In place of a lock it would be against A5; where there is none it is only in the way.
  const bool is_free = at_node.data.is_free(name, at_node.now_ms(scene_.now));
  if (is_free) at_node.data.put_foreign(name);
}

/// The node has an older state: without the newest locks, or altogether as it once was.
void Faults::lose(NodeIndex node) {
  scene_.plan.older_states ? servers_.restore_snapshot(node) : servers_.forget_newest(node);
}

/// Not before a quarantine is over and the lock was granted again.
bool Faults::may_forget() {
  const bool was_replica = std::ranges::count(promoted_until_, engine::never) > 0;
  if (scene_.now < may_forget_from_ || was_replica) return false;
  const Duration longest = scene_.plan.max_lease();
  const Duration quarantine = longest + longest / 20 + seconds(1);
  may_forget_from_ = scene_.now + quarantine + scene_.random.up_to(quarantine);
  return true;
}

void Faults::many_forget(const Event& event) {
  if (scene_.ending || (!may_forget() && event.a == 0)) return;
  const Plan& plan = scene_.plan;
  const NodeIndex first = scene_.random.below(plan.engine.nodes);
  const bool flushed = plan.flushed_twice && scene_.random.chance(700);
  const bool restarted = !flushed && (!plan.durable || scene_.random.chance(500));
  const bool replaced = !flushed && plan.other_sets && scene_.random.chance(700);
  const bool demoted = plan.promotions && scene_.random.chance(700);
  for (std::uint32_t i = 0; i <= plan.engine.nodes / 2; ++i) {
    const NodeIndex node = (first + i) % plan.engine.nodes;
    if (servers_.is_down(node)) continue;
    if (demoted) {
      demote(node);
      continue;
    }
    clients_.disturb_node(node);
    scene_.note(12, node, restarted ? 1 : 0, [&] {
      return fmt::format("node {} {}", node, restarted ? "restarts and forgets" : "is flushed");
    });
    if (restarted) servers_.stop(node, false);
    plan.durable || flushed || replaced ? servers_.forget(node) : lose(node);
    if (replaced) servers_.become_of_another_set(node);
    if (restarted) servers_.start(node);
  }
}

/// Behind the back of clients that have not seen the markers, and of those that were granted
/// something since.
void Faults::flush_again() {
  if (scene_.ending) return;
  for (NodeIndex node = 0; node < scene_.nodes.size(); ++node) {
    SimNode& at_node = scene_.nodes[node];
    const bool lately = scene_.now < std::exchange(at_node.marked, Instant::min()) + seconds(1);
    if (!lately || servers_.is_down(node) || scene_.random.chance(200)) continue;
    clients_.disturb_node(node);
    scene_.note(12, node, 2, [&] { return fmt::format("node {} is flushed again", node); });
    servers_.forget(node);
  }
}

/// It becomes a replica of one that lacks the newest grants, and soon a master again.
void Faults::demote(NodeIndex node) {
  if (scene_.nodes[node].data.ailment != Ailment::none) return;
  clients_.disturb_node(node);
  servers_.demote(node);
  promoted_until_[node] = engine::never;
  scene_.note(14, node, 0, [&] { return fmt::format("node {} becomes a replica", node); });
  const bool waits = scene_.random.chance(600);  // until everybody was told
  const Duration length = waits ? scene_.plan.engine.node_timeout * 2 : Duration::zero();
  scene_.at(scene_.now + scene_.random.up_to(length), Event::What::promotion, node, 0, waits);
}

/// What the library does not claim is that it notices before somebody was told (safety.md, A7): a
/// replica that nobody asked remains one, or comes back without room for locks.
void Faults::promotion(const Event& event) {
  const NodeIndex node = event.a;
  Ailment& ailment = scene_.nodes[node].data.ailment;
  const bool known = servers_.demotion_is_known(node) || scene_.ending;
  const bool waits = event.c != 0;
  const bool promotes = event.b == 0 && (known || !waits);
  clients_.disturb_node(node);
  if (promotes) {
    scene_.note(14, node, 1, [&] { return fmt::format("node {} is a master again", node); });
    servers_.promote(node);
    ailment = Ailment::full;
  }
  if (!known) {
    return scene_.at(scene_.now + scene_.plan.engine.node_timeout / 2, Event::What::promotion, node,
                     waits ? 0 : 1, event.c);
  }
  ailment = Ailment::none;
  const Duration longest = scene_.plan.max_lease();
  promoted_until_[node] = scene_.now + longest + longest / 10 + seconds(2);
  may_forget_from_ = std::max(may_forget_from_, promoted_until_[node]);
}

// --- network

void Faults::cut(ClientIndex client, NodeIndex node, int to_node, int from_node) {
  clients_.disturb(client, node);
  if (to_node != 0) network_.cut_to_node(client, node, to_node);
  if (from_node != 0) network_.cut_from_node(client, node, from_node);
}

void Faults::inject_in_network(Fault fault, ClientIndex client, NodeIndex node,
                               ActiveFault& active) {
  clients_.disturb(client, node);
  const auto stream = clients_.stream(client, node);
  switch (fault) {
    case Fault::disconnected:
      if (stream) network_.reset(*stream);
      return;
    case Fault::half_open:
      if (stream) network_.go_dead(*stream);
      return;
    case Fault::cut_to_node:
      return cut(client, node, 1, 0);
    case Fault::cut_from_node:
      return cut(client, node, 0, 1);
    default: {
      const NodeIndex first = scene_.random.below(scene_.plan.engine.nodes);
      for (std::uint32_t i = 0; i < engine::quorum_of(scene_.plan.engine.nodes); ++i) {
        active.nodes.push_back((first + i) % scene_.plan.engine.nodes);
        cut(client, active.nodes.back(), 1, 1);
      }
    }
  }
}

// --- clients

bool Faults::inject_in_client(Fault fault, ClientIndex client) {
  if (clients_.is_paused(client)) return false;
  if (fault >= Fault::request_cancelled) return inject_by_user(fault, client);
  cover(fault, client);
  scene_.note(11, static_cast<std::uint64_t>(fault), client,
              [&] { return fmt::format("FAULT {} (client {})", in_words(fault), client); });
  const Plan& plan = scene_.plan;
  const auto length = [&] {
    return scene_.random.up_to(scene_.random.chance(700) ? plan.engine.node_timeout * 3
                                                         : plan.max_lease() * 2);
  };
  switch (fault) {
    case Fault::client_paused:
      clients_.pause(client, length());
      return true;
    case Fault::client_interrupted:
      clients_.interrupt_next(client);
      return true;
    case Fault::client_crashed:
      clients_.crash(client);
      return true;
    case Fault::client_clock_frozen:
      clients_.freeze(client, length());
      return true;
    default: {
      const bool wild = fault == Fault::client_clock_wild;
      const std::int32_t most = wild ? wild_drift : drift_within;
      clients_.change_speed(client, scene_.random.between(-most, most));
      return true;
    }
  }
}

bool Faults::inject_by_user(Fault fault, ClientIndex client) {
  const Workload::Doing doing = workload_.doing(client);
  switch (fault) {
    case Fault::request_cancelled:
      if (doing.acquiring) cover(fault, client);
      return workload_.cancel_one(client);
    case Fault::release_races_hold:
      if (doing.holding) cover(fault, client);
      return workload_.release_during_hold(client);
    default:
      cover_all(fault);
      return workload_.force_one(client);
  }
}

// --- repairs

void Faults::repair(std::uint32_t number) {
  ActiveFault& active = active_[number];
  if (std::exchange(active.over, true)) return;
  if (happens_to_node(active.fault)) return repair_node(active);
  if (active.fault == Fault::cut_to_node) cut(active.client, active.node, -1, 0);
  if (active.fault == Fault::cut_from_node) cut(active.client, active.node, 0, -1);
  if (active.fault == Fault::cut_majority) {
    for (const NodeIndex node : active.nodes) cut(active.client, node, -1, -1);
  }
}

/// At first all from one, which so falls behind; then each from another.
void Faults::part() {
  const bool again = !scene_.parted.empty();
  for (ClientIndex client = 0; client < scene_.parted.size(); ++client) {
    cut(client, scene_.parted[client], -1, -1);
  }
  scene_.parted.clear();
  if (scene_.ending) return;
  std::vector<NodeIndex> members;  // and some that were
  for (NodeIndex node = 0; node < scene_.nodes.size(); ++node) {
    const SimNode& at = scene_.nodes[node];
    const bool runs = servers_.process(node) == Servers::Process::runs;
    if (runs && at.data.is_marked(at.now_ms(scene_.now))) members.push_back(node);
  }
  const ClientIndex most = scene_.plan.stopped_half_way ? 1 : clients_.count();
  for (ClientIndex client = 0; client < most && !members.empty(); ++client) {
    const NodeIndex node = members[parts_.below(static_cast<std::uint32_t>(members.size()))];
    if (again) std::erase(members, node);
    if (!again) members = {node};
    scene_.parted.push_back(node);
    cut(client, node, 1, 1);
    scene_.note(16, client, node,
                [&] { return fmt::format("client {} is parted from node {}", client, node); });
  }
  const Duration lease = scene_.plan.max_lease();
  scene_.at(scene_.now + seconds(4) + parts_.between(lease * 2, lease * 6), Event::What::parted);
}

void Faults::repair_all() {
  if (scene_.plan.parted) part();
  for (std::uint32_t number = 0; number < active_.size(); ++number) repair(number);
}

void Faults::repair_node(const ActiveFault& active) {
  const NodeIndex node = active.node;
  clients_.disturb_node(node);
  switch (active.fault) {
    case Fault::node_killed:
    case Fault::node_wiped:
      servers_.start(node);
      if (active.fault == Fault::node_wiped && scene_.plan.other_sets &&
          scene_.random.chance(300)) {
        servers_.become_of_another_set(node);
      }
      return;
    case Fault::node_hung:
      return servers_.go_on(node);
    case Fault::node_slow:
      return servers_.be_slow(node, {});
    default:
      if (ailment_of(active.fault) == Ailment::none) return;
      scene_.nodes[node].data.ailment = Ailment::none;
      // It has been a replica; with another master's data it would be against A7.
      if (active.fault == Fault::node_read_only) servers_.promote(node);
  }
}

}  // namespace redlock::simulation
