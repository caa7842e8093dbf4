// SPDX-License-Identifier: MIT
#include "cli/screen.hpp"

#include <cstdlib>
#include <string_view>
#include <sys/ioctl.h>
#include <unistd.h>

namespace redlock::cli {

bool can_redraw(int fd) {
  if (::isatty(fd) != 1) return false;
  const char* const term = std::getenv("TERM");
  return term != nullptr && *term != '\0' && std::string_view(term) != "dumb";
}

bool shows_colours(int fd) {
  const char* const off = std::getenv("NO_COLOR");
  return (off == nullptr || *off == '\0') && can_redraw(fd);
}

std::string painted(Colour colour, const std::string& text, int fd) {
  if (colour == Colour::none || text.empty() || !shows_colours(fd)) return text;
  const char* const begin = colour == Colour::green    ? "\x1b[32m"
                            : colour == Colour::yellow ? "\x1b[33m"
                                                       : "\x1b[31m";
  return begin + text + "\x1b[0m";
}

ScreenSize screen_size() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return {};
  ScreenSize found;
  if (size.ws_col > 0) found.columns = size.ws_col;
  if (size.ws_row > 0) found.lines = size.ws_row;
  return found;
}

}  // namespace redlock::cli
