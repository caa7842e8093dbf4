// SPDX-License-Identifier: MIT
// What shells complete, and the manual pages: both are made of what the parser knows.
#include "cli_process.hpp"

namespace redlock::testing {
namespace {

namespace fs = std::filesystem;

Finished in_bash(const std::string& script) {
  return Running({"-c", script}, {{"PATH", REDLOCK_BIN_DIR ":/usr/bin:/bin"}}, "/bin/bash").wait();
}

bool installed(const std::string& program) {
  if (in_bash("command -v " + program).status == 0) return true;
  MESSAGE("there is no ", program, " here: nothing of it is run");
  return false;
}

/// The last of these words is being written, and there is one completion of it, or none.
struct Completion {
  std::string words;
  std::string completed;
};
const std::vector<Completion> completions{
    {"redlock ex", "exec"},
    {"redlock fleet rest", "restart"},
    {"redlock exec report --grac", "--grace"},
    {"redlock fleet up --gra", ""},
    {"redlock fleet list --node-t", ""},
    {"redlock exec report --lease /usr/bin/basenam", ""},
    {"redlock exec list --max", "--max-lease"},
    {"redlock status report --watch --node-t", "--node-timeout"},
    {"redlock exec report --wait exec --nodes-f", "--nodes-file"},
    {"redlock exec report --nodes-file /usr/bin/basenam", "/usr/bin/basename"},
    {"redlock doctor --trace /usr/bin/basenam", "/usr/bin/basename"},
    {"redlock fence /usr/bin/basenam", "/usr/bin/basename"},
    {"redlock status /usr/bin/basenam", ""},
    {"redlock exec report -- basenam", "basename"},
    {"redlock exec report -- cat /usr/bin/basenam", "/usr/bin/basename"},
};

/// What bash offers behind these words, sorted; an empty line where that is nothing.
std::string completed_by_bash(const std::string& words) {
  const auto finished = in_bash("set -eu; source <(redlock completion bash); COMP_WORDS=(" + words +
                                "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _redlock; printf "
                                "'%s\\n' \"${COMPREPLY[@]-}\" | sort -u");
  CHECK_MESSAGE(finished.status == 0, finished.err);
  return finished.out;
}

TEST_CASE("bash completes subcommands, options and files, each where it belongs") {
  CHECK(completed_by_bash("redlock fleet re") == "restart\nresume\n");
  for (const Completion& row : completions) {
    CHECK_MESSAGE(completed_by_bash(row.words) == row.completed + "\n", row.words);
  }
}

/// The first word of each line that fish offers behind these words, sorted.
std::string completed_by_fish(const std::string& words) {
  static const TemporaryDirectory home;
  const std::string script =
      "redlock completion fish | source; complete -C '" + words + "' | string split -f1 \\t";
  const Variables variables{{"PATH", REDLOCK_BIN_DIR ":/usr/bin:/bin"},
                            {"HOME", home.path().string()}};
  const auto finished = Running({"--no-config", "-c", script}, variables, "/usr/bin/fish").wait();
  CHECK_MESSAGE(finished.err.empty(), finished.err);
  return finished.out;
}

TEST_CASE("fish completes subcommands, options and files, each where it belongs") {
  if (!installed("fish")) return;
  CHECK(completed_by_fish("redlock fleet re") == "restart\nresume\n");
  CHECK(completed_by_fish("redlock fleet list u").empty());
  for (const Completion& row : completions) {
    const std::string line = row.completed.empty() ? "" : row.completed + "\n";
    CHECK_MESSAGE(completed_by_fish(row.words) == line, row.words);
  }
}

/// What zsh makes of each line when the Tab key is pressed at its end, on a terminal of its own.
/// Its line editor does so whenever it begins with a line: nothing is typed, so nothing is too
/// early.
std::string completed_by_zsh(const std::string& setup) {
  const TemporaryDirectory home;
  std::string quoted;
  for (const Completion& row : completions) quoted += "'" + row.words + "' ";
  std::ofstream(home.path() / ".zshrc") << "autoload -Uz compinit\n"
                                        << setup << "\nlines=(" << quoted << R"zsh()
zle-line-init() {
  (($#lines)) || exit
  BUFFER=$lines[1]
  CURSOR=$#BUFFER
  shift lines
  zle complete-word
  print -r -- "[$BUFFER]" >>$ZDOTDIR/made
  BUFFER=''
  zle accept-line
}
zle -N zle-line-init
)zsh";
  const Variables variables{{"PATH", REDLOCK_BIN_DIR ":/usr/bin:/bin"},
                            {"TERM", "vt100"},
                            {"ZDOTDIR", home.path().string()}};
  const std::string on_terminal =
      "zmodload zsh/zpty && zpty shell zsh -d -i && "
      "while zpty -r shell part; do print -rn -- $part; done";
  const auto finished = Running({"-f", "-c", on_terminal}, variables, "/usr/bin/zsh").wait();
  const std::string made = text_in(home.path() / "made");
  CHECK_MESSAGE(!made.empty(), finished.out, finished.err);
  return made;
}

TEST_CASE("zsh completes subcommands, options and files, each where it belongs") {
  if (!installed("zsh")) return;
  std::string expected;
  for (const auto& [words, completed] : completions) {
    const auto before = words.substr(0, words.rfind(' ') + 1);
    expected += completed.empty() ? "[" + words + "]\n" : "[" + before + completed + " ]\n";
  }
  CHECK(completed_by_zsh("compinit -u -D; source <(redlock completion zsh)") == expected);
  CHECK(completed_by_zsh("redlock completion zsh >$ZDOTDIR/_redlock; "
                         "fpath=($ZDOTDIR $fpath); compinit -u -D") == expected);
}

TEST_CASE("completions are there for three shells") {
  for (const std::string name : {"bash", "fish", "zsh"}) {
    const auto script = exits_with(0, redlock({"completion", name}));
    CHECK(contains(script.out, "nodes-file"));
  }
  CHECK(redlock({"completion", "csh"}).status == 64);
}

TEST_CASE("each subcommand has a manual page with all its options") {
  const TemporaryDirectory directory;
  REQUIRE(redlock({"manual", "--all", directory.path().string()}).status == 0);
  std::vector<std::string> pages;
  for (const auto& entry : fs::directory_iterator(directory.path())) {
    pages.push_back(entry.path().filename().string());
  }
  CHECK(pages.size() > 15);
  const std::string exec = text_in(directory.path() / "redlock-exec.1");
  CHECK(exec == redlock({"manual", "exec"}).out);
  for (const std::string option : {"lease", "wait", "signal", "nodes\\-file", "tls\\-ca"}) {
    CHECK_MESSAGE(contains(exec, "\\fB\\-\\-" + option + "\\fR"), option);
  }
  CHECK(redlock({"manual", "fleet", "up"}).out.starts_with(".TH REDLOCK-FLEET-UP 1 "));
  CHECK(contains(redlock({"manual"}).out, "redlock\\-bench"));
  CHECK(contains(redlock({"manual"}).out, "\n.B redlock [OPTIONS] SUBCOMMAND\n"));
  CHECK(redlock({"manual", "lock"}).status == 64);
  if (!installed("groff")) return;
  for (const auto& page : pages) {
    const auto set =
        in_bash("groff -man -Tascii -z '" + (directory.path() / page).string() + "' 2>&1");
    CHECK_MESSAGE(set.out.empty(), page, ": ", set.out);
  }
}

}  // namespace
}  // namespace redlock::testing
