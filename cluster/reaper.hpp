// SPDX-License-Identifier: MIT
//
// Servers must not outlive the program that started them, even when that program is killed by a
// signal that it cannot catch. The reaper is a tiny process that holds one end of a socket: when
// the other end closes, for whatever reason, it kills the servers and deletes their directory.
//
// All servers join the reaper's process group. While the reaper lives, the number of its group
// cannot be reused, so killing the group hits nobody else; and a server belongs to the group before
// it runs, so that there is no moment at which it could be missed.
#pragma once

#include <filesystem>
#include <sys/types.h>

#include "process.hpp"
#include "unique_fd.hpp"

namespace redlock::cluster {

class Reaper {
 public:
  /// Starts watching over a directory that need not exist yet; empty: over servers only.
  explicit Reaper(const std::filesystem::path& directory);
  Reaper(const Reaper&) = delete;
  Reaper& operator=(const Reaper&) = delete;

  /// Kills what is left in the group, and the reaper. (Not in a forked child: there it does
  /// nothing.)
  ~Reaper();

  /// The process group that servers are to join.
  [[nodiscard]] pid_t group() const { return process_.id().pid; }

  /// True in the process that made this reaper, false in a forked child of it.
  [[nodiscard]] bool is_ours() const { return owner_ == ::getpid(); }

  /// Ends the reaper without killing the servers: they outlive this program.
  void let_go();

 private:
  Reaper(const std::filesystem::path& directory, std::pair<UniqueFd, UniqueFd> ends);

  pid_t owner_;
  UniqueFd our_end_;
  Process process_;
  bool let_go_ = false;
};

}  // namespace redlock::cluster
