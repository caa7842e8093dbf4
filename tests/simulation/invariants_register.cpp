// SPDX-License-Identifier: MIT
// The resource that locks protect: it turns old tokens away, and loses no update.
#include <fmt/format.h>

#include "simulation/invariants.hpp"

namespace redlock::simulation {

std::optional<std::uint64_t> Invariants::read_register(const std::string& name,
                                                       engine::Token token) {
  NameState& state = names_[name];
  if (token < state.register_token) {
    ++counts_.stale_writes;
    return std::nullopt;
  }
  state.register_token = token;
  return state.register_value;
}

void Invariants::write_register(const std::string& name, engine::Token token, std::uint64_t value) {
  NameState& state = names_[name];
  if (token < state.register_token) {
    ++counts_.stale_writes;
    return;
  }
  state.register_token = token;
  state.register_value = value;
  ++state.updates;
  if (judged_.tokens && state.register_value != state.updates) {
    throw Violation{"a fenced register loses no update",
                    fmt::format("{}: {} updates, value {}", name, state.updates, value)};
  }
}

}  // namespace redlock::simulation
