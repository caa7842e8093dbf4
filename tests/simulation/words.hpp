// SPDX-License-Identifier: MIT
// Messages, results and their parts in words, for traces and scenarios.
#pragma once

#include <string>

#include "engine/engine.hpp"
#include "simulation/node_server.hpp"

namespace redlock::simulation {

[[nodiscard]] std::string in_words(const ScriptRun& run);
[[nodiscard]] std::string in_words(const engine::Send& send);
[[nodiscard]] std::string in_words(const engine::Reply& reply);
[[nodiscard]] std::string in_words(const engine::NodeOutput& output);
[[nodiscard]] std::string in_words(const engine::ClientOutput& output);
[[nodiscard]] const char* in_words(Errc code);
[[nodiscard]] const char* in_words(Cause cause);
[[nodiscard]] const char* in_words(LossReason reason);
[[nodiscard]] const char* in_words(Released released);

}  // namespace redlock::simulation
