// SPDX-License-Identifier: MIT
// Requests to the engine that take more than a name or a number.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "engine/types.hpp"

namespace redlock::engine {

/// One acquisition. `wait` ends the retries; `deadline` ends the call whatever it does. The first
/// attempt is made whatever `wait` says, also if it has to wait for room; but a call that came
/// behind others of the client for the same name may end without one.
struct AcquireRequest {
  Name name;
  std::chrono::milliseconds lease{};
  Duration min_validity{};
  bool renew = false;
  std::optional<Duration> max_hold;
  Duration wait{};  ///< zero: one attempt; Duration::max(): no end
  Instant deadline = never;
  bool in_order = false;  ///< waits behind earlier waiters, and lets them go first
};

struct AttachRequest {
  Name name;
  OwnerId owner;
  Token token = 0;
  std::chrono::milliseconds lease{};
  bool renew = false;
  std::optional<Duration> max_hold;
};

/// One more level of a lease of ours, for at least `lease` from now.
struct EnterRequest {
  GrantId grant = 0;
  std::chrono::milliseconds lease{};
  bool renew = false;  ///< from now on, unless the lease is renewed already
};

/// An owner within this program, as it is known to its client, and the name that it takes.
struct OwnerKey {
  Name name;
  std::uint64_t owner = 0;
  friend bool operator==(const OwnerKey& a, const OwnerKey& b) {
    return a.owner == b.owner && *a.name == *b.name;
  }
  struct Hash {
    std::size_t operator()(const OwnerKey& key) const {
      return std::hash<std::string>()(*key.name) ^ (key.owner * 0x9e3779b97f4a7c15U);
    }
  };
};

/// Takes a name for an owner of this client: one more level of the owner's lease, or an
/// acquisition. Of a re-entry lease, renew, wait and deadline are used.
struct TakeRequest {
  std::uint64_t owner = 0;
  AcquireRequest acquire;
};

}  // namespace redlock::engine
