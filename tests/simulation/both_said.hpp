// SPDX-License-Identifier: MIT
// What the comparisons of the model with a real server share: the server, who asks it, and words
// for what both said.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "simulation/side_by_side.hpp"

namespace redlock::simulation {

inline cluster::Fleet& fleet() {
  static cluster::Fleet one({.nodes = 1});
  return one;
}

template <typename Kind>
bool is(const engine::Reply& reply) {
  return std::holds_alternative<Kind>(reply);
}
inline bool is_granted(const engine::Reply& reply, engine::Token token) {
  const auto* granted = std::get_if<engine::Granted>(&reply);
  return granted != nullptr && granted->token == token;
}
inline bool is_held(const engine::Reply& reply, engine::Token fence) {
  const auto* held = std::get_if<engine::Held>(&reply);
  return held != nullptr && held->fence == fence;
}
inline bool is_taken(const engine::Reply& reply, bool foreign) {
  const auto* taken = std::get_if<engine::Taken>(&reply);
  return taken != nullptr && taken->foreign_type == foreign;
}
inline bool is_error(const engine::Reply& reply, Cause cause) {
  const auto* why = std::get_if<engine::Unavailable>(&reply);
  return why != nullptr && why->cause == cause;
}
/// How long the lock is still somebody else's; -1: for ever, -2: that is not what it said.
inline std::int64_t left(const engine::Reply& reply) {
  const auto* refused = std::get_if<engine::Refused>(&reply);
  if (refused == nullptr) return -2;
  return refused->expires_in ? refused->expires_in->count() : -1;
}

/// Another name whose tokens come from the same counter.
inline std::string neighbour_of(const std::string& name) {
  for (std::uint32_t i = 0;; ++i) {
    std::string other = "neighbour-" + std::to_string(i);
    if (engine::stripe_of(other) == engine::stripe_of(name)) return other;
  }
}
inline const SideBySide::Who ann{"n", 1};
inline const SideBySide::Who bob{"n", 2};

}  // namespace redlock::simulation
