// SPDX-License-Identifier: MIT
// The redlock command: reads its arguments, hides the passwords in them, and runs one subcommand.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <fcntl.h>
#include <sstream>
#include <unistd.h>

#include <redlock/version.hpp>

#include "cli/event_log.hpp"
#include "cli/exit_code.hpp"
#include "cli/invocation.hpp"
#include "cli/live_view.hpp"
#include "cli/output.hpp"
#include "cli/secrets.hpp"

namespace {

using namespace redlock::cli;

constexpr auto* main_footer = R"help(
Try it on this machine, with redis-server installed:
  redlock fleet up                        starts five nodes, prints an export line: run it
  redlock exec backup -- ./backup.sh      runs ./backup.sh while nobody else holds "backup"
  redlock status backup                   who holds it, according to each node
  redlock fleet down

On a terminal there are colours, unless NO_COLOR is set or TERM is dumb. Every subcommand with nodes
takes --log json: what it says on stderr as one JSON object per line.

Exit status:
  64 usage   69 no quorum of nodes   75 contended or timed out   77 token too old (fence)
  78 configuration (the nodes refuse password, user or set)   79 lease lost   125 internal
  doctor: 1 degraded, 2 unsafe   adopt: 1 a node is left alone   bench: 3 an assertion does not hold
  exec, fence: otherwise that of the command

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

// `redlock help [SUBCOMMAND [ACTION]]` is --help with the words before it.
void turn_help_around(std::vector<std::string>& arguments) {
  if (arguments.size() < 2 || arguments[1] != "help") return;
  arguments.erase(arguments.begin() + 1);
  arguments.emplace_back("--help");
}

// CLI11's own error is only "a subcommand is required".
void check_subcommand(const CLI::App& app, const std::vector<std::string>& arguments) {
  if (arguments.size() < 2 || arguments[1].starts_with('-')) return;
  std::string known;
  for (const CLI::App* subcommand : app.get_subcommands(nullptr)) {
    if (subcommand->get_name() == arguments[1]) return;
    known += (known.empty() ? "" : ", ") + subcommand->get_name();
  }
  throw Exit(exit_usage, "there is no subcommand " + without_passwords(printable(arguments[1])) +
                             "; there are " + known + " (see redlock --help)");
}

void parse(CLI::App& app, std::vector<std::string> arguments) {
  check_subcommand(app, arguments);
  const bool command_is_loose =
      arguments.size() > 3 && arguments[1] == "exec" && !arguments[2].starts_with('-');
  arguments.erase(arguments.begin());
  // CLI11 takes them from the back.
  std::reverse(arguments.begin(), arguments.end());
  try {
    app.parse(arguments);
  } catch (const CLI::Success& wanted) {
    // --help and --version are answers, on stdout.
    std::ostringstream answer;
    app.exit(wanted, answer, answer);
    print(answer.str());
    throw Exit(exit_ok, "");
  } catch (const CLI::ExtrasError& error) {
    const std::string hint = command_is_loose
                                 ? "; the command goes behind --: redlock exec NAME -- CMD ARG..."
                                 : " (see redlock --help)";
    throw Exit(exit_usage, without_passwords(error.what()) + hint);
  } catch (const CLI::ParseError& error) {
    throw Exit(exit_usage, without_passwords(error.what()) + " (see redlock --help)");
  }
}

// If stdin, stdout or stderr is closed, the next descriptor that is opened gets its number: output
// would go into a socket, and libuv aborts when one of its own is among the first three. What takes
// its place fails on use as well, so that lost output is noticed.
void open_missing_descriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    ::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

int conclude(int status, const std::string& why) {
  // -E 0 says that this is no failure.
  const auto level = status == exit_ok ? LogLevel::info : LogLevel::error;
  if (!why.empty()) note({level, "failed", why, {{"status", status}}});
  finish_log();
  return status;
}

int run(int argc, char** argv) {
  Invocation invocation;
  auto arguments = take_arguments(argc, argv);
  invocation.nodes_variable = take_variable("REDLOCK_NODES");
  choose_log_format(arguments);
  turn_help_around(arguments);
  split_off_command(arguments, invocation);
  if (can_watch(arguments)) complete_watch_option(arguments);

  CLI::App app("One mutex for many machines, granted by a majority of independent Redis nodes.",
               "redlock");
  app.set_version_flag("--version", "redlock " REDLOCK_VERSION);
  app.require_subcommand(1);
  app.footer(text_of(main_footer));
  for (const auto add :
       {add_exec, add_fence, add_acquire, add_hold, add_release, add_status, add_waiters, add_list,
        add_doctor, add_adopt, add_bench, add_fleet, add_completion, add_manual}) {
    add(app, invocation);
  }
  parse(app, std::move(arguments));
  const int status = invocation.run();
  finish_log();
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  open_missing_descriptors();
  try {
    return run(argc, argv);
  } catch (const Exit& exit) {
    return conclude(exit.code(), exit.what());
  } catch (const std::exception& error) {
    return conclude(exit_internal, error.what());
  }
}
