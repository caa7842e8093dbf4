// SPDX-License-Identifier: MIT
#include "cli/redlock/terminal.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace redlock::cli {

Terminal::Terminal() {
  const int fd = ::open("/dev/tty", O_RDWR | O_CLOEXEC);
  if (fd < 0) return;
  fd_ = FileDescriptor(fd, "terminal");
  ::tcgetattr(fd, &settings_);
}

bool Terminal::is_interactive() const {
  return fd_.get() >= 0 && ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1;
}

bool Terminal::give_to(pid_t group) {
  if (fd_.get() < 0 || ::tcgetpgrp(fd_.get()) != ::getpgrp()) return false;
  given_ = ::tcsetpgrp(fd_.get(), group) == 0;
  return given_;
}

void Terminal::take_back() {
  if (!given_) return;
  given_ = false;
  ::tcsetpgrp(fd_.get(), ::getpgrp());
}

void Terminal::restore_settings() const {
  if (fd_.get() >= 0) ::tcsetattr(fd_.get(), TCSADRAIN, &settings_);
}

}  // namespace redlock::cli
