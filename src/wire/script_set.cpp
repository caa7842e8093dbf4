// SPDX-License-Identifier: MIT
#include "wire/script_set.hpp"

#include "wire/redlock_scripts.hpp"

namespace redlock::wire {
namespace {

using Sources = std::array<std::string, script_count>;

/// A script as a function inside another script, which passes the keys and arguments to it.
std::string as_function(const ScriptText& script) {
  return "local function " + std::string(script.name) + "(KEYS, ARGV)\n" +
         std::string(script.text) + "end\n";
}

Sources sources_for(ScriptSet::Flags flags) {
  Sources sources;
  for (const ScriptRow& row : script_rows()) {
    std::string& source = sources[static_cast<std::size_t>(row.script)];
    if (row.at_maxmemory && flags == ScriptSet::Flags::understood) {
      source = "#!lua flags=allow-oom\n";
    }
    if (row.in_order) source += scripts::line;
    if (row.script == pass_script) {
      source += as_function(scripts::release);
      source += as_function(scripts::acquire);
    }
    source += row.source;
  }
  return sources;
}

}  // namespace

const std::string& ScriptSet::source(Script script) const {
  static const Sources flagged = sources_for(Flags::understood);
  static const Sources plain = sources_for(Flags::unknown);
  return (flags_ == Flags::understood ? flagged : plain)[index(script)];
}

}  // namespace redlock::wire
