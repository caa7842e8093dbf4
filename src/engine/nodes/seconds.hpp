// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <string>

#include "engine/types.hpp"

namespace redlock::engine {

/// For people who wait: "12 s", rounded up.
[[nodiscard]] inline std::string in_seconds(Duration left) {
  return std::to_string(std::chrono::ceil<std::chrono::seconds>(left).count()) + " s";
}

}  // namespace redlock::engine
