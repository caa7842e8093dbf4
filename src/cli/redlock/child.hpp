// SPDX-License-Identifier: MIT
// The user's command as a child process, in a process group of its own that does not outlive
// redlock: a guard process in the same group reads from a pipe that only redlock can write to, and
// kills the group when the pipe is closed by redlock's death (SIGKILL, a crash).
#pragma once

#include <string>
#include <sys/types.h>
#include <vector>

#include "cli/file_descriptor.hpp"
#include "cli/redlock/terminal.hpp"
#include "cli/signals.hpp"

namespace redlock::cli {

struct ChildPlan {
  std::vector<std::string> arguments;
  std::vector<std::string> environment;  ///< NAME=value
};

class Child {
 public:
  /// Starts the command and returns when it runs. In the foreground of the terminal, if that is
  /// interactive. To be called from the main thread: the kernel's death signal is tied to the
  /// thread that forks. Throws Exit 126 or 127, as a shell would, if it cannot be run.
  Child(const ChildPlan& plan, const Signals& signals, Terminal& terminal);
  /// Ends the guard; kills the group if the command has not been seen to end.
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// Its process group, which has the number of the command's own process.
  [[nodiscard]] pid_t group() const noexcept { return pid_; }
  /// Sends a signal to every process of the group that we may signal: out_of_reach() has the
  /// others.
  void signal(int number) const noexcept;
  /// The processes of the group that we may neither signal nor kill, as they run with the rights of
  /// another user (sudo, setuid): "pid 4711 (sudo, uid 0)", with commas between them. Reads
  /// /proc.
  [[nodiscard]] std::string out_of_reach() const;

  enum class State { running, stopped, ended };
  /// The command's state now; does not block.
  State poll();
  /// After `ended`: its exit status, or 128 + N if a signal ended it.
  [[nodiscard]] int exit_status() const;
  [[nodiscard]] bool killed() const;
  /// After `stopped`: by which signal.
  [[nodiscard]] int stop_signal() const;

  /// The state of the guard. If the guard has ended, by a SIGKILL, say, another is started; a
  /// stopped guard is continued.
  enum class Guard { watches, replaced, missing };
  Guard tend_guard();

 private:
  [[nodiscard]] bool start_guard();
  void await_exec(const std::string& program);

  pid_t pid_ = -1;
  pid_t guard_ = -1;
  Pipe life_;    // never written to while the guard has a duty
  Pipe start_;   // a byte: go
  Pipe failed_;  // errno of exec, or closed by its success
  int status_ = 0;
  bool ended_ = false;
};

/// The environment for the command: ours, with REDLOCK_NAME and REDLOCK_TOKEN, and without
/// REDLOCK_NODES if that had a password.
[[nodiscard]] std::vector<std::string> child_environment(const std::string& name,
                                                         std::uint64_t token,
                                                         const std::string& nodes_variable);

}  // namespace redlock::cli
