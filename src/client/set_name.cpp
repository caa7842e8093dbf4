// SPDX-License-Identifier: MIT
#include "client/set_name.hpp"

#include "engine/config.hpp"
#include "engine/nodes/set_membership.hpp"
#include "wire/objection_text.hpp"

namespace redlock::client {
namespace {

engine::SetMembership membership_of(const std::vector<std::optional<std::string>>& names) {
  engine::Config config;
  config.nodes = static_cast<std::uint32_t>(names.size());
  config.quarantine = true;
  engine::SetMembership sets(config);
  for (engine::NodeIndex node = 0; node < config.nodes; ++node) {
    if (names[node]) sets.on_marker(node, engine::Membership{{}, {*names[node], 1, {}}});
  }
  return sets;
}

}  // namespace

std::optional<std::string> name_of_quorum(const std::vector<std::optional<std::string>>& names) {
  return membership_of(names).name();
}

std::string another_set(const std::string& name, const std::optional<std::string>& of_quorum) {
  return wire::sentence_of(engine::OtherSet{name, of_quorum});
}

}  // namespace redlock::client
