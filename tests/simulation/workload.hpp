// SPDX-License-Identifier: MIT
// What people do with locks: take them, use the protected register (some without a look at whether
// they still may), lengthen, hand over, give back, or just go away.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "simulation/clients.hpp"
#include "simulation/scene.hpp"

namespace redlock::simulation {

/// Moments that are rare and short, to which trouble is drawn.
class RareMoments {
 public:
  /// One fault of this kind (any, if none is named), this often in a thousand times.
  virtual void attract_fault(ClientIndex client, std::optional<Fault> fault,
                             std::uint32_t per_mille) = 0;

 protected:
  ~RareMoments() = default;
};

/// At the end of this validity a quorum must still have the lease.
void watch_validity(Scene& scene, const Clients& clients, ClientIndex client, engine::GrantId grant,
                    Instant valid_until);

/// Until when a call that begins now waits for others.
[[nodiscard]] Instant waits_until(const engine::AcquireRequest& what, Instant now);

class Workload {
 public:
  Workload(Scene& scene, Clients& clients, RareMoments& moments);

  void on_started(ClientIndex client);
  void on_crashed(ClientIndex client);
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
  struct User {
    enum class State : std::uint8_t { idle, acquiring, holding, ending };
    ClientIndex client = 0;
    std::uint64_t turn = 0;  // an event for another turn is stale
    State state = State::idle;
    std::string name = {};
    engine::RequestId request = 0;
    engine::RequestId extending = 0;
    std::vector<engine::RequestId> entering = {};
    std::uint32_t count = 1;
    engine::GrantId grant = 0;
    engine::OwnerId owner = {};
    engine::Token token = 0;
    std::chrono::milliseconds lease{};
    Instant valid_until{};
    std::optional<std::uint64_t> read = {};
    bool lost = false;
  };

  [[nodiscard]] engine::Engine& engine(const User& user) { return clients_.engine(user.client); }
  [[nodiscard]] Instant local(const User& user) const { return clients_.local(user.client); }
  [[nodiscard]] ClientId life(const User& user) const { return clients_.life(user.client); }
  void next(User& user, Duration at_most);
  void begin_request(User& user);
  void begin_acquire(User& user);
  void take_over(User& user);
  void use_lease(User& user);
  void extend(User& user);
  void enter(User& user);
  void leave_one(User& user);
  void give_back(User& user, bool wait_for_it);
  void hand_over(User& user);
  void cancel(User& user);
  void finished(User& user, const engine::Finish& finish);
  void leave(User& user);
  const std::string& name_for(const User& user);
  User* of_request(ClientIndex client, engine::RequestId request);
  User* of_grant(ClientIndex client, engine::GrantId grant);

  Scene& scene_;
  Clients& clients_;
  RareMoments& moments_;
  std::vector<User> users_;
  std::optional<engine::AttachRequest> handed_over_;
};

}  // namespace redlock::simulation
