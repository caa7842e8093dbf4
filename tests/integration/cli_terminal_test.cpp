// SPDX-License-Identifier: MIT
// redlock on a terminal. Under a shell with job control the command of redlock exec must have the
// terminal, its Ctrl-C and its Ctrl-Z as if redlock were not there. Colours are for terminals only,
// and there not against NO_COLOR or TERM.
#include "cli_process.hpp"
#include "on_terminal.hpp"

namespace redlock::testing {
namespace {

/// Says "foreground" or "background", then "ready"; answers what is typed until "quit".
constexpr auto* conversation = R"(set -m
$REDLOCK exec a --node-timeout 10s --lease LEASE -- sh -c '
  trap "echo interrupted" INT
  set -- $(cut -d" " -f5,8 /proc/self/stat)
  [ $1 = $2 ] && echo foreground || echo background
  echo ready
  while :; do
    read line || continue
    echo "got $line"
    [ "$line" = quit ] && exit 4
  done'
echo "first status $?"
)";

std::string script_with_lease(const std::string& lease, const std::string& more) {
  std::string script = conversation;
  script.replace(script.find("LEASE"), 5, lease);
  return script + more;
}

TEST_CASE_FIXTURE(OneNode, "the command has the terminal, and Ctrl-C reaches it and not redlock") {
  OnTerminal session(fleet, script_with_lease("30s", ""));
  // A shell that is interrupted just before it reads notices when it has read something.
  session.converse({{"foreground", ""},
                    {"ready", "hello\n"},
                    {"got hello", "\x03more\n"},
                    {"interrupted", "quit\n"},
                    {"first status 4", ""}});
  CHECK(occurrences(session.shown(), "interrupted") == 1);
}

TEST_CASE_FIXTURE(OneNode, "Ctrl-Z stops the command and redlock, and the shell continues both") {
  OnTerminal session(fleet, script_with_lease("30s", "fg; echo \"second status $?\""));
  session.converse({{"ready", "\x1a"},
                    {"first status " + std::to_string(128 + SIGTSTP), "hello\n"},
                    {"got hello", "quit\n"},
                    {"second status 4", ""}});
}

TEST_CASE_FIXTURE(OneNode, "a command stopped until its lease ended is killed, not continued") {
  // The shell goes on only when somebody else got the lock.
  OnTerminal session(fleet, script_with_lease("4s", R"(
$REDLOCK acquire a --wait forever --node-timeout 10s
fg
echo "second status $?")"));
  session.converse({{"ready", "\x1a"},
                    {"first status " + std::to_string(128 + SIGTSTP), "hello\n"},
                    {"owner=", ""},
                    {"second status 79", ""}});
  CHECK_FALSE(contains(session.shown(), "got hello"));
}

/// Its fg sends no SIGCONT to a job that it believes to be running.
constexpr auto* bash = "/bin/bash";
constexpr auto* until_stopped = "until [ -n \"$(jobs -s)\" ]; do sleep 0.01; done; echo stopped\n";

TEST_CASE_FIXTURE(OneNode, "in the background a command that wants the terminal stops until fg") {
  OnTerminal session(fleet, std::string(R"(set -m
$REDLOCK exec a --node-timeout 10s -- sh -c '
  trap "echo interrupted; exit 4" INT
  read line
  echo "got $line"
  while :; do sleep 0.01; done' &
)") + until_stopped + R"(fg
echo "status $?")",
                     bash);
  session.converse(
      {{"stopped", "hello\n"}, {"got hello", "\x03"}, {"interrupted", ""}, {"status 4", ""}});
}

TEST_CASE_FIXTURE(OneNode, "a stopped command that goes on in the background may come back") {
  OnTerminal session(
      fleet, script_with_lease("30s", std::string("bg\n") + until_stopped + "fg; echo status $?"),
      bash);
  session.converse(
      {{"ready", "\x1a"}, {"stopped", "hello\n"}, {"got hello", "quit\n"}, {"status 4", ""}});
}

TEST_CASE_FIXTURE(OneNode, "in a pipeline the command gets the terminal when it asks for it") {
  OnTerminal session(fleet, R"(set -m
$REDLOCK exec a --node-timeout 10s -- sh -c '
  set -- $(cut -d" " -f5,8 /proc/self/stat)
  [ $1 = $2 ] && echo foreground || echo background
  read line
  echo "got $line"' | cat
echo "status $?")");
  session.converse({{"background", "hello\n"}, {"got hello", ""}, {"status 0", ""}});
}

TEST_CASE_FIXTURE(OneNode, "in a pipeline Ctrl-C is passed on to the command, once") {
  OnTerminal session(fleet, R"(set -m
$REDLOCK exec a --node-timeout 10s -- sh -c '
  trap "echo interrupted; exit 3" INT
  echo ready
  while :; do sleep 0.01; done' | { trap '' INT; cat; }
echo "status $?")");
  session.converse({{"ready", "\x03"}, {"interrupted", ""}, {"status 0", ""}});
  CHECK(occurrences(session.shown(), "interrupted") == 1);
}

// Its command starts nothing when it is stopped: a shell whose child stops between vfork and exec
// waits for that and cannot be stopped itself.
TEST_CASE_FIXTURE(OneNode, "in a pipeline Ctrl-Z stops the command, with a log and metrics, too") {
  const TemporaryDirectory directory;
  OnTerminal session(fleet, "set -m\n$REDLOCK exec a --node-timeout 10s --log json --metrics " +
                                directory.path().string() + R"(/a.prom -- sh -c '
  sleep 1000 &
  trap "kill $!; echo interrupted; exit 3" INT
  trap "echo continued" CONT
  echo "pid $$ ready"
  while :; do wait; done' 2>/dev/null | { trap '' INT; cat; }
read line
fg
echo "status $?")");
  REQUIRE(session.await(" ready"));
  const auto at = session.shown().find("pid ") + 4;
  const auto pid = session.shown().substr(at, session.shown().find(" ready") - at);
  session.type("\x1a");
  REQUIRE(eventually([&] { return is_stopped(std::stoi(pid)); }));
  session.type("go\n");
  // At the beginning of a line: fg shows the command's text before the command is in front.
  session.converse({{"\ncontinued\n", "\x03"}, {"interrupted", ""}, {"status 0", ""}});
}

/// What doctor, and a mistake, print on a terminal with these variables.
std::string on_terminal(const Fleet& fleet, const std::string& variables) {
  OnTerminal session(fleet, variables + R"(
$REDLOCK doctor --node-timeout 10s
$REDLOCK status
echo "that was all")");
  REQUIRE(session.await("that was all"));
  return session.shown();
}

TEST_CASE_FIXTURE(OneNode, "on a terminal verdict, problems, states and errors have colours") {
  const auto shown = on_terminal(fleet, "export TERM=xterm");
  check_contains(shown, {"\x1b[31munsafe\x1b[0m: ", "\x1b[31merror\x1b[0m    ",
                         "  \x1b[32mup\x1b[0m  ", "\x1b[31mredlock:\x1b[0m NAME is required"});
}

TEST_CASE_FIXTURE(OneNode, "NO_COLOR, a dumb terminal and one that is not named have no colours") {
  for (const std::string variables :
       {"export TERM=xterm NO_COLOR=1", "export TERM=dumb", "unset TERM"}) {
    CAPTURE(variables);
    const auto shown = on_terminal(fleet, variables);
    check_contains(shown, {"unsafe: ", "redlock: NAME is required"});
    CHECK_FALSE(contains(shown, "\x1b"));
  }
  CHECK(contains(on_terminal(fleet, "export NO_COLOR="), "\x1b[31munsafe"));
}

TEST_CASE_FIXTURE(OneNode, "a pipe gets no colours, whatever TERM says") {
  const auto doctor = run({"doctor"}, {{"TERM", "xterm"}});
  CHECK(contains(doctor.out, "unsafe: "));
  const auto mistake = run({"status"}, {{"TERM", "xterm"}});
  CHECK(contains(mistake.err, "redlock: NAME is required"));
  CHECK_FALSE(contains(doctor.out + mistake.err, "\x1b"));
}

TEST_CASE_FIXTURE(OneNode, "on a dumb terminal a wait is told in lines, as to a pipe") {
  OnTerminal session(fleet, R"(export TERM=dumb
$REDLOCK acquire a --node-timeout 10s --lease 60s
$REDLOCK acquire a --node-timeout 10s --wait forever)");
  REQUIRE(session.await("redlock: waiting"));
  CHECK_FALSE(contains(session.shown(), "\x1b"));
}

}  // namespace
}  // namespace redlock::testing
