// SPDX-License-Identifier: MIT
// --report of `redlock bench`: one page with everything in it, for any browser, in light and dark.
#pragma once

#include <string>

#include "cli/bench/outcome.hpp"

namespace redlock::cli {

[[nodiscard]] std::string report_page(const BenchOutcome& outcome);

}  // namespace redlock::cli
