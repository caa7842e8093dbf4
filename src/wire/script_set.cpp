// SPDX-License-Identifier: MIT
// acquire goes without flags everywhere: a full node can then still say that somebody else has the
// lock, which is a vote; with them it would be refused before it looks.
#include "wire/script_set.hpp"

#include "wire/redlock_scripts.hpp"

namespace redlock::wire {
namespace {

using Sources = std::array<std::string, all_scripts.size()>;

std::string flagged(std::string_view body) {
  return "#!lua flags=allow-oom\n" + std::string(body);
}

const Sources& plain_sources() {
  static const Sources sources{std::string(scripts::acquire), std::string(scripts::hold),
                               std::string(scripts::release), std::string(scripts::force)};
  return sources;
}

const Sources& flagged_sources() {
  static const Sources sources{std::string(scripts::acquire), flagged(scripts::hold),
                               flagged(scripts::release), flagged(scripts::force)};
  return sources;
}

}  // namespace

const std::string& ScriptSet::source(Script script) const {
  return (flags_ == Flags::understood ? flagged_sources() : plain_sources())[index(script)];
}

}  // namespace redlock::wire
