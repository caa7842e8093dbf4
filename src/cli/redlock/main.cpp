// SPDX-License-Identifier: MIT
// The redlock command: the frame around its subcommands, and their list.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <redlock/version.hpp>

#include "cli/invocation.hpp"
#include "cli/program.hpp"
#include "cli/redlock/external_commands.hpp"
#include "cli/redlock/live_view.hpp"
#include "cli/redlock/subcommands.hpp"

namespace {

using namespace redlock::cli;

constexpr auto* main_footer = R"help(
Try it on this machine, with redis-server installed:
  redlock fleet up                        starts five nodes, prints an export line: run it
  redlock exec backup -- ./backup.sh      runs ./backup.sh while it holds the lock "backup"
  redlock status backup                   shows who holds the lock, according to each node
  redlock fleet down

A terminal gets colours, unless NO_COLOR is set or TERM is dumb. Every subcommand that uses nodes
takes --log json: each line on stderr is then a JSON object.

Exit status:
  64 usage   69 no quorum of nodes   75 contended or timed out   77 token too old (fence)
  78 configuration (the nodes refuse password, user or set)   79 lease lost   125 internal
  doctor: 1 degraded, 2 unsafe   adopt, set replace: 1 a node is left alone
  bench: 3 an assertion fails
  exec, fence: otherwise the exit status of the command

`redlock help SUBCOMMAND` (or `redlock SUBCOMMAND --help`) says more, with examples.)help";

// CLI11 would read the options of the user's command as ours. Only exec and fence have a command;
// elsewhere `--` has its usual meaning, and a name behind it may begin with a dash.
void split_off_command(std::vector<std::string>& arguments, Invocation& invocation) {
  if (arguments.size() < 2 || (arguments[1] != "exec" && arguments[1] != "fence")) return;
  const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  if (dashes == arguments.end()) return;
  invocation.command.emplace(dashes + 1, arguments.end());
  arguments.erase(dashes, arguments.end());
}

bool can_watch(const std::vector<std::string>& arguments) {
  return arguments.size() > 1 &&
         (arguments[1] == "status" || arguments[1] == "waiters" || arguments[1] == "doctor");
}

int run(int argc, char** argv) {
  run_external_command(argc, argv);
  Invocation invocation;
  auto arguments = take_command_line(argc, argv, invocation);
  split_off_command(arguments, invocation);
  if (can_watch(arguments)) complete_watch_option(arguments);

  CLI::App app("One mutex for many machines, granted by a majority of independent Redis nodes.",
               "redlock");
  app.set_version_flag("--version", "redlock " REDLOCK_VERSION);
  app.require_subcommand(1);
  app.footer(text_of(main_footer));
  for (const auto add : subcommands) add(app, invocation);
  add_external_commands(app);
  add_completion(app, invocation);
  add_manual(app, invocation);
  return parse_and_run(app, std::move(arguments), invocation);
}

}  // namespace

int main(int argc, char** argv) {
  return run_to_end([=] { return run(argc, argv); });
}
