// SPDX-License-Identifier: MIT
// redlock manual: manual pages (troff, macros of man(7)), made of what --help shows.
#include <algorithm>
#include <filesystem>
#include <fmt/core.h>
#include <fstream>
#include <map>
#include <sstream>
#include <system_error>

#include <redlock/version.hpp>

#include "cli/command_tree.hpp"
#include "cli/exit_code.hpp"
#include "cli/invocation.hpp"
#include "cli/output.hpp"
#include "cli/redlock/external_commands.hpp"
#include "cli/redlock/subcommands.hpp"

namespace redlock::cli {
namespace {

constexpr auto* manual_footer = R"help(
SUBCOMMAND is a subcommand of redlock, or two words such as "fleet up"; the default is redlock(1).

Examples:
  redlock manual | man -l -               redlock(1)
  redlock manual exec > redlock-exec.1    redlock-exec(1)
  redlock manual --all pages              all pages, as files in the directory pages

An installed redlock comes with these pages: man redlock, man redlock-exec.)help";

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  return text;
}

/// So that troff takes no character for a command, and dashes stay those of options.
std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else {
      result += c;
    }
  }
  if (result.starts_with('.') || result.starts_with('\'')) result.insert(0, "\\&");
  return result;
}

std::string page_name(const CommandEntry& command) {
  std::string name = "redlock";
  for (const auto& word : command.words) name += "-" + word;
  return name;
}

std::string options_of(const CommandEntry& command) {
  std::vector<std::string> groups;
  std::map<std::string, std::string> texts;
  for (const auto& option : command.options) {
    if (std::find(groups.begin(), groups.end(), option.group) == groups.end()) {
      groups.push_back(option.group);
    }
    std::string& text = texts[option.group];
    text += ".TP\n";
    if (option.names.empty()) {
      text += "\\fI" + escaped(option.argument) + "\\fR\n";
    } else {
      std::string names;
      for (const auto& name : option.names) {
        names += (names.empty() ? "" : ", ") + ("\\fB" + escaped(name) + "\\fR");
      }
      text += names + (option.argument.empty() ? "" : " \\fI" + escaped(option.argument) + "\\fR") +
              "\n";
    }
    text += escaped(option.description) + "\n";
  }
  std::string result;
  for (const auto& group : groups) result += ".SH " + upper(group) + "\n" + texts[group];
  return result;
}

/// Paragraphs of --help: those that are indented, or have lines that are, keep their lines.
std::string paragraphs_of(const std::string& footer) {
  std::string result;
  std::istringstream lines(footer);
  std::vector<std::string> paragraph;
  const auto flush = [&] {
    if (paragraph.empty()) return;
    const bool keeps_lines = std::any_of(paragraph.begin(), paragraph.end(),
                                         [](const auto& line) { return line.starts_with("  "); });
    result += keeps_lines ? ".PP\n.nf\n" : ".PP\n";
    for (const auto& line : paragraph) result += escaped(line) + "\n";
    if (keeps_lines) result += ".fi\n";
    paragraph.clear();
  };
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) {
      flush();
    } else {
      paragraph.push_back(line);
    }
  }
  flush();
  return result;
}

std::string page_of(const CommandEntry& command, const std::vector<CommandEntry>& all) {
  const std::string name = page_name(command);
  std::string page =
      fmt::format(".TH {} 1 \"\" \"redlock {}\" \"redlock\"\n", upper(name), REDLOCK_VERSION);
  page += ".SH NAME\n" + escaped(name) + " \\- " + escaped(command.description) + "\n";
  page += ".SH SYNOPSIS\n.B " + escaped(command.usage) + "\n";
  if (!command.subcommands.empty()) {
    page += ".SH SUBCOMMANDS\n";
    for (const auto& other : all) {
      if (other.words.size() != command.words.size() + 1 ||
          !std::equal(command.words.begin(), command.words.end(), other.words.begin())) {
        continue;
      }
      page +=
          ".TP\n\\fB" + escaped(page_name(other)) + "\\fR(1)\n" + escaped(other.description) + "\n";
    }
  }
  page += options_of(command);
  page += ".SH DESCRIPTION\n" + paragraphs_of(command.footer);
  if (!command.words.empty()) page += ".SH SEE ALSO\n\\fBredlock\\fR(1)\n";
  return page;
}

class Manual {
 public:
  Manual(CLI::App& app, const Invocation& /*invocation*/) : root_(app.get_parent()) {
    app.add_option("SUBCOMMAND", words_, "Whose page to print; default: that of redlock itself")
        ->expected(0, 2);
    app.add_option("--all", directory_, "Write every page into this directory")
        ->option_text("DIRECTORY");
  }

  int run() {
    const auto commands = whole_command_tree(*root_);
    if (!directory_.empty()) return write_all(commands);
    const auto wanted = std::find_if(commands.begin(), commands.end(), [this](const auto& command) {
      return command.words == words_;
    });
    if (wanted == commands.end()) {
      throw Exit(exit_usage, "there is no such subcommand: see redlock --help");
    }
    print(page_of(*wanted, commands));
    return exit_ok;
  }

 private:
  int write_all(const std::vector<CommandEntry>& commands) const {
    const std::filesystem::path directory = directory_;
    std::error_code none;
    std::filesystem::create_directories(directory, none);
    for (const auto& command : commands) {
      const auto path = directory / (page_name(command) + ".1");
      std::ofstream page(path);
      page << page_of(command, commands);
      page.close();
      if (!page) throw Exit(exit_usage, "cannot write " + printable(path.string()));
    }
    return exit_ok;
  }

  CLI::App* root_;
  std::vector<std::string> words_;
  std::string directory_;
};

}  // namespace

void add_manual(CLI::App& app, Invocation& invocation) {
  add_command<Manual>(
      app, invocation,
      {"manual", "Print a manual page", "redlock manual [SUBCOMMAND]", manual_footer});
}

}  // namespace redlock::cli
