// SPDX-License-Identifier: MIT
// What a lease is known by. It does not change, so the machine that holds the lease, the messages
// about it and the client share one: programs hold many.
#pragma once

#include <memory>
#include <string>

#include "engine/types.hpp"

namespace redlock::engine {

struct LeaseKey {
  std::string name;
  OwnerId owner;
  Token token = 0;
};

using SharedLeaseKey = std::shared_ptr<const LeaseKey>;

/// The name in it, which keeps all of it.
[[nodiscard]] inline Name name_of(const SharedLeaseKey& key) {
  return {key, &key->name};
}

}  // namespace redlock::engine
