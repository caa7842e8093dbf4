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

ScreenSize screen_size() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return {};
  ScreenSize found;
  if (size.ws_col > 0) found.columns = size.ws_col;
  if (size.ws_row > 0) found.lines = size.ws_row;
  return found;
}

}  // namespace redlock::cli
