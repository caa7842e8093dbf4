// SPDX-License-Identifier: MIT
// What the first lines of the library's scripts, docs/protocol.md and docs/waiting.md say that a
// script does to the keys of its node and replies, judged after each run by what was there before.
#pragma once

#include <cstdint>

#include "simulation/node_server.hpp"

namespace redlock::simulation {

/// Throws the Violation if the script did anything else; without `rules` only if that breaks a
/// promise. The time is that of the run, by the node's clock.
void judge_script(const ScriptRun& run, const NodeData& after, std::int64_t now_ms, bool rules);

}  // namespace redlock::simulation
