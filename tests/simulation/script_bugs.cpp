// SPDX-License-Identifier: MIT
#include "simulation/script_bugs.hpp"

namespace redlock::simulation {
namespace {

/// A script with all changes of the bug.
std::string with_bug(std::string_view script, std::string_view name) {
  std::string changed(script);
  for (const ScriptBug& bug : script_bugs) {
    if (bug.name != name || bug.script != script) continue;
    changed.replace(changed.find(bug.instead), bug.instead.size(), bug.stands);
  }
  return changed;
}

}  // namespace

std::string with_planted_bugs(std::string_view text) {
  std::string changed(text);
  for (const ScriptBug& bug : script_bugs) {
    if (bug.name != the_planted_script_bug) continue;
    const std::size_t at = changed.find(bug.script);
    if (at == std::string::npos) continue;  // or changed by now
    changed.replace(at, bug.script.size(), with_bug(bug.script, bug.name));
  }
  return changed;
}

}  // namespace redlock::simulation
