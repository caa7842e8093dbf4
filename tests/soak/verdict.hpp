// SPDX-License-Identifier: MIT
// How every soak ends: it says whether all was as promised, and its status is that.
#pragma once

#include <cstdlib>
#include <exception>
#include <fmt/core.h>
#include <string_view>

namespace redlock::soak {

/// `run()` is whether all was as promised. The status of the program.
template <typename Run>
int verdict_of(std::string_view program, const Run& run) {
  try {
    const bool well = run();
    fmt::print("{}\n", well ? "as promised" : "NOT AS PROMISED");
    return well ? EXIT_SUCCESS : EXIT_FAILURE;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", program, error.what());
    return EXIT_FAILURE;
  }
}

}  // namespace redlock::soak
