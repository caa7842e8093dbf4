// SPDX-License-Identifier: MIT
#include "simulation/owner_users.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <span>
#include <utility>

namespace redlock::simulation {

using std::chrono::milliseconds;

namespace {

constexpr std::size_t most_calls = 4;  // of one owner at once

}  // namespace

OwnerUsers::OwnerUsers(Scene& scene, Clients& clients) : UsersOf(scene, clients) {
  for (ClientIndex client = 0; client < scene.plan.clients; ++client) {
    for (std::uint32_t i = 0; i < scene.plan.owners_per_client; ++i) {
      users_.emplace_back().client = client;
    }
  }
}

void OwnerUsers::event(const Event& event) {
  OwnerUser& owner = users_[event.a];
  if (!may_act(owner, event)) return;
  act(owner);
  clients_.turn(owner.client);
  // Sooner while calls are under way: what they do to each other is what matters here.
  const Duration soon = std::min<Duration>(scene_.plan.engine.node_timeout, scene_.plan.think);
  next(owner, owner.calls.empty() ? scene_.plan.think * 2 : soon * 2);
}

void OwnerUsers::act(OwnerUser& owner) {
  const std::uint32_t choice = scene_.random.below(100);
  if (!owner.calls.empty() && choice < 15) {
    return cancel(owner, scene_.random.pick(std::span<const engine::RequestId>(owner.calls)));
  }
  if (owner.levels > 0 && (owner.lost ? choice < 60 : choice < 35)) return leave(owner);
  if (owner.levels > 0 && choice < 55) return use(owner);
  for (std::uint32_t i = 0; i <= scene_.random.below(3); ++i) take(owner);
}

void OwnerUsers::take(OwnerUser& owner) {
  if (owner.calls.size() >= most_calls) return;
  const Plan& plan = scene_.plan;
  const Instant now = local(owner);
  const Duration timeout = plan.engine.node_timeout;
  if (owner.calls.empty() && owner.levels == 0) {
    owner.name = scene_.random.pick(std::span<const std::string>(plan.names));
  }
  const milliseconds lease = any_lease(owner);
  engine::AcquireRequest what{.name = std::make_shared<const std::string>(owner.name),
                              .lease = lease,
                              .renew = scene_.random.chance(plan.renew_per_mille),
                              .max_hold = std::nullopt};
  if (scene_.random.chance(900)) {
    what.in_order = plan.keeps_order(scene_.last_request + 1);
    what.wait = scene_.random.chance(100) ? Duration::max() : scene_.random.up_to(timeout * 20);
  }
  if (scene_.random.chance(250)) what.deadline = now + scene_.random.up_to(timeout * 2);
  // The last attempt begins before the waiting time is over, or behind an entry that began by then
  // and found the lease given back.
  const Duration takes = plan.turns_of(owner.client) + timeout;
  const bool bounded = what.wait != Duration::max();
  const Instant expected = bounded ? now + what.wait + takes : engine::never;
  const engine::RequestId request = ++scene_.last_request;
  owner.calls.push_back(request);
  scene_.invariants.requested(life(owner),
                              {.id = request,
                               .name = what.name,
                               .expected = std::min(expected, what.deadline),
                               .due = what.deadline,
                               .takes = takes,
                               .acquires = true,
                               .lease = lease,
                               .owner = Invariants::TakingOwner{number(owner), timeout},
                               .in_order = what.in_order,
                               .waits_until = waits_until(what, now),
                               .began = scene_.now});
  engine(owner).take(now, request, {.owner = number(owner), .acquire = std::move(what)});
}

void OwnerUsers::use(OwnerUser& owner) {
  const std::uint32_t choice = scene_.random.below(100);
  if (choice == 0 && !owner.lost) {
    give_up(owner);
  } else if (choice < 30) {
    extend(owner);
  } else if (owner.read) {
    scene_.invariants.write_register(owner.name, owner.token, *std::exchange(owner.read, {}) + 1);
  } else {
    owner.read = scene_.invariants.read_register(owner.name, owner.token);
  }
}

/// One level; with the last one the lease is given back, perhaps under a call that enters it.
void OwnerUsers::leave(OwnerUser& owner) {
  const bool last = owner.levels == 1;
  const Duration takes = last ? scene_.plan.engine.node_timeout : Duration::zero();
  const engine::RequestId id = scene_.random.chance(500) ? request(owner, takes) : 0;
  const engine::OwnerKey key{std::make_shared<const std::string>(owner.name), number(owner)};
  const engine::GrantId released = engine(owner).leave(local(owner), id, key);
  scene_.invariants.left_by_owner(scene_.now, life(owner), owner.name, number(owner), released);
  if (--owner.levels > 0) return;
  owner.grant = 0;
  owner.read.reset();
  owner.lost = false;
}

void OwnerUsers::on_output(ClientIndex client, const engine::ClientOutput& output) {
  const auto* const finish = std::get_if<engine::Finish>(&output);
  const auto* const loss = std::get_if<engine::LeaseLost>(&output);
  for (OwnerUser& owner : users_) {
    if (owner.client != client) continue;
    if (loss != nullptr && owner.grant == loss->grant) owner.lost = true;
    if (finish == nullptr) continue;
    if (finish->request == owner.extending) owner.extending = 0;
    if (std::erase(owner.calls, finish->request) > 0) taken(owner, *finish);
  }
}

void OwnerUsers::taken(OwnerUser& owner, const engine::Finish& finish) {
  ++owner.failures;
  if (const auto* acquired = std::get_if<engine::AcquireSucceeded>(&finish.result)) {
    owner.grant = acquired->grant;
    owner.token = acquired->token;
    owner.levels = 1;
    watch_validity(owner.client, acquired->grant, acquired->valid_until);
  } else if (std::holds_alternative<engine::EnterSucceeded>(finish.result)) {
    ++owner.levels;
  } else {
    return;
  }
  owner.failures = 0;
  if (scene_.ending) leave(owner);
}

void OwnerUsers::end() {
  for (OwnerUser& owner : users_) {
    ++owner.turn;
    if (!clients_.is_alive(owner.client)) continue;
    for (const engine::RequestId call : owner.calls) cancel(owner, call);
    clients_.turn(owner.client);
    while (owner.levels > 0) {
      leave(owner);
      clients_.turn(owner.client);
    }
  }
}

}  // namespace redlock::simulation
