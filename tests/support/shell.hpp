// SPDX-License-Identifier: MIT
//
// Runs a command as a user would type it.
#pragma once

#include <string>

namespace redlock::testing {

struct ShellResult {
  int status = -1;     // the exit status, or 128 + the number of the signal that ended it
  std::string output;  // stdout and stderr together
};

/// Runs `command` with sh and waits for it.
ShellResult shell(const std::string& command);

/// One word for sh, whatever is in it.
std::string quoted(const std::string& word);

}  // namespace redlock::testing
