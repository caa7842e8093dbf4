// SPDX-License-Identifier: MIT
// What a node older than Redis 7 lacks: flags in scripts, subcommands in its statistics, settings.
#pragma once

#include "cluster/fleet.hpp"
#include "support/nodes.hpp"
#include "wire/info_text.hpp"
#include "wire/script_set.hpp"

namespace redlock::testing {

/// Of the fleet's first node.
inline bool is_redis_7(const cluster::Fleet& fleet) {
  return wire::ServerVersion::parse(info_of(fleet, 0, "server", "redis_version")).at_least(7, 0);
}

/// The forms in which a node takes the scripts, to be walked through.
class ScriptForms {
 public:
  using Flags = wire::ScriptSet::Flags;
  explicit ScriptForms(cluster::Fleet& (*fleet)()) : fleet_(fleet) {}
  [[nodiscard]] const Flags* begin() const { return is_redis_7(fleet_()) ? all_ : all_ + 1; }
  [[nodiscard]] const Flags* end() const { return all_ + 2; }

 private:
  static constexpr Flags all_[] = {Flags::understood, Flags::unknown};
  cluster::Fleet& (*fleet_)();
};

}  // namespace redlock::testing
