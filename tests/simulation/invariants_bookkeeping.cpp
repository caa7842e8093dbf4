// SPDX-License-Identifier: MIT
// What the judges remember of clients, requests and grants, and the resource that locks protect.
// What they demand is in invariants.cpp.
#include <algorithm>
#include <fmt/format.h>

#include "simulation/invariants.hpp"

namespace redlock::simulation {

ClientId Invariants::client_starts(const DriftingClock& clock) {
  clients_.push_back({});
  clients_.back().clock = &clock;
  clients_.back().clocks.resize(nodes_.size());
  clients_.back().marker_seen.resize(nodes_.size(), Instant::min());
  clients_.back().learned.resize(nodes_.size(), Instant::min());
  return static_cast<ClientId>(clients_.size() - 1);
}

void Invariants::client_crashes(ClientId client) {
  clients_[client].alive = false;
  clients_[client].requests.clear();
  clients_[client].by_name.clear();
  clients_[client].attempts.clear();
  clients_[client].replaced.clear();
  clients_[client].live.clear();
  clients_[client].ended.clear();
  clients_[client].asked_though_noted.clear();
  clients_[client].owners.clear();
  for (auto& [name, line] : lines_) {
    std::erase_if(line.waiting, [&](const Waiting& who) { return who.client == client; });
  }
}

void Invariants::client_resumes(ClientId id, Instant world, Duration node_timeout) {
  Client& client = clients_[id];
  client.resumed = world;
  for (auto& [number, request] : client.requests) {
    const Instant later =
        std::max(request.expected, local(world, id) + std::max(node_timeout, request.takes));
    request.expected = std::min(request.due, later);
  }
  for (auto& [key, owner] : client.owners) {
    owner.entry_until = std::max(owner.entry_until, local(world, id) + node_timeout);
  }
}

Instant Invariants::local(Instant world, ClientId client) const {
  return clients_[client].clock->read(world);
}

Invariants::Grant* Invariants::find(ClientId client, engine::GrantId grant) {
  const auto found = clients_[client].grants.find(grant);
  return found == clients_[client].grants.end() ? nullptr : &found->second;
}

void Invariants::requested(ClientId client, const Request& request) {
  clients_[client].requests.emplace(request.id, request);
  if (request.name) clients_[client].by_name[request.name.get()] = request.id;
  if (request.acquires) ++counts_.requests;
  begins_to_wait(client, request);
  if (request.owner) ++clients_[client].owners[{*request.name, request.owner->number}].calls;
  if (Grant* grant = find(client, request.extends)) ++grant->extending;
  Grant* const entered = find(client, request.enters);
  if (entered == nullptr) return;
  ++entered->entering;
  const bool renewed = entered->renewed_until != Instant::min();
  if (!renewed && request.renewed_for > Duration::zero()) entered->renewed_until = engine::never;
}

void Invariants::must_end_now(ClientId client, engine::RequestId request, Instant now) {
  const auto found = clients_[client].requests.find(request);
  if (found != clients_[client].requests.end()) found->second.expected = now;
}

void Invariants::end_claim(Grant& grant) {
  std::erase(names_[*grant.name].claims, &grant);
  std::erase(clients_[grant.client].live, &grant);
}

void Invariants::released(Instant world, ClientId client, engine::GrantId id,
                          engine::RequestId request) {
  Grant* grant = find(client, id);
  if (grant == nullptr) return;
  if (request != 0) clients_[client].requests.at(request).releases = id;
  clients_[client].ended.push_back(grant);
  grant->state = State::over;
  grant->over_at = world;
  end_claim(*grant);
  given_back(world, *grant);
  // A client that took the lease up and gives it back leaves nothing of it either.
  if (!grant->taken_up) return;
  Grant*& first = owners_[grant->owner.bits];
  if (first != nullptr) grant->lease = std::max(grant->lease, first->lease);
  first = grant;
}

void Invariants::left(ClientId client, engine::GrantId id) {
  if (Grant* grant = find(client, id)) --grant->count;
}

void Invariants::detached(ClientId client, engine::GrantId id) {
  Grant* grant = find(client, id);
  if (grant == nullptr) return;
  grant->state = State::detached;
  end_claim(*grant);
}

void Invariants::given_up(ClientId client, engine::GrantId id) {
  if (Grant* grant = find(client, id)) grant->given_up = true;
}

void Invariants::validity_ends(Instant world, ClientId client, engine::GrantId id,
                               Instant valid_until) {
  const Grant* grant = find(client, id);
  if (grant == nullptr || grant->valid_until != valid_until) return;
  if (grant->state != State::live && grant->state != State::lost) return;
  // Its clock may run faster than when the end was reckoned.
  if (local(world, client) >= valid_until) return;
  check_possession(world, *grant);
}

/// Its user may believe in it until its validity ends.
void Invariants::check_lost(Instant world, ClientId id) const {
  const Instant now = local(world, id);
  for (const auto& [name, state] : names_) {
    for (const Grant* grant : state.claims) {
      const bool believed =
          grant->client == id && grant->state == State::lost && now < grant->valid_until;
      if (!believed || grant->valid_until <= grant->belief.valid_until() || !judged_.rules)
        continue;
      throw Violation{"what is lost ends no later than a quorum confirmed", name};
    }
  }
}

// --- the resource: it turns old tokens away, and loses no update

std::optional<std::uint64_t> Invariants::read_register(const std::string& name,
                                                       engine::Token token) {
  NameState& state = names_[name];
  if (token < state.register_token) {
    ++counts_.stale_writes;
    return std::nullopt;
  }
  state.register_token = token;
  return state.register_value;
}

void Invariants::write_register(const std::string& name, engine::Token token, std::uint64_t value) {
  NameState& state = names_[name];
  if (token < state.register_token) {
    ++counts_.stale_writes;
    return;
  }
  state.register_token = token;
  state.register_value = value;
  ++state.updates;
  if (judged_.tokens && state.register_value != state.updates) {
    throw Violation{"a fenced register loses no update",
                    fmt::format("{}: {} updates, value {}", name, state.updates, value)};
  }
}

// --- in the end

void Invariants::must_be_tidy(Instant world, std::uint32_t node, Duration grace) const {
  const SimNode& at = nodes_[node];
  for (const std::string_view name : at.data.locks(at.now_ms(world))) {
    const auto lock = at.data.lock(name, at.now_ms(world));
    if (lock->foreign_type) continue;
    const auto owner = owners_.find(lock->owner.bits);
    if (owner == owners_.end()) continue;
    const Grant& grant = *owner->second;
    if (grant.state != State::over || !clients_[grant.client].alive) continue;
    // What two processes cannot tell apart is left to end by itself.
    if (drawn_twice_.contains(lock->owner.bits)) continue;
    const WellSince well = well_since_(grant.client, node);
    if (!well) continue;
    // What is owed to a node is remembered for one lease by clocks that may be wrong.
    if (!judged_.clocks && *well > grant.over_at + grant.lease / 2) continue;
    // Who handed the grant over may have asked the node for it, too: that may be executed when this
    // client owes the node nothing any more, by a clock that may be 2 % fast.
    const Instant owed = grant.over_at + std::max<Duration>(grant.lease, max_lease_) * 98 / 100;
    const std::chrono::milliseconds left(lock->ends_ms.value_or(0) - at.now_ms(world));
    if (grant.taken_up && std::max(*well, world + left - grant.lease) > owed) continue;
    if (world - std::max(*well, grant.over_at) < grace) continue;
    throw Violation{
        "an ended grant leaves nothing behind",
        fmt::format("node {} still has grant {} of client {}", node, grant.id, grant.client)};
  }
}

void Invariants::must_be_done() const {
  for (const Client& client : clients_) {
    if (client.requests.empty()) continue;
    throw Violation{"every request ends exactly once", "a request never ended"};
  }
}

}  // namespace redlock::simulation
