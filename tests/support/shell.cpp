// SPDX-License-Identifier: MIT
//
// popen, with both streams in one.
#include "support/shell.hpp"

#include <array>
#include <cstdio>
#include <stdexcept>
#include <sys/wait.h>

namespace redlock::testing {

ShellResult shell(const std::string& command) {
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

std::string quoted(const std::string& word) {
  std::string result = "'";
  for (const char c : word) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

}  // namespace redlock::testing
