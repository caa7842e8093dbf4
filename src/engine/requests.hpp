// SPDX-License-Identifier: MIT
// What a caller can ask of the engine, where it takes more than a name or a number.
#pragma once

#include <chrono>
#include <optional>

#include "engine/types.hpp"

namespace redlock::engine {

/// One acquisition. `wait` ends the retries; `deadline` ends the call whatever it does. The first
/// attempt is made whatever `wait` says, also if it has to wait for its turn.
struct AcquireRequest {
  Name name;
  std::chrono::milliseconds lease{};
  Duration min_validity{};
  bool renew = false;
  std::optional<Duration> max_hold;
  Duration wait{};  ///< zero: one attempt; Duration::max(): no end
  Instant deadline = never;
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

}  // namespace redlock::engine
