// SPDX-License-Identifier: MIT
// The bounds that documents give, as the judges have them: written down here once more, so that a
// constant of the library that changes alone breaks a promise.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "engine/types.hpp"

namespace redlock::simulation::documented {

using engine::Duration;

/// docs/safety.md, A3: `drift_factor` of the lease, plus 2 ms.
[[nodiscard]] inline Duration drift_allowance(Duration lease, double drift_factor) {
  const auto drift = static_cast<double>(lease.count()) * drift_factor;
  return Duration(static_cast<Duration::rep>(drift)) + std::chrono::milliseconds(2);
}

/// docs/safety.md, A4: for how long a node that may have forgotten does not vote.
[[nodiscard]] inline Duration quarantine(Duration max_lease, double drift_factor) {
  return max_lease + drift_allowance(max_lease, drift_factor) + std::chrono::seconds(1);
}

/// docs/safety.md, "Tokens": no floor is above 2^52.
inline constexpr engine::Token highest_floor = engine::Token{1} << 52U;

/// docs/waiting.md, "At any distance": a turn lasts twice as long as the answers take, 20 ms at
/// least and half a second at most.
inline constexpr std::chrono::milliseconds longest_turn{500};
[[nodiscard]] constexpr Duration length_of_turn(Duration round_trip) {
  return std::clamp<Duration>(2 * round_trip, std::chrono::milliseconds(20), longest_turn);
}

/// docs/waiting.md, "How it works": a waiter asks once a second by its own timer.
inline constexpr Duration between_questions = std::chrono::seconds(1);

/// docs/waiting.md, "Nothing left behind": a node forgets a waiter so long after its last question;
/// one that polls in a tenth of that, or three times its turn.
inline constexpr std::chrono::milliseconds waiter_forgotten_within{2'500};
[[nodiscard]] constexpr std::int64_t poller_forgotten_within_ms(std::int64_t turn) {
  return std::max<std::int64_t>(waiter_forgotten_within.count() / 10,
                                3 * std::min<std::int64_t>(turn, longest_turn.count()));
}
/// So few before a waiter that asks are not looked at; of more two are.
inline constexpr std::int64_t not_looked_at = 8;
/// The dead waiters that one call passes over.
inline constexpr std::size_t passed_over = 64;

/// docs/protocol.md, "Opening a connection": the longest pause before the next attempt.
inline constexpr Duration between_connections = std::chrono::seconds(1);

}  // namespace redlock::simulation::documented
