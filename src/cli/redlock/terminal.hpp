// SPDX-License-Identifier: MIT
// The terminal that the command was started on, if there is one, and handing it to the child's
// process group, which alone may then read from it and gets its Ctrl-C.
#pragma once

#include <sys/types.h>
#include <termios.h>

#include "cli/file_descriptor.hpp"

namespace redlock::cli {

class Terminal {
 public:
  /// Opens the controlling terminal; without one, everything below does nothing.
  Terminal();

  [[nodiscard]] bool present() const noexcept { return fd_.get() >= 0; }

  /// Whether the child should have it from the start: stdin and stdout are terminals. In a
  /// pipeline (`redlock exec ... | less`) the neighbours need it as well, so that the child gets
  /// it when it first asks.
  [[nodiscard]] bool is_interactive() const;

  /// Makes this group the one in the foreground, if ours is. SIGTTOU must be blocked.
  bool give_to(pid_t group);
  /// Makes ours the one in the foreground, if it was given away.
  void take_back();
  /// Whether it is given away.
  [[nodiscard]] bool given() const noexcept { return given_; }

  /// As it was when the command started; for a child that was killed while it had changed it.
  void restore_settings() const;

 private:
  FileDescriptor fd_;
  termios settings_{};
  bool given_ = false;
};

}  // namespace redlock::cli
