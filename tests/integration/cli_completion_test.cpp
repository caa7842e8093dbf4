// SPDX-License-Identifier: MIT
// What shells complete, and the manual pages: both are made of what the parser knows.
#include "cli_process.hpp"

namespace redlock::testing {
namespace {

namespace fs = std::filesystem;

Finished in_bash(const std::string& script) {
  return Running({"-c", script}, {{"PATH", REDLOCK_BIN_DIR ":/usr/bin:/bin"}}, "/bin/bash").wait();
}

/// What bash offers behind these words, the last of which is being written.
std::string completed(const std::string& words) {
  const auto finished =
      in_bash("set -eu; source <(redlock completion bash); COMP_WORDS=(" + words +
              "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _redlock; echo \"${COMPREPLY[*]-}\"");
  CHECK_MESSAGE(finished.status == 0, finished.err);
  return finished.out;
}

bool installed(const std::string& program) {
  return in_bash("command -v " + program).status == 0;
}

TEST_CASE("bash completes subcommands, options and files, each where it belongs") {
  CHECK(completed("redlock ex") == "exec\n");
  CHECK(completed("redlock fleet re") == "resume restart\n");
  CHECK(completed("redlock exec report --grac") == "--grace\n");
  CHECK(completed("redlock fleet up --gra") == "\n");
  CHECK(completed("redlock exec report --lease 1") == "\n");
  CHECK(completed("redlock exec report --wait exec --lea") == "--lease\n");
  CHECK(completed("redlock status report --watch --node-t") == "--node-timeout\n");
  CHECK(completed("redlock exec report --nodes-file /etc/host").find("/etc/host") == 0);
  CHECK(completed("redlock doctor --trace /etc/host").find("/etc/host") == 0);
  CHECK(completed("redlock fence /usr/bin/basenam") == "/usr/bin/basename\n");
  CHECK(completed("redlock status /usr/bin/basenam") == "\n");
  CHECK(completed("redlock exec report -- bas").find("bash") != std::string::npos);
}

/// The first word of each line that fish offers behind these words, sorted.
std::string completed_by_fish(const TemporaryDirectory& home, const std::string& words) {
  const std::string script =
      "redlock completion fish | source; complete -C '" + words + "' | string split -f1 \\t";
  const Variables variables{{"PATH", REDLOCK_BIN_DIR ":/usr/bin:/bin"},
                            {"HOME", home.path().string()}};
  const auto finished = Running({"--no-config", "-c", script}, variables, "/usr/bin/fish").wait();
  CHECK_MESSAGE(finished.err.empty(), finished.err);
  return finished.out;
}

TEST_CASE("fish completes subcommands, options and files, each where it belongs") {
  if (!installed("fish")) {
    MESSAGE("there is no fish here: its script is not run");
    return;
  }
  const TemporaryDirectory home;
  const auto offered = [&home](const std::string& words) { return completed_by_fish(home, words); };
  CHECK(offered("redlock ex") == "exec\n");
  CHECK(offered("redlock fleet re") == "restart\nresume\n");
  CHECK(offered("redlock fleet list u").empty());
  CHECK(offered("redlock exec report --grac") == "--grace\n");
  CHECK(offered("redlock fleet up --gra").empty());
  CHECK(offered("redlock fleet list --node").empty());
  CHECK(offered("redlock exec report --lease 1").empty());
  // fish 4 offers --max-lease as well.
  CHECK(offered("redlock exec list --lea").starts_with("--lease\n"));
  CHECK(offered("redlock status report --watch --node-t") == "--node-timeout\n");
  CHECK(offered("redlock exec report --nodes-file /etc/host").find("/etc/host") == 0);
  CHECK(offered("redlock fence /usr/bin/basenam") == "/usr/bin/basename\n");
  CHECK(offered("redlock status /usr/bin/basenam").empty());
  CHECK(offered("redlock exec report -- basenam") == "basename\n");
  CHECK(offered("redlock exec report -- cat /usr/bin/basenam") == "/usr/bin/basename\n");
}

/// What zsh makes of each line when the Tab key is pressed at its end, on a terminal of its own.
/// Its line editor does so whenever it begins with a line: nothing is typed, so nothing is too
/// early.
std::string completed_by_zsh(const std::string& setup, const std::vector<std::string>& lines) {
  const TemporaryDirectory home;
  std::string quoted;
  for (const auto& line : lines) quoted += "'" + line + "' ";
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
  if (!installed("zsh")) {
    MESSAGE("there is no zsh here: its script is not run");
    return;
  }
  const std::vector<std::string> lines{"redlock ex",
                                       "redlock fleet rest",
                                       "redlock exec report --grac",
                                       "redlock fleet up --gra",
                                       "redlock fleet list --node-t",
                                       "redlock exec report --lease /usr/bin/basenam",
                                       "redlock exec list --max",
                                       "redlock exec report --nodes-file /usr/bin/basenam",
                                       "redlock fence /usr/bin/basenam",
                                       "redlock status /usr/bin/basenam",
                                       "redlock exec report -- basenam",
                                       "redlock exec report -- cat /usr/bin/basenam"};
  const std::string expected =
      "[redlock exec ]\n"
      "[redlock fleet restart ]\n"
      "[redlock exec report --grace ]\n"
      "[redlock fleet up --gra]\n"
      "[redlock fleet list --node-t]\n"
      "[redlock exec report --lease /usr/bin/basenam]\n"
      "[redlock exec list --max-lease ]\n"
      "[redlock exec report --nodes-file /usr/bin/basename ]\n"
      "[redlock fence /usr/bin/basename ]\n"
      "[redlock status /usr/bin/basenam]\n"
      "[redlock exec report -- basename ]\n"
      "[redlock exec report -- cat /usr/bin/basename ]\n";
  const std::string sourced = "compinit -u -D; source <(redlock completion zsh)";
  const std::string in_fpath =
      "redlock completion zsh >$ZDOTDIR/_redlock; fpath=($ZDOTDIR $fpath); compinit -u -D";
  CHECK(completed_by_zsh(sourced, lines) == expected);
  CHECK(completed_by_zsh(in_fpath, lines) == expected);
}

TEST_CASE("completions are there for three shells") {
  for (const std::string name : {"bash", "fish", "zsh"}) {
    const auto script = redlock({"completion", name});
    CHECK(script.status == 0);
    CHECK(script.out.find("nodes-file") != std::string::npos);
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
    CHECK_MESSAGE(exec.find("\\fB\\-\\-" + option + "\\fR") != std::string::npos, option);
  }
  CHECK(redlock({"manual", "fleet", "up"}).out.starts_with(".TH REDLOCK-FLEET-UP 1 "));
  CHECK(redlock({"manual"}).out.find("redlock\\-bench") != std::string::npos);
  CHECK(redlock({"manual"}).out.find("\n.B redlock [OPTIONS] SUBCOMMAND\n") != std::string::npos);
  CHECK(redlock({"manual", "lock"}).status == 64);
  if (!installed("groff")) {
    MESSAGE("there is no groff here: the pages are not set");
    return;
  }
  for (const auto& page : pages) {
    const auto set =
        in_bash("groff -man -Tascii -z '" + (directory.path() / page).string() + "' 2>&1");
    CHECK_MESSAGE(set.out.empty(), page, ": ", set.out);
  }
}

}  // namespace
}  // namespace redlock::testing
