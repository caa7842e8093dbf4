// SPDX-License-Identifier: MIT
#include "simulation/workload.hpp"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "simulation/faults.hpp"

namespace redlock::simulation {

using std::chrono::milliseconds;

// --- all users

bool LockUsers::may_act(const LockUser& user, const Event& event) {
  const bool is_stale = event.c != user.turn || !clients_.is_alive(user.client) || scene_.ending;
  return !is_stale && !clients_.defer(user.client, event);
}

milliseconds LockUsers::any_lease(const LockUser& user) {
  const Plan& plan = scene_.plan;
  if (plan.takes_raised(user.client) && scene_.random.chance(600)) return plan.raised;
  return scene_.random.pick(std::span<const milliseconds>(scene_.plan.leases));
}

engine::RequestId LockUsers::request(const LockUser& user, Duration takes,
                                     engine::GrantId extends) {
  const engine::RequestId id = ++scene_.last_request;
  scene_.invariants.requested(
      life(user), {.id = id, .name = {}, .expected = local(user) + takes, .extends = extends});
  return id;
}

void LockUsers::extend(LockUser& user) {
  if (user.extending != 0) return;
  user.extending = request(user, scene_.plan.engine.node_timeout, user.grant);
  engine(user).extend(local(user), user.extending, user.grant, any_lease(user));
}

void LockUsers::cancel(const LockUser& user, engine::RequestId request, Errc why) {
  scene_.invariants.must_end_now(life(user), request, local(user));
  engine(user).cancel(local(user), request, why);
}

void LockUsers::give_up(const LockUser& user) {
  scene_.invariants.given_up(life(user), user.grant);
  engine(user).give_up(local(user), user.grant, LossReason::nodes_unavailable);
}

void LockUsers::watch_validity(ClientIndex client, engine::GrantId grant, Instant valid_until) {
  const Instant ends = clients_.when(client, valid_until);
  if (!scene_.plan.judges_possession() || ends <= scene_.now || ends == engine::never) return;
  scene_.agenda.add({.when = ends - Duration(1),
                     .what = Event::What::validity_ends,
                     .a = clients_.life(client),
                     .c = grant,
                     .until = valid_until});
}

Instant LockUsers::waits_until(const engine::AcquireRequest& what, Instant now) {
  return what.wait > engine::never - now ? what.deadline : std::min(now + what.wait, what.deadline);
}

// --- those of the ordinary calls

Workload::Workload(Scene& scene, Clients& clients, Faults& faults)
    : UsersOf(scene, clients), faults_(faults) {
  for (ClientIndex client = 0; client < scene.plan.clients; ++client) {
    const std::uint32_t users = scene.plan.users_of(client);
    for (std::uint32_t i = 0; i < users; ++i) users_.emplace_back().client = client;
  }
}

Workload::Doing Workload::doing(ClientIndex client) const {
  Doing doing;
  for (const User& user : users_) {
    if (user.client != client) continue;
    doing.idle = doing.idle || user.state == User::State::idle;
    doing.acquiring = doing.acquiring || user.state == User::State::acquiring;
    doing.holding = doing.holding || user.state == User::State::holding;
  }
  return doing;
}

void Workload::user_event(const Event& event) {
  User& user = users_[event.a];
  if (!may_act(user, event)) return;
  switch (user.state) {
    case User::State::idle:
      begin_request(user);
      break;
    case User::State::acquiring:
      cancel(user, user.request);
      break;
    case User::State::holding:
      use_lease(user);
      break;
    case User::State::ending:
      break;
  }
  clients_.turn(user.client);
}

void Workload::begin_request(User& user) {
  user = {{.client = user.client, .turn = user.turn + 1, .failures = user.failures},
          User::State::acquiring};
  user.request = ++scene_.last_request;
  user.lease = any_lease(user);
  if (scene_.plan.cloned && scene_.random.chance(100)) clone(user.client);
  if (handed_over_ && scene_.random.chance(500)) return take_over(user);
  begin_acquire(user);
  if (scene_.random.chance(60)) next(user, scene_.plan.engine.node_timeout * 2);  // to cancel it
}

void Workload::clone(ClientIndex client) {
  const ClientIndex other = scene_.random.below(scene_.plan.clients);
  clients_.copy_random(client, other);
  if (other == client || !clients_.is_alive(other) || clients_.is_paused(other)) return;
  for (User& user : users_) {
    const bool starts = user.client == other && user.state == User::State::idle;
    if (starts) next(user, scene_.plan.longest_way());
  }
}

/// In a crowd each has a lock of its own.
const std::string& Workload::name_for(const User& user) {
  const std::vector<std::string>& names = scene_.plan.names;
  if (!scene_.plan.crowd || user.client != 0) {
    return scene_.random.pick(std::span<const std::string>(names));
  }
  return names[static_cast<std::size_t>(&user - users_.data()) % names.size()];
}

void Workload::begin_acquire(User& user) {
  const Instant now = local(user);
  const Duration timeout = scene_.plan.engine.node_timeout;
  user.name = name_for(user);
  engine::AcquireRequest what{.name = std::make_shared<const std::string>(user.name),
                              .lease = user.lease,
                              .max_hold = std::nullopt};
  if (scene_.random.chance(200)) {
    // Sometimes all but what a few messages take.
    const Duration most = user.lease - user.lease / 50 - milliseconds(3);
    what.min_validity = std::max(most - scene_.random.up_to(most), Duration::zero());
    faults_.attract_fault(user.client, Fault::client_paused, 200);
  }
  if (user.client < scene_.plan.too_late_clients && scene_.random.chance(950)) {
    what.min_validity = user.lease - user.lease / 50 - milliseconds(1);
  }
  what.renew = scene_.random.chance(scene_.plan.renew_per_mille);
  Duration renewed_for = what.renew ? Duration::max() : Duration::zero();
  if (what.renew && scene_.random.chance(300)) {
    what.max_hold = scene_.random.up_to(user.lease * 4);
    renewed_for = *what.max_hold + timeout;
  }
  if (scene_.random.chance(scene_.plan.contention_per_mille)) {
    what.wait = scene_.random.chance(100) ? Duration::max() : scene_.random.up_to(timeout * 20);
  }
  what.in_order = scene_.plan.keeps_order(user.request);
  if (scene_.random.chance(150)) what.deadline = now + scene_.random.up_to(timeout * 2);
  // A waiting time does not cut an attempt under way: that is a vote and perhaps a settling round.
  const bool bounded = what.wait != Duration::max();
  // Nor does it shorten the turns of others, when attempts wait for them.
  const Duration turns = scene_.plan.turns_of(user.client);
  const Instant expected = bounded ? now + what.wait + turns : engine::never;
  scene_.invariants.requested(life(user), {.id = user.request,
                                           .name = what.name,
                                           .expected = std::min(expected, what.deadline),
                                           .due = what.deadline,
                                           .takes = turns,
                                           .min_validity = what.min_validity,
                                           .acquires = true,
                                           .lease = user.lease,
                                           .renewed_for = renewed_for,
                                           .in_order = what.in_order,
                                           .waits_until = waits_until(what, now),
                                           .began = scene_.now});
  engine(user).acquire(now, user.request, std::move(what));
}

void Workload::take_over(User& user) {
  const Instant now = local(user);
  engine::AttachRequest what = *std::exchange(handed_over_, std::nullopt);
  user.name = *what.name;
  user.lease = what.lease;
  what.name = std::make_shared<const std::string>(user.name);
  // Sometimes what was passed on is wrong.
  const bool wrong = scene_.random.chance(100);
  if (wrong) {
    what.token = scene_.random.chance(500) ? what.token + 1 + scene_.random.below(3)
                                           : engine::token_limit - 9;
  }
  scene_.invariants.requested(life(user), {.id = user.request,
                                           .name = what.name,
                                           .expected = now + scene_.plan.engine.node_timeout,
                                           .lease = user.lease,
                                           .takes_up = !wrong && scene_.plan.lie == Lie::none});
  engine(user).attach(now, user.request, what);
}

void Workload::use_lease(User& user) {
  const bool valid = !user.lost && local(user) < user.valid_until;
  if (!valid && scene_.random.chance(500)) return give_back(user, scene_.random.chance(500));
  const std::uint32_t choice = scene_.random.below(100);
  if (user.read && choice < 70) {
    scene_.invariants.write_register(user.name, user.token, *std::exchange(user.read, {}) + 1);
  } else if (choice < 60) {
    user.read = scene_.invariants.read_register(user.name, user.token);
  } else if (choice < 72) {
    extend(user);
    return next(user, scene_.plan.think);
  } else if (choice < 80) {
    enter(user);
    return next(user, scene_.plan.think);
  } else if (choice < 85) {
    leave_one(user);
    return next(user, scene_.plan.think);
  } else if (choice == 99 && valid) {
    give_up(user);
    return next(user, scene_.plan.think);
  } else if (choice < 90 && valid) {
    return hand_over(user);
  }
  if (!scene_.random.chance(scene_.plan.keep_per_mille))
    return give_back(user, scene_.random.chance(500));
  next(user, scene_.random.chance(100) ? Duration(user.lease) * 2 : scene_.plan.think);
}

void Workload::enter(User& user) {
  const Instant now = local(user);
  const engine::RequestId request = ++scene_.last_request;
  user.entering.push_back(request);
  engine::EnterRequest what{.grant = user.grant};
  what.lease = any_lease(user);
  what.renew = scene_.random.chance(scene_.plan.renew_per_mille);
  scene_.invariants.requested(life(user),
                              {.id = request,
                               .name = {},
                               .expected = now + scene_.plan.engine.node_timeout,
                               .enters = user.grant,
                               .renewed_for = what.renew ? Duration::max() : Duration::zero()});
  engine(user).enter(now, request, what);
  faults_.attract_fault(user.client, {}, 100);
}

void Workload::leave_one(User& user) {
  if (user.count == 1) return;
  --user.count;
  scene_.invariants.left(life(user), user.grant);
  engine(user).leave(local(user), user.grant);
}

void Workload::give_back(User& user, bool wait_for_it) {
  user.request = wait_for_it ? request(user, scene_.plan.engine.node_timeout) : 0;
  user.state = wait_for_it ? User::State::ending : User::State::idle;
  scene_.invariants.released(scene_.now, life(user), user.grant, user.request);
  engine(user).release(local(user), user.request, user.grant);
  if (!wait_for_it) next(user, scene_.plan.think);
}

void Workload::hand_over(User& user) {
  scene_.invariants.detached(life(user), user.grant);
  engine(user).detach(local(user), user.grant);
  handed_over_ = engine::AttachRequest{.name = std::make_shared<const std::string>(user.name),
                                       .owner = user.owner,
                                       .token = user.token,
                                       .lease = user.lease,
                                       .renew = scene_.random.chance(500),
                                       .max_hold = std::nullopt};
  user.state = User::State::idle;
  next(user, scene_.plan.think);
}

User* Workload::of_request(std::uint32_t client, engine::RequestId request) {
  const auto found = std::ranges::find_if(users_, [&](const User& user) {
    return user.client == client && (user.request == request || user.extending == request ||
                                     std::ranges::count(user.entering, request) > 0);
  });
  return found == users_.end() ? nullptr : &*found;
}

User* Workload::of_grant(std::uint32_t client, engine::GrantId grant) {
  const auto found = std::ranges::find_if(users_, [&](const User& user) {
    return user.client == client && user.grant == grant && user.state == User::State::holding;
  });
  return found == users_.end() ? nullptr : &*found;
}

void Workload::on_output(std::uint32_t client, const engine::ClientOutput& output) {
  if (const auto* finish = std::get_if<engine::Finish>(&output)) {
    if (User* user = of_request(client, finish->request)) finished(*user, *finish);
  } else if (const auto* changed = std::get_if<engine::ValidityChanged>(&output)) {
    if (User* user = of_grant(client, changed->grant)) {
      user->valid_until = changed->valid_until;
    }
    watch_validity(client, changed->grant, changed->valid_until);
  } else if (const auto* loss = std::get_if<engine::LeaseLost>(&output)) {
    if (User* user = of_grant(client, loss->grant)) user->lost = true;
  }
}

void Workload::finished(User& user, const engine::Finish& finish) {
  if (finish.request == user.extending) {
    user.extending = 0;
    return;
  }
  if (std::erase(user.entering, finish.request) > 0) {
    if (std::holds_alternative<engine::EnterSucceeded>(finish.result)) ++user.count;
    return;
  }
  if (const auto* success = std::get_if<engine::AcquireSucceeded>(&finish.result)) {
    user.state = User::State::holding;
    user.failures = 0;
    user.grant = success->grant;
    user.owner = success->owner;
    user.token = success->token;
    user.valid_until = success->valid_until;
    watch_validity(user.client, success->grant, success->valid_until);
    if (scene_.plan.kind == WorldKind::forgetful && scene_.random.chance(250)) {
      scene_.at(scene_.now + scene_.random.up_to(user.lease / 2), Event::What::many_forget);
    }
    if (scene_.ending) return leave(user);
  } else {
    user.state = User::State::idle;
    ++user.failures;
  }
  next(user, scene_.plan.think);
}

void Workload::end() {
  for (User& user : users_) leave(user);
  for (ClientIndex client = 0; client < clients_.count(); ++client) clients_.turn(client);
}

void Workload::leave(User& user) {
  ++user.turn;
  if (!clients_.is_alive(user.client)) return;
  if (user.state == User::State::acquiring) {
    cancel(user, user.request, Errc::closed);
  } else if (user.state == User::State::holding) {
    give_back(user, true);
  }
}

// --- at the worst moment

bool Workload::cancel_one(ClientIndex client) {
  for (User& user : users_) {
    if (user.client != client || user.state != User::State::acquiring) continue;
    cancel(user, user.request);
    clients_.turn(client);
    return true;
  }
  return false;
}

bool Workload::release_during_hold(ClientIndex client) {
  for (User& user : users_) {
    if (user.client != client || user.state != User::State::holding) continue;
    extend(user);
    clients_.turn(client);
    if (clients_.is_paused(client)) return true;
    give_back(user, scene_.random.chance(500));
    clients_.turn(client);
    return true;
  }
  return false;
}

bool Workload::force_one(ClientIndex operator_at) {
  for (User& user : users_) {
    if (user.state != User::State::holding || scene_.random.chance(500)) continue;
    // Most often beside a round of the holder, which then finds it here and there.
    if (!clients_.is_paused(user.client) && scene_.random.chance(700)) {
      extend(user);
      clients_.turn(user.client);
      if (user.state != User::State::holding) return false;
      if (!clients_.is_alive(operator_at) || clients_.is_paused(operator_at)) return false;
    }
    const Instant now = clients_.local(operator_at);
    const engine::RequestId request = ++scene_.last_request;
    scene_.invariants.requested(clients_.life(operator_at),
                                {.id = request,
                                 .name = {},
                                 .expected = now + scene_.plan.engine.node_timeout,
                                 .forces = Invariants::Forced{user.name, user.owner}});
    clients_.engine(operator_at)
        .force_release(now, request, std::make_shared<const std::string>(user.name), user.owner);
    clients_.turn(operator_at);
    return true;
  }
  return false;
}

}  // namespace redlock::simulation
