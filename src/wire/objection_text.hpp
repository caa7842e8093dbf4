// SPDX-License-Identifier: MIT
// The sentences for operators about a node that does not count, or needs attention: the engine's
// values (engine/nodes/objection.hpp) in words that say what to do. (error_reply.hpp has the
// replies of the nodes themselves.)
#pragma once

#include <string>

#include "engine/messages.hpp"
#include "engine/nodes/objection.hpp"

namespace redlock::wire {

/// Empty if there is none.
[[nodiscard]] std::string sentence_of(const engine::Objection& objection);

/// The objection's, and behind it the detail.
[[nodiscard]] std::string sentence_of(const engine::Objection& objection,
                                      const std::string& detail);

/// A warning about a node without a marker, for clients that do not wait for one.
[[nodiscard]] std::string sentence_of_missing_marker();

}  // namespace redlock::wire
