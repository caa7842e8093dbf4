// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

namespace redlock::wire {

/// A Lua file of src/wire/scripts, as the build embeds it.
struct ScriptText {
  std::string_view name;  ///< that of the file
  std::string_view text;

  constexpr operator std::string_view() const { return text; }
};

}  // namespace redlock::wire
