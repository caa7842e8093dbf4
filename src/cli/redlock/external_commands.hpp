// SPDX-License-Identifier: MIT
// How redlock finds the programs that are subcommands of it (external_command.hpp).
#pragma once

#include <CLI/CLI.hpp>
#include <vector>

#include "cli/command_tree.hpp"

namespace redlock::cli {

/// Replaces this process by the program that the arguments name; returns if they name none. Throws
/// Exit if that program cannot be run. To be called before any argument is taken: passwords in
/// them are that program's to hide.
void run_external_command(int argc, char** argv);

/// For --help: their names and descriptions.
void add_external_commands(CLI::App& app);

/// The command tree of `app`, with the programs' own descriptions. A program that is not installed
/// appears with its name and description.
[[nodiscard]] std::vector<CommandEntry> whole_command_tree(CLI::App& app);

}  // namespace redlock::cli
