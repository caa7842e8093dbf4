// SPDX-License-Identifier: MIT
// Programs whose threads share a lock: several calls of one owner take one name at once, wait for
// each other, give up or are cancelled, and each gives back the level that it obtained.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "simulation/clients.hpp"
#include "simulation/scene.hpp"

namespace redlock::simulation {

class OwnerUsers {
 public:
  /// Both must outlive it.
  OwnerUsers(Scene& scene, Clients& clients);

  void on_started(ClientIndex client);
  void on_crashed(ClientIndex client);
  void on_output(ClientIndex client, const engine::ClientOutput& output);
  /// The next thing that the threads of an owner do.
  void event(const Event& event);
  /// The end of the run: all calls are cancelled, and all levels given back.
  void end();

 private:
  struct OwnerUser {
    ClientIndex client = 0;
    std::uint64_t turn = 0;  // an event for another turn is stale
    std::string name = {};
    std::vector<engine::RequestId> calls = {};  // that have not ended, the oldest first
    engine::RequestId extending = 0;
    std::uint32_t levels = 0;
    engine::GrantId grant = 0;
    engine::Token token = 0;
    std::optional<std::uint64_t> read = {};
    bool lost = false;
  };

  [[nodiscard]] std::uint64_t number(const OwnerUser& owner) const {
    return static_cast<std::uint64_t>(&owner - owners_.data()) + 1;
  }
  [[nodiscard]] engine::Engine& engine(const OwnerUser& owner) {
    return clients_.engine(owner.client);
  }
  [[nodiscard]] Instant local(const OwnerUser& owner) const { return clients_.local(owner.client); }
  [[nodiscard]] ClientId life(const OwnerUser& owner) const { return clients_.life(owner.client); }
  void next(OwnerUser& owner, Duration at_most);
  void act(OwnerUser& owner);
  void take(OwnerUser& owner);
  void use(OwnerUser& owner);
  void extend(OwnerUser& owner);
  void leave(OwnerUser& owner);
  void cancel(const OwnerUser& owner, engine::RequestId call);
  void taken(OwnerUser& owner, const engine::Finish& finish);

  Scene& scene_;
  Clients& clients_;
  std::vector<OwnerUser> owners_;
};

}  // namespace redlock::simulation
