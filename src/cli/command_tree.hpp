// SPDX-License-Identifier: MIT
// The subcommands and options as the parser has them, for the completions of shells and the manual
// pages.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace redlock::cli {

struct OptionEntry {
  std::vector<std::string> names;  ///< with dashes, the long ones last; empty for an argument
  std::string argument;            ///< "NAME" of an argument, "FILE" of an option; empty for a flag
  std::string group;               ///< the heading under which --help has it
  std::string description;

  [[nodiscard]] bool takes_file() const;
  /// The next argument need not be its value.
  [[nodiscard]] bool value_is_optional() const { return argument.starts_with('['); }
};

struct CommandEntry {
  std::vector<std::string> words;  ///< "fleet", "up"; empty for redlock itself
  std::string usage;
  std::string description;
  std::string footer;
  std::vector<OptionEntry> options;
  std::vector<std::string> subcommands;
};

// By which a program beside redlock describes itself.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(OptionEntry, names, argument, group, description)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CommandEntry, words, usage, description, footer, options,
                                   subcommands)

/// `app` and everything below it, parents first.
[[nodiscard]] std::vector<CommandEntry> command_tree(CLI::App& app);

/// "exec" or "fleet up"; empty for redlock itself.
[[nodiscard]] std::string joined_words(const CommandEntry& command);

}  // namespace redlock::cli
