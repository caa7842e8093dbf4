// SPDX-License-Identifier: MIT
// The abilities of a terminal.
#pragma once

#include <cstddef>
#include <string>

namespace redlock::cli {

/// Whether what was written there can be drawn over: a terminal, and TERM does not say "dumb" (or
/// nothing).
[[nodiscard]] bool can_redraw(int fd);

/// Whether colours are to be shown there: it can redraw, and NO_COLOR (no-color.org) is not set, or
/// empty.
[[nodiscard]] bool shows_colours(int fd);

enum class Colour { none, green, yellow, red };

/// In this colour, if the terminal behind `fd` is to show it.
[[nodiscard]] std::string painted(Colour colour, const std::string& text, int fd);

struct ScreenSize {
  std::size_t columns = 80;
  std::size_t lines = 24;
};

/// Of the terminal behind stdout; 80 by 24 if it does not tell.
[[nodiscard]] ScreenSize screen_size();

}  // namespace redlock::cli
