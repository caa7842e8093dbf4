// SPDX-License-Identifier: MIT
// redlock completion: scripts by which shells complete subcommands, options and file names. They
// are made of what the parser knows, so that they cannot differ from --help.
#include <functional>
#include <map>
#include <utility>

#include "cli/command_tree.hpp"
#include "cli/invocation.hpp"
#include "cli/output.hpp"

namespace redlock::cli {
namespace {

constexpr auto* completion_footer = R"help(
Examples:
  source <(redlock completion bash)       in ~/.bashrc
  redlock completion zsh > _redlock       in a directory of $fpath
  redlock completion fish > ~/.config/fish/completions/redlock.fish

An installed redlock brings these files along.)help";

using Commands = std::vector<CommandEntry>;

std::string names_where(const CommandEntry& command,
                        const std::function<bool(const OptionEntry&)>& is_wanted) {
  std::string text;
  for (const auto& option : command.options) {
    if (!is_wanted(option)) continue;
    for (const auto& name : option.names) text += (text.empty() ? "" : " ") + name;
  }
  return text;
}

/// The names with | between them, as a pattern of `case`; one that matches nothing if there are
/// none.
std::string as_pattern(std::string names) {
  if (names.empty()) return "''";
  for (char& c : names) c = c == ' ' ? '|' : c;
  return names;
}

std::string words_for(const CommandEntry& command) {
  std::string text = names_where(command, [](const OptionEntry&) { return true; });
  for (const auto& subcommand : command.subcommands) text += " " + subcommand;
  return text;
}

bool has_command_behind_dashes(const CommandEntry& command) {
  return command.usage.find(" -- CMD") != std::string::npos;
}

// What is offered depends on the subcommand in front of the cursor; behind `--` it is what the
// command that stands there completes.
std::string for_bash(const Commands& commands) {
  std::string text = R"sh(# bash completion for redlock
_redlock() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command='' word i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; ++i)); do
    word=${COMP_WORDS[i]}
    if [ "$word" = -- ]; then
      if declare -F _command_offset >/dev/null; then
        _command_offset $((i + 1))
      else
        mapfile -t COMPREPLY < <(compgen -c -- "$current")
      fi
      return
    fi
    case "$command/$word" in
)sh";
  for (const auto& command : commands) {
    if (command.words.empty()) continue;
    std::string parent;
    for (std::size_t i = 0; i + 1 < command.words.size(); ++i) {
      parent += (parent.empty() ? "" : " ") + command.words[i];
    }
    text += "      '" + parent + "/" + command.words.back() + "') command='" +
            joined_words(command) + "' ;;\n";
  }
  text += R"sh(    esac
  done
  local words='' files='' values=''
  case $command in
)sh";
  for (const auto& command : commands) {
    const auto takes_value = [](const OptionEntry& option) {
      return !option.argument.empty() && !option.value_is_optional();
    };
    text += "    '" + joined_words(command) + "')\n      words='" + words_for(command) + "'\n";
    text +=
        "      files='" +
        as_pattern(names_where(command, [](const auto& option) { return option.takes_file(); })) +
        "'\n";
    text += "      values='" + as_pattern(names_where(command, takes_value)) + "' ;;\n";
  }
  text += R"sh(  esac
  if [[ "|$files|" == *"|$previous|"* ]]; then
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
    compopt -o filenames 2>/dev/null || true
  elif [[ "|$values|" != *"|$previous|"* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
  fi
}
complete -F _redlock redlock
)sh";
  return text;
}

