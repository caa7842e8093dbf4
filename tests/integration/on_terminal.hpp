// SPDX-License-Identifier: MIT
// A shell on a terminal of its own, for tests of what the command does there.
#pragma once

#include <pty.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <termios.h>

#include "cli_process.hpp"

namespace redlock::testing {

/// A shell script on a terminal of its own. What is typed is not echoed.
class OnTerminal {
 public:
  OnTerminal(const cluster::Fleet& fleet, const std::string& script,
             const char* shell = "/bin/sh") {
    const auto nodes = nodes_variable(fleet.uris()).at("REDLOCK_NODES");
    termios settings{};
    ::cfmakeraw(&settings);
    settings.c_lflag = ISIG | ICANON;
    settings.c_oflag = 0;
    settings.c_cc[VINTR] = 3;
    settings.c_cc[VSUSP] = 26;
    settings.c_cc[VEOF] = 4;
    int fd = -1;
    pid_ = ::forkpty(&fd, nullptr, &settings, nullptr);
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      stop_ignoring_signals();
      ::setenv("REDLOCK_NODES", nodes.c_str(), 1);
      ::setenv("REDLOCK_QUARANTINE", "off", 1);
      ::setenv("REDLOCK", command_path().c_str(), 1);
      ::setenv("TERM", "xterm", 1);
      ::unsetenv("NO_COLOR");
      ::unsetenv("COLUMNS");
      ::execl(shell, shell, "-c", script.c_str(), nullptr);
      ::_exit(99);
    }
    terminal_ = UniqueFd(fd);
  }
  OnTerminal(const OnTerminal&) = delete;
  OnTerminal& operator=(const OnTerminal&) = delete;
  ~OnTerminal() {
    ::kill(-pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  void type(std::string_view keys) const {
    REQUIRE(::write(terminal_.get(), keys.data(), keys.size()) ==
            static_cast<ssize_t>(keys.size()));
  }

  /// As when somebody draws at the window's corner.
  void resize(unsigned short columns, unsigned short lines) const {
    winsize size{};
    size.ws_col = columns;
    size.ws_row = lines;
    REQUIRE(::ioctl(terminal_.get(), TIOCSWINSZ, &size) == 0);
  }

  /// Waits until this was printed, behind what earlier calls waited for.
  bool await(const std::string& text) {
    for (;;) {
      if (const auto at = shown_.find(text, seen_); at != std::string::npos) {
        seen_ = at + text.size();
        return true;
      }
      pollfd polled{terminal_.get(), POLLIN, 0};
      if (::poll(&polled, 1, 30'000) <= 0) return false;
      std::array<char, 4096> buffer{};
      const auto count = ::read(terminal_.get(), buffer.data(), buffer.size());
      if (count <= 0) return false;
      shown_.append(buffer.data(), static_cast<std::size_t>(count));
    }
  }
  /// Waits for each text in turn, and types what stands behind it.
  struct Turn {
    std::string shown;
    std::string typed;
  };
  void converse(const std::vector<Turn>& turns) {
    for (const Turn& turn : turns) {
      CAPTURE(shown_);
      REQUIRE_MESSAGE(await(turn.shown), turn.shown);
      type(turn.typed);
    }
  }
  [[nodiscard]] const std::string& shown() const { return shown_; }

 private:
  pid_t pid_ = -1;
  UniqueFd terminal_;
  std::string shown_;
  std::size_t seen_ = 0;
};

}  // namespace redlock::testing
