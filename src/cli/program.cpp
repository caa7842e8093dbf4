// SPDX-License-Identifier: MIT
#include "cli/program.hpp"

#include <algorithm>
#include <exception>
#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sstream>
#include <unistd.h>
#include <utility>

#include "cli/command_tree.hpp"
#include "cli/event_log.hpp"
#include "cli/exit_code.hpp"
#include "cli/output.hpp"
#include "cli/secrets.hpp"

namespace redlock::cli {
namespace {

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
// would go into a socket, and libuv aborts when one of its own is among the first three. The
// descriptor that takes its place fails on use as well, so that lost output is noticed.
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

}  // namespace

int run_to_end(const std::function<int()>& work) {
  open_missing_descriptors();
  try {
    return work();
  } catch (const Exit& exit) {
    return conclude(exit.code(), exit.what());
  } catch (const std::exception& error) {
    return conclude(exit_internal, error.what());
  }
}

std::vector<std::string> take_command_line(int argc, char** argv, Invocation& invocation) {
  auto arguments = take_arguments(argc, argv);
  invocation.nodes_variable = take_variable("REDLOCK_NODES");
  choose_log_format(arguments);
  turn_help_around(arguments);
  return arguments;
}

void turn_help_around(std::vector<std::string>& arguments) {
  if (arguments.size() < 2 || arguments[1] != "help") return;
  arguments.erase(arguments.begin() + 1);
  arguments.emplace_back("--help");
}

int parse_and_run(CLI::App& app, std::vector<std::string> arguments, Invocation& invocation) {
  parse(app, std::move(arguments));
  const int status = invocation.run();
  finish_log();
  return status;
}

int external_main(const ExternalCommand& command, void (*add)(CLI::App&, Invocation&), int argc,
                  char** argv) {
  return run_to_end([&] {
    Invocation invocation;
    auto arguments = take_command_line(argc, argv, invocation);
    CLI::App app("", "redlock");
    app.require_subcommand(1);
    add(app, invocation);
    if (arguments.size() == 2 && arguments[1] == describe_option) {
      auto commands = command_tree(app);
      commands.erase(commands.begin());  // redlock itself
      print(nlohmann::json(commands).dump());
      return exit_ok;
    }
    arguments.insert(arguments.begin() + 1, command.name);
    return parse_and_run(app, std::move(arguments), invocation);
  });
}

}  // namespace redlock::cli