std::string in_single_quotes(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

/// For _arguments, to which brackets and colons mean something.
std::string for_zsh_spec(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string zsh_argument(const OptionEntry& option) {
  if (option.argument.empty()) return "";
  return (option.value_is_optional() ? "::" : ":") + for_zsh_spec(option.argument) + ":" +
         (option.takes_file() ? "_files" : " ");
}

std::string zsh_specs(const CommandEntry& command) {
  std::string text;
  for (const auto& option : command.options) {
    for (const auto& name : option.names) {
      text += " \\\n        " + in_single_quotes(name + "[" + for_zsh_spec(option.description) +
                                                 "]" + zsh_argument(option));
    }
  }
  return text;
}

std::string zsh_function(const CommandEntry& command) {
  std::string name = "_redlock";
  for (const auto& word : command.words) name += "_" + word;
  std::string text = name + "() {\n  local line state\n";
  if (command.subcommands.empty()) {
    text += "  _arguments" + zsh_specs(command) +
            " \\\n        '*:argument:" + (has_command_behind_dashes(command) ? "_normal" : " ") +
            "'\n}\n\n";
    return text;
  }
  text += "  _arguments -C" + zsh_specs(command) + " \\\n        '1:subcommand:(";
  for (const auto& subcommand : command.subcommands) text += subcommand + " ";
  text += ")' '*::argument:->rest'\n  case \"$state/$line[1]\" in\n";
  for (const auto& subcommand : command.subcommands) {
    text += "    rest/" + subcommand + ") " + name + "_" + subcommand + " ;;\n";
  }
  return text + "  esac\n}\n\n";
}

std::string for_zsh(const Commands& commands) {
  std::string text = "#compdef redlock\n# zsh completion for redlock\n\n";
  for (const auto& command : commands) text += zsh_function(command);
  return text + "_redlock \"$@\"\n";
}

/// When what belongs to this command is offered.
std::string fish_condition(const CommandEntry& command) {
  std::string text = command.words.empty() ? "not __fish_seen_subcommand_from" : "";
  if (command.words.empty()) {
    for (const auto& subcommand : command.subcommands) text += " " + subcommand;
  }
  for (const auto& word : command.words) {
    text += (text.empty() ? "" : "; and ") + ("__fish_seen_subcommand_from " + word);
  }
  return text;
}

std::string fish_option(const OptionEntry& option) {
  std::string text;
  for (const auto& name : option.names) {
    text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  }
  if (!option.argument.empty() && !option.value_is_optional()) {
    text += option.takes_file() ? " -r -F" : " -x";
  }
  return text + " -d " + in_single_quotes(option.description);
}

std::string for_fish(const Commands& commands) {
  std::string text = "# fish completion for redlock\ncomplete -c redlock -f\n";
  std::map<std::string, std::string> descriptions;
  for (const auto& command : commands) descriptions[joined_words(command)] = command.description;
  for (const auto& command : commands) {
    const std::string begin = "complete -c redlock -n " + in_single_quotes(fish_condition(command));
    const std::string words = joined_words(command) + (command.words.empty() ? "" : " ");
    for (const auto& subcommand : command.subcommands) {
      text += begin + " -a " + subcommand + " -d " +
              in_single_quotes(descriptions[words + subcommand]) + "\n";
    }
    for (const auto& option : command.options) {
      if (!option.names.empty()) text += begin + fish_option(option) + "\n";
    }
  }
  return text;
}

const std::map<std::string, std::string (*)(const Commands&)>& shells() {
  static const std::map<std::string, std::string (*)(const Commands&)> known{
      {"bash", for_bash}, {"fish", for_fish}, {"zsh", for_zsh}};
  return known;
}

class Completion {
 public:
  Completion(CLI::App& app, const Invocation& /*invocation*/) : root_(app.get_parent()) {
    app.add_option("SHELL", shell_, "bash, zsh or fish")
        ->required()
        ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  }

  int run() {
    print(shells().at(shell_)(command_tree(*root_)));
    return 0;
  }

 private:
  CLI::App* root_;
  std::string shell_;
};

}  // namespace

void add_completion(CLI::App& app, Invocation& invocation) {
  add_command<Completion>(app, invocation,
                          {"completion", "Print the completions of a shell",
                           "redlock completion bash|zsh|fish", completion_footer});
}

}  // namespace redlock::cli
