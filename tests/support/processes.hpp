// SPDX-License-Identifier: MIT
//
// Watching processes that a test did not start itself, and environment variables that hold for one
// test only.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <sys/types.h>

#include "cluster/unique_fd.hpp"

namespace redlock::testing {

/// Keeps an eye on the process that has this pid now, also when the pid is reused later.
class ProcessWatch {
 public:
  explicit ProcessWatch(pid_t pid);

  /// False once it has ended, reaped or not.
  [[nodiscard]] bool is_running() const { return !ended_within(0); }

  /// Waits for its end; false when it still runs after half a minute.
  [[nodiscard]] bool await_end() const { return ended_within(30'000); }

 private:
  [[nodiscard]] bool ended_within(int timeout_ms) const;

  cluster::UniqueFd handle_;
};

/// How many processes of ours work in `directory` or below it, as a node works in its data
/// directory, whether it still exists or not.
std::size_t processes_in(const std::filesystem::path& directory);

/// For what the system announces by no event (a directory that disappears): asks again and again
/// until it is so; false when it is not after half a minute.
bool eventually(const std::function<bool()>& condition);

/// Sets an environment variable, or removes it, until the end of the scope.
class ScopedVariable {
 public:
  ScopedVariable(std::string name, const std::optional<std::string>& value);
  ~ScopedVariable() { set(before_); }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  void set(const std::optional<std::string>& value) const;

  std::string name_;
  std::optional<std::string> before_;
};

}  // namespace redlock::testing
