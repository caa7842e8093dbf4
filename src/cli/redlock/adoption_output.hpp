// SPDX-License-Identifier: MIT
// What became of an adoption, or of a replacement.
#pragma once

#include <vector>

#include <redlock/admin.hpp>

#include "cli/output.hpp"

namespace redlock::cli {

/// Prints it, and returns the exit status.
[[nodiscard]] int show_adoptions(const std::vector<NodeAdoption>& adoptions, Format format);

}  // namespace redlock::cli
