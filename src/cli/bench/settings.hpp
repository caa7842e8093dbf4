// SPDX-License-Identifier: MIT
// The settings of `redlock bench`.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>

namespace redlock::cli {

enum class Scenario { healthy, minority_down, minority_hung, one_slow, contended };

/// As it is written on the command line: "minority-down".
[[nodiscard]] const char* to_string(Scenario scenario);

struct BenchSettings {
  std::chrono::milliseconds duration{10'000};
  std::optional<double> rate = 200;  ///< cycles a second; none: each caller at once the next
  std::size_t concurrency = 8;
  std::size_t names = 8;
  std::chrono::milliseconds lease{2'000};
  Scenario scenario = Scenario::healthy;
};

}  // namespace redlock::cli
