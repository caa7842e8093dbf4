// SPDX-License-Identifier: MIT
// Turns an observer's calls into events of the log: --log json of exec and acquire.
#pragma once

#include <memory>

#include "cli/redlock/lock_wait.hpp"

namespace redlock::cli {

/// The observer of a client that takes one lock; with --log json it logs the events of that lock,
/// and of the nodes.
[[nodiscard]] std::shared_ptr<AttemptWatch> make_watch();

}  // namespace redlock::cli
