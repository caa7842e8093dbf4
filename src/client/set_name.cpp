// SPDX-License-Identifier: MIT
#include "client/set_name.hpp"

#include <utility>

#include "engine/config.hpp"
#include "wire/objection_text.hpp"

namespace redlock::client {

engine::SetMembership set_of(std::vector<std::optional<engine::Membership>> markers) {
  engine::Config config;
  config.nodes = static_cast<std::uint32_t>(markers.size());
  config.quarantine = true;
  engine::SetMembership sets(config);
  for (engine::NodeIndex node = 0; node < config.nodes; ++node) {
    sets.on_marker(engine::Instant::min(), node, std::move(markers[node]));
  }
  return sets;
}

std::string another_set(const std::string& name, const std::optional<std::string>& of_quorum) {
  return wire::sentence_of(engine::OtherSet{name, of_quorum});
}

}  // namespace redlock::client
