// SPDX-License-Identifier: MIT
// What people do with locks: take them, use the protected register (some without a look at whether
// they still may), lengthen, hand over, give back, or just go away.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "simulation/clients.hpp"
#include "simulation/scene.hpp"

namespace redlock::simulation {

class Faults;

/// Somebody who takes locks through a client.
struct LockUser {
  ClientIndex client = 0;
  std::uint64_t turn = 0;  ///< an event for another turn is stale
  std::string name = {};
  engine::RequestId extending = 0;
  engine::GrantId grant = 0;
  engine::Token token = 0;
  std::optional<std::uint64_t> read = {};  ///< of the protected register
  bool lost = false;
  std::uint32_t failures = 0;  ///< calls in succession that took no lock
};

/// What all of them do, in whichever way they took a lock.
class LockUsers {
 protected:
  LockUsers(Scene& scene, Clients& clients) : scene_(scene), clients_(clients) {}

  [[nodiscard]] engine::Engine& engine(const LockUser& user) {
    return clients_.engine(user.client);
  }
  [[nodiscard]] Instant local(const LockUser& user) const { return clients_.local(user.client); }
  [[nodiscard]] ClientId life(const LockUser& user) const { return clients_.life(user.client); }
  /// Whether the event is for this turn of the user, and its process runs now.
  [[nodiscard]] bool may_act(const LockUser& user, const Event& event);
  [[nodiscard]] std::chrono::milliseconds any_lease(const LockUser& user);
  /// The number of a request about its lease that ends within this time.
  engine::RequestId request(const LockUser& user, Duration takes, engine::GrantId extends = 0);
  void extend(LockUser& user);
  void cancel(const LockUser& user, engine::RequestId request, Errc why = Errc::cancelled);
  /// As the guard does when its client was too late for the loss.
  void give_up(const LockUser& user);
  /// At the end of this validity a quorum must still have the lease.
  void watch_validity(ClientIndex client, engine::GrantId grant, Instant valid_until);
  /// Until when a call that begins now waits for others.
  [[nodiscard]] static Instant waits_until(const engine::AcquireRequest& what, Instant now);

  Scene& scene_;
  Clients& clients_;
};

constexpr std::uint32_t most_failures_in_haste = 1000;

/// Those of one kind, whose turns are events of a kind of their own.
template <typename User, Event::What turns>
class UsersOf : protected LockUsers {
 public:
  void on_started(ClientIndex client) {
    for (User& user : users_) {
      if (user.client == client) next(user, scene_.plan.think);
    }
  }
  void on_crashed(ClientIndex client) {
    for (User& user : users_) {
      if (user.client == client) user = {{.client = client, .turn = user.turn + 1}};
    }
  }

 protected:
  using LockUsers::LockUsers;

  void next(User& user, Duration at_most) {
    const auto index = static_cast<std::uint32_t>(&user - users_.data());
    const Duration soon = scene_.random.up_to(at_most);
    // Where nobody can have a lock calls fail at once: millions of them would show no more.
    const bool in_vain = user.failures >= most_failures_in_haste;
    scene_.at(scene_.now + (in_vain ? at_most : soon), turns, index, 0, ++user.turn);
  }

  std::vector<User> users_;
};

struct User : LockUser {
  enum class State : std::uint8_t { idle, acquiring, holding, ending };
  State state = State::idle;
  engine::RequestId request = 0;
  std::vector<engine::RequestId> entering = {};
  std::uint32_t count = 1;
  engine::OwnerId owner = {};
  std::chrono::milliseconds lease{};
  Instant valid_until{};
};

class Workload final : public UsersOf<User, Event::What::user> {
 public:
  Workload(Scene& scene, Clients& clients, Faults& faults);

  void on_output(ClientIndex client, const engine::ClientOutput& output);
  /// The next thing that a user does.
  void user_event(const Event& event);
  /// The end of the run: whatever the users are doing, they stop.
  void end();

  /// What the users of a client are doing.
  struct Doing {
    bool idle = false;
    bool acquiring = false;
    bool holding = false;
  };
  [[nodiscard]] Doing doing(ClientIndex client) const;

  // Things that users do at the worst moment. False: nobody could.
  bool cancel_one(ClientIndex client);
  bool release_during_hold(ClientIndex client);
  /// By an operator at this client, with what status shows of somebody's lock.
  bool force_one(ClientIndex operator_at);
  /// A copy of the client's machine is started in another's place.
  void clone(ClientIndex client);

 private:
  void begin_request(User& user);
  void begin_acquire(User& user);
  void take_over(User& user);
  void use_lease(User& user);
  void enter(User& user);
  void leave_one(User& user);
  void give_back(User& user, bool wait_for_it);
  void hand_over(User& user);
  void finished(User& user, const engine::Finish& finish);
  void leave(User& user);
  const std::string& name_for(const User& user);
  User* of_request(ClientIndex client, engine::RequestId request);
  User* of_grant(ClientIndex client, engine::GrantId grant);

  Faults& faults_;
  std::optional<engine::AttachRequest> handed_over_;
};

}  // namespace redlock::simulation
