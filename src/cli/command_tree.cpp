// SPDX-License-Identifier: MIT
#include "cli/command_tree.hpp"

#include <utility>

namespace redlock::cli {
namespace {

OptionEntry entry_of(const CLI::Option& option) {
  OptionEntry entry;
  for (const auto& name : option.get_snames()) entry.names.push_back("-" + name);
  for (const auto& name : option.get_lnames()) entry.names.push_back("--" + name);
  if (entry.names.empty()) {
    entry.argument = option.get_name();
  } else if (option.get_items_expected_max() > 0) {
    entry.argument = option.get_option_text().empty() ? "VALUE" : option.get_option_text();
  }
  entry.group = entry.names.empty() ? "Arguments" : option.get_group();
  entry.description = option.get_description();
  return entry;
}

std::string usage_of(const CLI::App& app) {
  const std::string begin = "Usage: ";
  // App::help would be that of the subcommand that was parsed.
  const std::string help =
      app.get_formatter()->make_help(&app, app.get_name(), CLI::AppFormatMode::Normal);
  const auto at = help.find(begin) + begin.size();
  return help.substr(at, help.find('\n', at) - at);
}

void add_tree(CLI::App& app, const std::vector<std::string>& words,
              std::vector<CommandEntry>& commands) {
  CommandEntry command{words, usage_of(app), app.get_description(), app.get_footer(), {}, {}};
  for (const CLI::Option* const option : app.get_options()) {
    if (!option->get_group().empty()) command.options.push_back(entry_of(*option));
  }
  const auto below = app.get_subcommands([](const CLI::App* child) {
    return !child->get_name().empty() && !child->get_group().empty();
  });
  for (const CLI::App* const child : below) command.subcommands.push_back(child->get_name());
  commands.push_back(std::move(command));
  for (CLI::App* const child : below) {
    auto child_words = words;
    child_words.push_back(child->get_name());
    add_tree(*child, child_words, commands);
  }
}

}  // namespace

bool OptionEntry::takes_file() const {
  return argument.starts_with("FILE") || argument.starts_with("DIR");
}

std::vector<CommandEntry> command_tree(CLI::App& app) {
  std::vector<CommandEntry> commands;
  add_tree(app, {}, commands);
  return commands;
}

std::string joined_words(const CommandEntry& command) {
  std::string text;
  for (const auto& word : command.words) text += (text.empty() ? "" : " ") + word;
  return text;
}

}  // namespace redlock::cli
