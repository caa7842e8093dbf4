// SPDX-License-Identifier: MIT
// Makes events of what a client tells its observer: --log json of exec and acquire.
#pragma once

#include <memory>

#include "cli/redlock/lock_wait.hpp"

namespace redlock::cli {

/// The observer of a client that takes one lock; with --log json it logs what happens to that, and
/// to the nodes.
[[nodiscard]] std::shared_ptr<AttemptWatch> make_watch();

}  // namespace redlock::cli
