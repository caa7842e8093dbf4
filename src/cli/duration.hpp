// SPDX-License-Identifier: MIT
// Durations as people write them: 30s, 500ms, 2m, 1h.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace redlock::cli {

/// Which durations an option takes beside a number with a unit.
enum class Zero { refused, allowed };
enum class Forever { refused, allowed };

/// The duration (redlock::forever for the word `forever`). Throws CLI::ValidationError with a
/// sentence that says what to write instead.
[[nodiscard]] std::chrono::milliseconds parse_duration(std::string_view option,
                                                       std::string_view text, Zero zero,
                                                       Forever endless);

/// The shortest form that says the same: "30s", "1500ms", "forever".
[[nodiscard]] std::string format_duration(std::chrono::milliseconds duration);

}  // namespace redlock::cli
