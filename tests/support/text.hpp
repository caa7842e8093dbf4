// SPDX-License-Identifier: MIT
// What a test asks of a text.
#pragma once

#include <string>
#include <string_view>

namespace redlock::testing {

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// What the exception says that this call throws.
template <typename Error, typename Call>
std::string message_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "(no error)";
}

}  // namespace redlock::testing
