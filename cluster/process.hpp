// SPDX-License-Identifier: MIT
//
// A process that cannot be mistaken for another one. A bare pid may be reused after its process
// ended; here a pid always goes with the start time of its process, and signals go through a pidfd.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

#include "unique_fd.hpp"

namespace redlock::cluster {

/// Names one process of one boot, now and after it has ended.
struct ProcessId {
  pid_t pid = -1;
  std::uint64_t started = 0;  // clock ticks since boot, field 22 of /proc/PID/stat
};

/// How to start a process. It gets no descriptor besides the three standard ones, default signal
/// handlers, an empty signal mask, and the environment without the REDLOCK_ variables.
struct SpawnRequest {
  std::vector<std::string> argv;      // argv[0] is the program: a path, or a name in PATH
  pid_t group = 0;                    // the process group to join; 0: lead a new one
  int standard_input = -1;            // -1: /dev/null
  std::filesystem::path output = {};  // stdout and stderr are appended here; empty: /dev/null
};

class Process {
 public:
  /// Starts a process. Throws FleetError when the system refuses.
  static Process spawn(const SpawnRequest& request);

  /// The process that `id` names, or nothing when it has ended.
  static std::optional<Process> find(ProcessId id);

  [[nodiscard]] ProcessId id() const { return id_; }
  [[nodiscard]] bool ended() const;
  [[nodiscard]] bool stopped() const;

  /// Sends a signal; does nothing if the process has ended.
  void signal(int number) const;

  /// Waits until the process has ended; a child of ours is then reaped. False: it still runs.
  bool await_end(std::chrono::milliseconds timeout) const;

  /// Waits until a SIGSTOP has taken effect. False: it still runs.
  bool await_stop(std::chrono::milliseconds timeout) const;

 private:
  Process(ProcessId id, UniqueFd handle) : id_(id), handle_(std::move(handle)) {}

  ProcessId id_;
  UniqueFd handle_;  // the pidfd; empty when the process ended before it could be opened
};

}  // namespace redlock::cluster
