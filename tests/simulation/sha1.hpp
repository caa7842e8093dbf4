// SPDX-License-Identifier: MIT
// By which Redis names scripts.
#pragma once

#include <string>
#include <string_view>

namespace redlock::simulation {

/// 40 hexadecimal digits.
[[nodiscard]] std::string sha1(std::string_view text);

}  // namespace redlock::simulation
