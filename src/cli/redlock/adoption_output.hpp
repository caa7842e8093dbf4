// SPDX-License-Identifier: MIT
// What adoptions and replacements have in common.
#pragma once

#include <vector>

#include <redlock/admin.hpp>

#include "cli/output.hpp"

namespace redlock::cli {

/// Prints it, and returns the exit status.
[[nodiscard]] int show_adoptions(const std::vector<NodeAdoption>& adoptions, Format format);

}  // namespace redlock::cli
