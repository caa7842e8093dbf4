// SPDX-License-Identifier: MIT
// Programs whose threads share a lock: several calls of one owner take one name at once, wait for
// each other, give up or are cancelled, and each gives back the level that it obtained.
#pragma once

#include <cstdint>
#include <vector>

#include "simulation/workload.hpp"

namespace redlock::simulation {

struct OwnerUser : LockUser {
  std::vector<engine::RequestId> calls = {};  // that have not ended, the oldest first
  std::uint32_t levels = 0;
};

class OwnerUsers final : public UsersOf<OwnerUser, Event::What::owner> {
 public:
  /// Both must outlive it.
  OwnerUsers(Scene& scene, Clients& clients);

  void on_output(ClientIndex client, const engine::ClientOutput& output);
  /// The next thing that the threads of an owner do.
  void event(const Event& event);
  /// The end of the run: all calls are cancelled, and all levels given back.
  void end();

 private:
  [[nodiscard]] std::uint64_t number(const OwnerUser& owner) const {
    return static_cast<std::uint64_t>(&owner - users_.data()) + 1;
  }
  void act(OwnerUser& owner);
  void take(OwnerUser& owner);
  void use(OwnerUser& owner);
  void leave(OwnerUser& owner);
  void taken(OwnerUser& owner, const engine::Finish& finish);
};

}  // namespace redlock::simulation
