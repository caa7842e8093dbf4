// SPDX-License-Identifier: MIT
// What shells complete, and the manual pages: both are made of what the parser knows.
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "cli_process.hpp"
#include "support/temporary_directory.hpp"

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
  CHECK(completed("redlock exec report -- bas").find("bash") != std::string::npos);
}

TEST_CASE("completions for zsh and fish are scripts of these shells") {
  for (const std::string name : {"zsh", "fish"}) {
    const auto script = redlock({"completion", name});
    CHECK(script.status == 0);
    CHECK(script.out.find("nodes-file") != std::string::npos);
    if (installed(name)) {
      const auto checked = in_bash("redlock completion " + name + " | " + name + " -n /dev/stdin");
      CHECK_MESSAGE(checked.status == 0, checked.err);
    } else {
      MESSAGE("there is no " << name << " here: its script is not run");
    }
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
  std::ostringstream exec;
  exec << std::ifstream(directory.path() / "redlock-exec.1").rdbuf();
  CHECK(exec.str() == redlock({"manual", "exec"}).out);
  for (const std::string option : {"lease", "wait", "signal", "nodes\\-file", "tls\\-ca"}) {
    CHECK_MESSAGE(exec.str().find("\\fB\\-\\-" + option + "\\fR") != std::string::npos, option);
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
