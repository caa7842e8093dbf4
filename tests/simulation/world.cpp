// SPDX-License-Identifier: MIT
#include "simulation/world.hpp"

#include <utility>

#include "engine/stripe.hpp"

namespace redlock::simulation {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Instant year_2026{seconds(1'767'225'600)};
/// Half of the drift allowance each, less a little, for client and node.
constexpr std::int32_t drift_within = 4'500;
constexpr std::int64_t drift_ppm = 10'000;

}  // namespace

World::World(Plan plan, Trace& trace, Coverage& coverage)
    : plan_(std::move(plan)),
      trace_(trace),
      coverage_(coverage),
      random_(plan_.seed ^ 0x5eedU),
      now_(seconds(1)),
      invariants_({plan_.judges_tokens(), plan_.judges_exclusion(), plan_.judges_possession(),
                   plan_.kind != WorldKind::wild_clocks, plan_.judges_rules, plan_.cloned},
                  nodes_, drift_ppm, plan_.engine.max_lease) {
  for (std::uint32_t node = 0; node < plan_.engine.nodes; ++node) {
    const Duration offset = random_.between(-milliseconds(300), milliseconds(300));
    nodes_.push_back(
        {{}, {now_, year_2026 + offset, random_.between(-drift_within, drift_within)}});
  }
  for (SimNode& node : nodes_) {
    if (plan_.engine.quarantine) node.model.adopt(own_set);
  }
  if (plan_.absurd_clock) {
    nodes_.back().wall.step(now_, std::chrono::hours(24 * 365 * 80));
  }
  if (plan_.damaged_fence) {
    for (const std::string& name : plan_.names) {
      nodes_.front().model.set_fence(engine::stripe_of(name), engine::token_limit / 4 * 3 - 2);
    }
    invariants_.fence_damaged(0);
  }
  states_.resize(nodes_.size());
  for (NodeState& state : states_) state.started = now_ - std::chrono::hours(1);
  for (std::uint32_t client = 0; client < plan_.clients; ++client) {
    const Instant local{random_.between(seconds(1), seconds(100'000))};
    const std::int32_t drift = random_.between(-drift_within, drift_within);
    clients_.emplace_back(now_, local, drift, random_.next());
    for (std::uint32_t i = 0; i < plan_.users_per_client; ++i) {
      users_.emplace_back().client = client;
    }
    start(client);
  }
  next_fault();
  at(now_ + milliseconds(500), Event::What::tidy);
}

void World::at(Instant when, Event::What what, std::uint32_t a, std::uint32_t b, std::uint64_t c) {
  agenda_.add({.when = when, .what = what, .a = a, .b = b, .c = c});
}

void World::run() {
  const Instant faults_end = now_ + plan_.length;
  while (!agenda_.empty() && agenda_.next() < faults_end) dispatch(agenda_.pop());

  // Everything is repaired, given back, and there is time for it to become true.
  now_ = faults_end;
  ending_ = true;
  for (std::uint32_t fault = 0; fault < active_.size(); ++fault) repair(fault);
  for (std::uint32_t client = 0; client < clients_.size(); ++client) {
    clients_[client].interrupt = false;
    if (clients_[client].paused) resume(client);
  }
  for (User& user : users_) {
    leave(user);
    turn(user.client);
  }
  const Instant end = now_ + seconds(3) + plan_.engine.node_timeout * 4;
  while (!agenda_.empty() && agenda_.next() < end) dispatch(agenda_.pop());
  now_ = end;
  tidy();
  invariants_.must_be_done();
}

void World::dispatch(const Event& event) {
  now_ = event.when;
  switch (event.what) {
    case Event::What::at_node:
      return packet_at_node(event.a);
    case Event::What::at_client:
      return packet_at_client(event);
    case Event::What::timer:
      return timer(event);
    case Event::What::connect:
      return connect(event.a, event.b);
    case Event::What::connect_timeout:
      return connect_timeout(event.a);
    case Event::What::silence:
      return silence(event);
    case Event::What::resume:
      return resume(event.a);
    case Event::What::revive:
      return start(event.a);
    case Event::What::user:
      return user_event(event);
    case Event::What::next_fault:
      next_fault();
      return inject();
    case Event::What::fault:
      return event.c == fault_count ? inject() : inject(static_cast<Fault>(event.c), event.a);
    case Event::What::repair:
      return repair(event.a);
    case Event::What::validity_ends:
      return invariants_.validity_ends(now_, event.a, event.c, event.until);
    case Event::What::many_forget:
      return many_forget();
    case Event::What::probe:
      return probe(event);
    case Event::What::tend:
      return tend_marker(event);
    case Event::What::tidy:
      tidy();
      return at(now_ + milliseconds(500), Event::What::tidy);
  }
}

/// Looks at what is left on the nodes, and takes away what is nobody's.
void World::tidy() {
  for (SimNode& node : nodes_) {
    for (const std::string& name : plan_.names) node.model.remove_foreign(name);
  }
  // A release that a node refused is repeated after half a second of a clock that may be slow.
  const Duration slow = plan_.slow_per_mille > 0 ? plan_.engine.node_timeout * 3 : Duration::zero();
  const Duration grace = milliseconds(700) + slow + (plan_.delay_min + plan_.delay_jitter) * 4;
  for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
    invariants_.must_be_tidy(now_, node, grace, [&](ClientId life) -> Invariants::WellSince {
      for (std::uint32_t client = 0; client < clients_.size(); ++client) {
        if (clients_[client].life != life || !clients_[client].alive) continue;
        if (!well(client, node)) return std::nullopt;
        return clients_[client].links[node].disturbed;
      }
      return std::nullopt;
    });
  }
}

}  // namespace redlock::simulation
