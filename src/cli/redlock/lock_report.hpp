// SPDX-License-Identifier: MIT
// The parts of the report on one lock that status and waiters share.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include <redlock/admin.hpp>

#include "cli/invocation.hpp"
#include "cli/nodes.hpp"
#include "cli/redlock/live_view.hpp"

namespace redlock::cli {

/// The owner of the lock, and its holder, in lines.
[[nodiscard]] std::string verdict_lines(const LockReport& report);

/// A subcommand that looks at one lock, and shows the report in the form that `look_of` gives it.
class LockLook {
 public:
  LockLook(CLI::App& app, const Invocation& invocation, Look (*look_of)(LockReport));
  int run();

 private:
  Look (*look_of_)(LockReport);
  NodeOptions nodes_;
  LookOptions look_;
  std::string name_;
};

}  // namespace redlock::cli
