// SPDX-License-Identifier: MIT
// Percent-encoding, as URIs use it (RFC 3986, section 2.1).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace redlock::wire {

/// None if a '%' is not followed by two hexadecimal digits, or encodes NUL.
[[nodiscard]] std::optional<std::string> percent_decode(std::string_view text);

/// Encodes every byte but letters, digits, and "-._~/:" (which no label confuses with anything).
[[nodiscard]] std::string percent_encode(std::string_view text);

}  // namespace redlock::wire
