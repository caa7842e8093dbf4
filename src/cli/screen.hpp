// SPDX-License-Identifier: MIT
// What a terminal can do with what is written to it.
#pragma once

#include <cstddef>

namespace redlock::cli {

/// Whether what was written there can be drawn over: a terminal, and TERM does not say "dumb" (or
/// nothing).
[[nodiscard]] bool can_redraw(int fd);

struct ScreenSize {
  std::size_t columns = 80;
  std::size_t lines = 24;
};

/// Of the terminal behind stdout; 80 by 24 if it does not tell.
[[nodiscard]] ScreenSize screen_size();

}  // namespace redlock::cli
