// SPDX-License-Identifier: MIT
// The signals that the command answers to. They are blocked in every thread and read from a
// descriptor, so that one place waits for a signal, the lock and the clock.
#pragma once

#include <csignal>
#include <optional>
#include <string>
#include <string_view>

#include "cli/file_descriptor.hpp"

namespace redlock::cli {

/// Made in the main thread before any other thread exists but that of the log, which takes no
/// signal: threads inherit the blocked signals. A signal that was ignored when the command was
/// started (nohup, a shell's background jobs) stays ignored.
class Signals {
 public:
  Signals();
  /// Unblocks what it blocked.
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  /// Readable when a signal has come.
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  /// The next signal, nothing if there is none. SIGCHLD is among them.
  [[nodiscard]] std::optional<int> take() const;

  /// From now on SIGTSTP is read like the others instead of stopping the command.
  void take_stop_requests();
  /// Stops the command's own process group as the terminal's Ctrl-Z would, and returns true when it
  /// has been continued. Returns false at once if nothing could continue it (the group is
  /// orphaned), or Ctrl-Z is ignored.
  bool stop_self() const;

  /// Gives this process the signal mask and the disposition of SIGPIPE that the command was
  /// started with. For a forked child, before exec; async-signal-safe.
  void restore_inherited() const noexcept;

 private:
  sigset_t taken_{};
  sigset_t inherited_mask_{};
  struct sigaction inherited_pipe_ {};
  FileDescriptor fd_;
};

/// While it lives, this thread lets no signal through, and what it starts meanwhile never does: a
/// thread that does would take a signal that is read from the descriptor only later (SIGTSTP).
class SignalsKeptOut {
 public:
  SignalsKeptOut();
  ~SignalsKeptOut();
  SignalsKeptOut(const SignalsKeptOut&) = delete;
  SignalsKeptOut& operator=(const SignalsKeptOut&) = delete;

 private:
  sigset_t before_{};
};

/// Whether the signal asks the command itself to end, while it has no child to ask.
[[nodiscard]] bool asks_to_end(int signal);

/// The number for TERM, SIGTERM or 15; nothing if there is no such signal.
[[nodiscard]] std::optional<int> parse_signal(std::string_view text);
/// "SIGTERM".
[[nodiscard]] std::string signal_name(int signal);

}  // namespace redlock::cli
