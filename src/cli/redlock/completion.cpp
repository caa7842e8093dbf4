// SPDX-License-Identifier: MIT
// redlock completion: scripts by which shells complete subcommands, options and file names. They
// are made from the parser's options, so that they cannot differ from --help.
#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "cli/command_tree.hpp"
#include "cli/invocation.hpp"
#include "cli/output.hpp"
#include "cli/redlock/external_commands.hpp"
#include "cli/redlock/subcommands.hpp"

namespace redlock::cli {
namespace {

constexpr auto* completion_footer = R"help(
Examples:
  source <(redlock completion bash)       in ~/.bashrc
  source <(redlock completion zsh)        in ~/.zshrc, behind compinit
  redlock completion zsh > _redlock       the same, in a directory of $fpath
  redlock completion fish > ~/.config/fish/completions/redlock.fish

An installed redlock comes with these files.)help";

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

/// Whether one of its arguments, without a name, is a file.
bool has_file_argument(const CommandEntry& command) {
  return std::ranges::any_of(command.options, [](const OptionEntry& option) {
    return option.names.empty() && option.takes_file();
  });
}

/// Of "fleet up" it is "fleet".
std::string joined_parents(const CommandEntry& command) {
  CommandEntry parent;
  parent.words.assign(command.words.begin(), command.words.end() - 1);
  return joined_words(parent);
}

// The completions depend on the subcommand in front of the cursor; behind `--` they are those of
// the user's command.
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
    text += "      '" + joined_parents(command) + "/" + command.words.back() + "') command='" +
            joined_words(command) + "' ;;\n";
  }
  text += R"sh(    esac
  done
  local words='' files='' values='' argument=''
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
    text += "      values='" + as_pattern(names_where(command, takes_value)) + "'";
    text += has_file_argument(command) ? "\n      argument=file ;;\n" : " ;;\n";
  }
  text += R"sh(  esac
  if [[ "|$files|" == *"|$previous|"* || ($argument = file && $current != -* &&
    "|$values|" != *"|$previous|"*) ]]; then
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
         (option.takes_file()          ? "_files"
          : option.value_is_optional() ? "()"
                                       : " ");
}

std::string zsh_specs(const CommandEntry& command) {
  std::string text;
  for (const auto& option : command.options) {
    for (const auto& name : option.names) {
      text += " \\\n        " +
              for_shell(name + "[" + for_zsh_spec(option.description) + "]" + zsh_argument(option));
    }
  }
  return text;
}

// An argument without completions is (), an empty list: a message, " ", as for values, keeps the
// only option that matches from being taken.
std::string zsh_function(const CommandEntry& command) {
  std::string name = "_redlock";
  for (const auto& word : command.words) name += "_" + word;
  std::string text = name + "() {\n  local curcontext=$curcontext context state line\n";
  if (command.words.empty()) {
    text += R"sh(  local -i dashes=${words[(i)--]}
  if ((dashes < CURRENT)); then
    shift dashes words
    ((CURRENT -= dashes))
    _normal
    return
  fi
)sh";
  }
  if (command.subcommands.empty()) {
    text += "  _arguments" + zsh_specs(command) +
            " \\\n        '*:argument:" + (has_file_argument(command) ? "_files" : "()") +
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

// In a directory of $fpath it is the body of _redlock when that is called for the first time.
std::string for_zsh(const Commands& commands) {
  std::string text = "#compdef redlock\n# zsh completion for redlock\n\n";
  for (const auto& command : commands) text += zsh_function(command);
  return text + R"sh(if [[ $funcstack[1] == _redlock ]]; then
  _redlock "$@"
else
  compdef _redlock redlock
fi
)sh";
}

std::string fish_option(const OptionEntry& option) {
  std::string text;
  for (const auto& name : option.names) {
    text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  }
  if (!option.argument.empty() && !option.value_is_optional()) {
    text += option.takes_file() ? " -r -F" : " -x";
  }
  return text + " -d " + for_shell(option.description);
}

/// Functions that say which subcommand stands in front of the cursor ("dashes" behind `--`), and
/// what the command behind these completes.
std::string fish_functions(const Commands& commands) {
  std::string text = R"sh(function __redlock_command
  set -l command
  for word in (commandline -opc)[2..-1]
    switch "$command/$word"
      case '*/--'
        set command dashes
        break
)sh";
  for (const auto& command : commands) {
    if (command.words.empty()) continue;
    text += "      case '" + joined_parents(command) + "/" + command.words.back() +
            "'\n        set command '" + joined_words(command) + "'\n";
  }
  return text + R"sh(    end
  end
  echo $command
end

function __redlock_behind_dashes
  set -l words (commandline -opc)
  set -e words[1..(contains -i -- -- $words)]
  complete -C (string join ' ' -- (string escape -- $words) (commandline -ct))
end

)sh";
}

std::string for_fish(const Commands& commands) {
  std::string text = "# fish completion for redlock\n" + fish_functions(commands) +
                     "complete -c redlock -f\n"
                     "complete -c redlock -n 'test (__redlock_command) = dashes' -a "
                     "'(__redlock_behind_dashes)'\n";
  std::map<std::string, std::string> descriptions;
  for (const auto& command : commands) descriptions[joined_words(command)] = command.description;
  for (const auto& command : commands) {
    const std::string words = joined_words(command);
    const std::string begin =
        "complete -c redlock -n " + for_shell("test (__redlock_command) = '" + words + "'");
    for (const auto& subcommand : command.subcommands) {
      text += begin + " -a " + subcommand + " -d " +
              for_shell(descriptions[(words.empty() ? "" : words + " ") + subcommand]) + "\n";
    }
    if (has_file_argument(command)) text += begin + " -F\n";
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
    print(shells().at(shell_)(whole_command_tree(*root_)));
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
