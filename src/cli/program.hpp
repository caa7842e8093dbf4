// SPDX-License-Identifier: MIT
// The parts of main() of redlock and of the programs beside it: it reads the arguments, hides the
// passwords in them, runs one subcommand, and turns an exception into a sentence and a status.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "cli/external_command.hpp"
#include "cli/invocation.hpp"

namespace redlock::cli {

/// The exit status of `work`; that of the Exit by which it ended, whose sentence goes to stderr.
[[nodiscard]] int run_to_end(const std::function<int()>& work);

/// The arguments and REDLOCK_NODES, whose passwords are overwritten where other users see them.
[[nodiscard]] std::vector<std::string> take_command_line(int argc, char** argv,
                                                         Invocation& invocation);

/// `help [SUBCOMMAND [ACTION]]` is --help with the words before it.
void turn_help_around(std::vector<std::string>& arguments);

/// Runs the subcommand that the arguments name. Throws Exit.
[[nodiscard]] int parse_and_run(CLI::App& app, std::vector<std::string> arguments,
                                Invocation& invocation);

/// main() of the program that is this subcommand.
[[nodiscard]] int external_main(const ExternalCommand& command, void (*add)(CLI::App&, Invocation&),
                                int argc, char** argv);

}  // namespace redlock::cli
