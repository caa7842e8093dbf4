// SPDX-License-Identifier: MIT
// What people do with locks: take them, use the protected register (some without a look at whether
// they still may), lengthen, hand over, give back, or just go away.
#include <algorithm>
#include <memory>
#include <utility>

#include "simulation/world.hpp"

namespace redlock::simulation {

using std::chrono::milliseconds;

void World::user_next(User& user, Duration at_most) {
  const auto index = static_cast<std::uint32_t>(&user - users_.data());
  at(now_ + random_.up_to(at_most), Event::What::user, index, 0, ++user.turn);
}

void World::user_event(const Event& event) {
  User& user = users_[event.a];
  if (event.c != user.turn || !clients_[user.client].alive || ending_) return;
  if (defer(user.client, event)) return;
  switch (user.state) {
    case User::State::idle:
      begin_request(user);
      break;
    case User::State::acquiring: {
      invariants_.must_end_now(clients_[user.client].life, user.request, local(user.client));
      clients_[user.client].engine->cancel(local(user.client), user.request, Errc::cancelled);
      break;
    }
    case User::State::holding:
      use_lease(user);
      break;
    case User::State::ending:
      break;
  }
  turn(user.client);
}

void World::begin_request(User& user) {
  user = {.client = user.client, .turn = user.turn + 1, .state = User::State::acquiring};
  user.request = ++last_request_;
  user.lease = random_.pick(std::span<const milliseconds>(plan_.leases));
  if (plan_.cloned && random_.chance(100)) clone(user.client);
  if (handed_over_ && random_.chance(500)) return take_over(user);
  begin_acquire(user);
  if (random_.chance(60)) user_next(user, plan_.engine.node_timeout * 2);  // to cancel it
}

/// Another client goes on as a copy of this one's machine: with the same random numbers.
void World::clone(std::uint32_t client) {
  const std::uint32_t other = random_.below(plan_.clients);
  clients_[other].random = clients_[client].random;
  for (User& user : users_) {
    const bool starts = user.client == other && other != client && clients_[other].alive &&
                        !clients_[other].paused && user.state == User::State::idle;
    if (starts) user_next(user, plan_.delay_min + plan_.delay_jitter);
  }
}

void World::begin_acquire(User& user) {
  const Instant now = local(user.client);
  const Duration timeout = plan_.engine.node_timeout;
  user.name = random_.pick(std::span<const std::string>(plan_.names));
  engine::AcquireRequest what{.name = std::make_shared<const std::string>(user.name),
                              .lease = user.lease,
                              .max_hold = std::nullopt};
  if (random_.chance(200)) {
    // Sometimes all but what a few messages take.
    const Duration most = user.lease - user.lease / 50 - milliseconds(3);
    what.min_validity = std::max(most - random_.up_to(most), Duration::zero());
    attract_fault(user.client, Fault::client_paused, 200);
  }
  what.renew = random_.chance(plan_.renew_per_mille);
  if (what.renew && random_.chance(300)) what.max_hold = random_.up_to(user.lease * 4);
  if (random_.chance(plan_.contention_per_mille)) {
    what.wait = random_.chance(100) ? Duration::max() : random_.up_to(timeout * 20);
  }
  if (random_.chance(150)) what.deadline = now + random_.up_to(timeout * 2);
  // A waiting time does not cut an attempt under way: that is a vote and perhaps a settling round.
  const bool bounded = what.wait != Duration::max();
  // Nor does it shorten the turns of others, when attempts wait for them.
  const auto turns = static_cast<int>(plan_.users_per_client);
  const Instant expected = bounded ? now + what.wait + timeout * 2 * turns : engine::never;
  invariants_.requested(clients_[user.client].life, {.id = user.request,
                                                     .name = what.name,
                                                     .expected = std::min(expected, what.deadline),
                                                     .due = what.deadline,
                                                     .takes = timeout * 2 * turns,
                                                     .min_validity = what.min_validity,
                                                     .acquires = true,
                                                     .lease = user.lease});
  clients_[user.client].engine->acquire(now, user.request, std::move(what));
}

void World::take_over(User& user) {
  const Instant now = local(user.client);
  engine::AttachRequest what = *std::exchange(handed_over_, std::nullopt);
  user.name = *what.name;
  user.lease = what.lease;
  what.name = std::make_shared<const std::string>(user.name);
  // Sometimes what was passed on is wrong.
  if (random_.chance(100)) {
    what.token = random_.chance(500) ? what.token + 1 + random_.below(3) : engine::token_limit - 9;
  }
  invariants_.requested(clients_[user.client].life, {.id = user.request,
                                                     .name = what.name,
                                                     .expected = now + plan_.engine.node_timeout,
                                                     .lease = user.lease});
  clients_[user.client].engine->attach(now, user.request, what);
}

void World::use_lease(User& user) {
  const bool valid = !user.lost && local(user.client) < user.valid_until;
  if (!valid && random_.chance(500)) return give_back(user, random_.chance(500));
  const std::uint32_t choice = random_.below(100);
  if (user.read && choice < 70) {
    invariants_.write_register(user.name, user.token, *std::exchange(user.read, {}) + 1);
  } else if (choice < 60) {
    user.read = invariants_.read_register(user.name, user.token);
  } else if (choice < 72) {
    extend(user);
    return user_next(user, plan_.think);
  } else if (choice < 80) {
    enter(user);
    return user_next(user, plan_.think);
  } else if (choice < 85) {
    leave_one(user);
    return user_next(user, plan_.think);
  } else if (choice == 99 && valid) {
    // As the guard does when its client was too late for the loss.
    invariants_.given_up(clients_[user.client].life, user.grant);
    clients_[user.client].engine->give_up(local(user.client), user.grant,
                                          LossReason::nodes_unavailable);
    return user_next(user, plan_.think);
  } else if (choice < 90 && valid) {
    return hand_over(user);
  }
  if (!random_.chance(plan_.keep_per_mille)) return give_back(user, random_.chance(500));
  user_next(user, random_.chance(100) ? Duration(user.lease) * 2 : plan_.think);
}

void World::extend(User& user) {
  if (user.extending != 0) return;
  user.extending = ++last_request_;
  const Instant now = local(user.client);
  invariants_.requested(
      clients_[user.client].life,
      {.id = user.extending, .name = {}, .expected = now + plan_.engine.node_timeout});
  clients_[user.client].engine->extend(now, user.extending, user.grant,
                                       random_.pick(std::span<const milliseconds>(plan_.leases)));
}

void World::enter(User& user) {
  const Instant now = local(user.client);
  const engine::RequestId request = ++last_request_;
  user.entering.push_back(request);
  invariants_.requested(clients_[user.client].life, {.id = request,
                                                     .name = {},
                                                     .expected = now + plan_.engine.node_timeout,
                                                     .enters = user.grant});
  engine::EnterRequest what{.grant = user.grant};
  what.lease = random_.pick(std::span<const milliseconds>(plan_.leases));
  what.renew = random_.chance(plan_.renew_per_mille);
  clients_[user.client].engine->enter(now, request, what);
  attract_fault(user.client, {}, 100);
}

void World::leave_one(User& user) {
  if (user.count == 1) return;
  --user.count;
  invariants_.left(clients_[user.client].life, user.grant);
  clients_[user.client].engine->leave(local(user.client), user.grant);
}

void World::give_back(User& user, bool wait_for_it) {
  const Instant now = local(user.client);
  const ClientId life = clients_[user.client].life;
  const engine::RequestId request = wait_for_it ? ++last_request_ : 0;
  if (wait_for_it) {
    invariants_.requested(life,
                          {.id = request, .name = {}, .expected = now + plan_.engine.node_timeout});
  }
  invariants_.released(now_, life, user.grant);
  user.request = request;
  user.state = wait_for_it ? User::State::ending : User::State::idle;
  clients_[user.client].engine->release(now, request, user.grant);
  if (!wait_for_it) user_next(user, plan_.think);
}

void World::hand_over(User& user) {
  invariants_.detached(clients_[user.client].life, user.grant);
  clients_[user.client].engine->detach(local(user.client), user.grant);
  handed_over_ = engine::AttachRequest{.name = std::make_shared<const std::string>(user.name),
                                       .owner = user.owner,
                                       .token = user.token,
                                       .lease = user.lease,
                                       .renew = random_.chance(500),
                                       .max_hold = std::nullopt};
  user.state = User::State::idle;
  user_next(user, plan_.think);
}

World::User* World::user_of_request(std::uint32_t client, engine::RequestId request) {
  const auto found = std::ranges::find_if(users_, [&](const User& user) {
    return user.client == client && (user.request == request || user.extending == request ||
                                     std::ranges::count(user.entering, request) > 0);
  });
  return found == users_.end() ? nullptr : &*found;
}

World::User* World::user_of_grant(std::uint32_t client, engine::GrantId grant) {
  const auto found = std::ranges::find_if(users_, [&](const User& user) {
    return user.client == client && user.grant == grant && user.state == User::State::holding;
  });
  return found == users_.end() ? nullptr : &*found;
}

void World::tell_user(std::uint32_t client, const engine::ClientOutput& output) {
  if (const auto* finish = std::get_if<engine::Finish>(&output)) {
    if (User* user = user_of_request(client, finish->request)) user_finished(*user, *finish);
  } else if (const auto* changed = std::get_if<engine::ValidityChanged>(&output)) {
    if (User* user = user_of_grant(client, changed->grant)) {
      user->valid_until = changed->valid_until;
    }
    watch_validity(client, changed->grant, changed->valid_until);
  } else if (const auto* loss = std::get_if<engine::LeaseLost>(&output)) {
    if (User* user = user_of_grant(client, loss->grant)) user->lost = true;
  }
}

void World::user_finished(User& user, const engine::Finish& finish) {
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
    user.grant = success->grant;
    user.owner = success->owner;
    user.token = success->token;
    user.valid_until = success->valid_until;
    watch_validity(user.client, success->grant, success->valid_until);
    if (plan_.kind == WorldKind::forgetful && random_.chance(250)) {
      at(now_ + random_.up_to(user.lease / 2), Event::What::many_forget);
    }
    if (ending_) return leave(user);
  } else {
    user.state = User::State::idle;
  }
  user_next(user, plan_.think);
}

/// The end of the run: whatever it is doing, it stops.
void World::leave(User& user) {
  ++user.turn;
  if (!clients_[user.client].alive) return;
  if (user.state == User::State::acquiring) {
    invariants_.must_end_now(clients_[user.client].life, user.request, local(user.client));
    clients_[user.client].engine->cancel(local(user.client), user.request, Errc::cancelled);
  } else if (user.state == User::State::holding) {
    give_back(user, true);
  }
}

}  // namespace redlock::simulation
