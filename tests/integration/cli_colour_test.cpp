// SPDX-License-Identifier: MIT
// Colours: on terminals only, and there not against NO_COLOR or TERM.
#include "cli_process.hpp"
#include "on_terminal.hpp"

namespace redlock::testing {
namespace {

constexpr char escape = '\x1b';

/// What doctor, and a mistake, print on a terminal with these variables.
std::string on_terminal(const Fleet& fleet, const std::string& variables) {
  OnTerminal session(fleet, variables + R"(
$REDLOCK doctor --node-timeout 10s
$REDLOCK status
echo "that was all")");
  REQUIRE(session.await("that was all"));
  return session.shown();
}

TEST_CASE("on a terminal the verdict, each problem, each state and an error have their colours") {
  const Fleet fleet({.nodes = 1});  // without its marker, and forgetful
  const auto shown = on_terminal(fleet, "export TERM=xterm");
  CHECK(contains(shown, "\x1b[31munsafe\x1b[0m: "));
  CHECK(contains(shown, "\x1b[31merror\x1b[0m    "));
  CHECK(contains(shown, "  \x1b[32mup\x1b[0m  "));
  CHECK(contains(shown, "\x1b[31mredlock:\x1b[0m NAME is required"));
}

TEST_CASE("NO_COLOR, a dumb terminal and one that is not named have no colours") {
  const Fleet fleet({.nodes = 1});
  for (const std::string variables :
       {"export TERM=xterm NO_COLOR=1", "export TERM=dumb", "unset TERM"}) {
    CAPTURE(variables);
    const auto shown = on_terminal(fleet, variables);
    CHECK(contains(shown, "unsafe: "));
    CHECK(contains(shown, "redlock: NAME is required"));
    CHECK_FALSE(contains(shown, std::string(1, escape)));
  }
  CHECK(contains(on_terminal(fleet, "export NO_COLOR="), "\x1b[31munsafe"));
}

TEST_CASE("a pipe gets no colours, whatever TERM says") {
  const Fleet fleet({.nodes = 1});
  auto variables = nodes_variable(fleet.uris());
  variables["TERM"] = "xterm";
  const auto finished = redlock({"doctor", "--node-timeout", "10s"}, variables);
  CHECK(contains(finished.out, "unsafe: "));
  CHECK_FALSE(contains(finished.out, std::string(1, escape)));
  CHECK_FALSE(contains(redlock({"status"}, variables).err, std::string(1, escape)));
}

TEST_CASE("on a dumb terminal a wait is told in lines, as to a pipe") {
  const Fleet fleet({.nodes = 1});
  OnTerminal session(fleet, R"(export TERM=dumb
$REDLOCK acquire a --node-timeout 10s --lease 60s
$REDLOCK acquire a --node-timeout 10s --wait forever)");
  REQUIRE(session.await("redlock: waiting"));
  CHECK_FALSE(contains(session.shown(), std::string(1, escape)));
}

}  // namespace
}  // namespace redlock::testing
