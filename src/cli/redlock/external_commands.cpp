// SPDX-License-Identifier: MIT
#include "cli/redlock/external_commands.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fmt/core.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <unistd.h>

#include "cli/event_log.hpp"
#include "cli/exit_code.hpp"
#include "cli/external_command.hpp"
#include "cli/output.hpp"
#include "cli/program.hpp"

namespace redlock::cli {
namespace {

namespace fs = std::filesystem;

bool is_external(const std::string& name) {
  return std::ranges::any_of(external_commands,
                             [&](const auto& each) { return each.name == name; });
}

/// Beside this program, wherever a link to it stands.
fs::path path_of(const std::string& name) {
  std::error_code none;
  return fs::read_symlink("/proc/self/exe", none).replace_filename("redlock-" + name);
}

/// The program's description of its subcommands and options; nothing if it cannot be run.
std::vector<CommandEntry> described_by(const fs::path& program) {
  if (::access(program.c_str(), X_OK) != 0) return {};
  const auto line = for_shell(program.string()) + " " + describe_option;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(::popen(line.c_str(), "re"),
                                                             &::pclose);
  std::string text;
  std::array<char, 4096> part{};
  while (pipe != nullptr) {
    const auto count = std::fread(part.data(), 1, part.size(), pipe.get());
    if (count == 0) break;
    text.append(part.data(), count);
  }
  const auto commands = nlohmann::json::parse(text, nullptr, false);
  return commands.is_array() ? commands.get<std::vector<CommandEntry>>()
                             : std::vector<CommandEntry>();
}

}  // namespace

void run_external_command(int argc, char** argv) {
  std::vector<std::string> arguments(argv, argv + argc);
  turn_help_around(arguments);
  if (arguments.size() < 2 || !is_external(arguments[1])) return;
  const auto program = path_of(arguments[1]);
  std::vector<char*> theirs{arguments[0].data()};
  for (std::size_t i = 2; i < arguments.size(); ++i) theirs.push_back(arguments[i].data());
  theirs.push_back(nullptr);
  ::execv(program.c_str(), theirs.data());
  const int why = errno;
  choose_log_format(arguments);
  if (why != ENOENT) {
    throw Exit(exit_cannot_run, fmt::format("{} cannot be run: {}", program.string(),
                                            std::generic_category().message(why)));
  }
  throw Exit(exit_not_found,
             fmt::format("redlock {0} is a separate program, {1}, which is not installed; "
                         "install the package redlock-tools, or build the target redlock_commands",
                         arguments[1], program.string()));
}

void add_external_commands(CLI::App& app) {
  for (const auto& each : external_commands) app.add_subcommand(each.name, each.description);
}

std::vector<CommandEntry> whole_command_tree(CLI::App& app) {
  std::vector<CommandEntry> all;
  for (auto& command : command_tree(app)) {
    const bool external = command.words.size() == 1 && is_external(command.words.front());
    auto described =
        external ? described_by(path_of(command.words.front())) : std::vector<CommandEntry>();
    if (described.empty()) described.push_back(std::move(command));
    all.insert(all.end(), described.begin(), described.end());
  }
  return all;
}

}  // namespace redlock::cli
