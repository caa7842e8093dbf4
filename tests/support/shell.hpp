// SPDX-License-Identifier: MIT
//
// Runs a command as a user would type it.
#pragma once

#include <array>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <sys/wait.h>

namespace redlock::testing {

struct ShellResult {
  int status = -1;     // the exit status, or 128 + the number of the signal that ended it
  std::string output;  // stdout and stderr together
};

/// Runs `command` with sh and waits for it.
inline ShellResult shell(const std::string& command) {
  std::FILE* pipe = ::popen(("exec 2>&1; " + command).c_str(), "re");
  if (pipe == nullptr) throw std::runtime_error("popen failed");
  ShellResult result;
  std::array<char, 4096> chunk{};
  while (const auto count = std::fread(chunk.data(), 1, chunk.size(), pipe)) {
    result.output.append(chunk.data(), count);
  }
  const int status = ::pclose(pipe);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

/// One word for sh, whatever is in it.
inline std::string quoted(const std::string& word) {
  std::string result = "'";
  for (const char c : word) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

}  // namespace redlock::testing
