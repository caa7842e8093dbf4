// SPDX-License-Identifier: MIT
// status and doctor with --watch: what they show of changes, where, and how they end.
#include "cli_process.hpp"
#include "on_terminal.hpp"

namespace redlock::testing {
namespace {

Arguments watching(const Arguments& what) {
  return appended(what, {"--watch", "100ms"});
}

json last_look(const std::string& text) {
  return json::parse(lines_of(text.substr(0, text.rfind('\n'))).back());
}

std::string acquire(const Fleet& fleet) {
  const auto taken = redlock(fleet, {"acquire", "a"});
  REQUIRE(taken.status == 0);
  return field(taken.out, "owner");
}

/// How often somebody has connected to this node.
int connections_made(const Fleet& fleet) {
  return std::stoi(info_of(fleet, 0, "stats", "total_connections_received"));
}

/// How often this node was asked for who waits, which is a part of each look.
int questions_asked(const Fleet& fleet) {
  return calls_of(fleet, 0, "hgetall");
}

void end_by(int signal, Running& watch) {
  watch.signal(signal);
  CHECK(watch.wait().status == 128 + signal);
  CHECK(watch.err().empty());
}

TEST_CASE_FIXTURE(ThreeNodes, "status --watch appends blocks with the time to a pipe") {
  Running watch(fleet, watching({"status", "a"}));
  REQUIRE(watch.await_out("a is free on a quorum of 3 nodes\n"));
  const auto owner = acquire(fleet);
  REQUIRE(watch.await_out("a is held by " + owner));
  end_by(SIGINT, watch);
  CHECK_FALSE(contains(watch.out(), "\x1b"));
  const std::regex begin(R"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\na is )");
  CHECK(std::regex_search(watch.out(), begin, std::regex_constants::match_continuous));
  CHECK(std::regex_search(watch.out(), std::regex(R"(\n\n\d{4}-\d\d-\d\d [^\n]* UTC\na is )")));
}

TEST_CASE_FIXTURE(ThreeNodes, "a node that goes away and returns shows as that") {
  Running watch(fleet, watching({"status", "a"}));
  REQUIRE(watch.await_out("a is free"));
  fleet.kill(1);
  REQUIRE(watch.await_out("UTC  " + fleet.uri(1) + " went away: "));
  fleet.restart(1);
  REQUIRE(watch.await_out("UTC  " + fleet.uri(1) + " answers again\n"));
  end_by(SIGTERM, watch);
  CHECK(occurrences(watch.out(), " went away: ") == 1);
  CHECK(occurrences(watch.out(), " answers again") == 1);
}

TEST_CASE_FIXTURE(ThreeNodes, "doctor --watch -o json prints a line a look, and stays connected") {
  Running watch(fleet, watching({"doctor", "-o", "json"}));
  REQUIRE(watch.await_out_lines(2));
  const auto before = connections_made(fleet);
  REQUIRE(watch.await_out_lines(12));
  // Ten looks later: one by which this is asked, and one that the client itself may have made late.
  CHECK(connections_made(fleet) <= before + 2);
  fleet.kill(2);
  REQUIRE(watch.await_out("\"answered\":false"));
  fleet.restart(2);
  do {
    REQUIRE(watch.await_out_lines(lines_of(watch.out()).size() + 1));
  } while (!last_look(watch.out())["nodes"][2]["answered"].get<bool>());
  end_by(SIGTERM, watch);
  for (const auto& line : lines_of(watch.out())) {
    const auto time = json::parse(line)["time"].get<std::string>();
    CHECK(std::regex_match(time, std::regex(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)")));
  }
}

TEST_CASE_FIXTURE(ThreeNodes, "on a terminal the view is drawn over itself, within its width") {
  OnTerminal session(fleet, R"(trap : INT
export TERM=xterm
stty cols 60 rows 12
$REDLOCK status a --watch 100ms --node-timeout 10s
echo "status $?")");
  REQUIRE(session.await("Ctrl-C ends it"));
  REQUIRE(session.await("a is free"));
  REQUIRE(session.await("\x1b[6A"));  // up over the six lines of the block
  const auto owner = acquire(fleet);
  REQUIRE(session.await("a is held by"));
  session.resize(90, 20);
  REQUIRE(session.await("\x1b[2J"));
  const auto before_resize = session.shown().find("\x1b[2J");
  session.converse({{fleet.uri(0), "\x03"}, {"status 130", ""}});
  CHECK_FALSE(contains(session.shown(), "\x1b[?25l"));  // the cursor is never hidden
  const std::regex sequence("\x1b\\[[0-9]*[AJKm]");
  for (const auto& line : lines_of(session.shown().substr(0, before_resize))) {
    CHECK_MESSAGE(characters_in(std::regex_replace(line, sequence, "")) < 60, line);
  }
}

TEST_CASE_FIXTURE(OneNode, "in the background nothing is drawn over what somebody does in front") {
  OnTerminal session(fleet, R"(set -m
$REDLOCK status a --watch 100ms --node-timeout 10s &
echo started
read line
echo "in front"
fg
echo "status $?")");
  REQUIRE(session.await("started"));
  const int before = questions_asked(fleet);
  REQUIRE(eventually([&] { return questions_asked(fleet) > before + 6; }));
  session.type("go\n");
  REQUIRE(session.await("in front"));
  CHECK_FALSE(contains(session.shown().substr(0, session.shown().find("in front")), "a is free"));
  session.converse({{"a is free", "\x03"}, {"status 130", ""}});
}

TEST_CASE_FIXTURE(OneNode, "on a dumb terminal the view is appended, as to a pipe") {
  OnTerminal session(fleet, R"(trap : INT
export TERM=dumb
$REDLOCK status a --watch 100ms --node-timeout 10s
echo "status $?")");
  session.converse({{"a is free", ""}, {"a is free", "\x03"}, {"status 130", ""}});
  CHECK_FALSE(contains(session.shown(), "\x1b"));
}

TEST_CASE_FIXTURE(OneNode, "a reader that reads no more keeps no signal waiting") {
  // First, as much as a pipe takes.
  Running watch = in_shell(fleet, "head -c 65536 /dev/zero; exec \"$0\" \"$@\"",
                           appended({command_path()}, patient(watching({"status", "a"}))));
  REQUIRE(eventually([&] { return questions_asked(fleet) > 0; }));
  // Until it wants to write what it saw; on a slow machine the signal comes earlier, which is good.
  std::this_thread::sleep_for(std::chrono::seconds(1));
  watch.signal(SIGTERM);
  CHECK(ProcessWatch(watch.pid()).await_end());
  CHECK(watch.wait().status == 128 + SIGTERM);
}

TEST_CASE("an interval that is too short, or none, is refused with a sentence") {
  const Variables nodes{{"REDLOCK_NODES", "redis://127.0.0.1:1"}};
  for (const std::string interval : {"99ms", "0", "0s"}) {
    const auto refused = exits_with(64, redlock({"status", "a", "--watch", interval}, nodes));
    CHECK(contains(refused.err, interval + " is too often: 100ms is the least"));
    CHECK(lines_of(refused.err).size() == 1);
  }
  CHECK(contains(redlock({"doctor", "--watch", "5"}, nodes).err, "say 5s"));
  CHECK(contains(redlock({"doctor", "--watch=soon"}, nodes).err, "'soon' is not a duration"));
}

TEST_CASE_FIXTURE(OneNode, "--watch without an interval leaves the lock's name alone") {
  Running watch(fleet, {"status", "--watch", "a"});
  REQUIRE(watch.await_out("a is free"));
  end_by(SIGTERM, watch);
}

}  // namespace
}  // namespace redlock::testing
