// SPDX-License-Identifier: MIT
// What status and waiters say of one lock.
#pragma once

#include <string>

#include <redlock/admin.hpp>

namespace redlock::cli {

/// Whose it is, and who that is, in lines.
[[nodiscard]] std::string verdict_lines(const LockReport& report);

/// Why this node could not be asked; empty if it could.
[[nodiscard]] std::string trouble_of(const NodeLock& node);

/// The status of a command that could not find out enough: from the votes that an acquisition would
/// get now, which decide between no quorum and a configuration that the nodes refuse.
[[nodiscard]] int exit_code_of_unknown(const LockReport& report);

}  // namespace redlock::cli
