// SPDX-License-Identifier: MIT
// status and doctor with --watch: what they show of changes, where, and how they end.
#include "cli_process.hpp"
#include "on_terminal.hpp"

namespace redlock::testing {
namespace {

constexpr char escape = '\x1b';

// A busy machine must not look like a node that is gone.
Arguments watching(const Arguments& what) {
  Arguments arguments = what;
  arguments.insert(arguments.end(), {"--watch", "100ms", "--node-timeout", "10s"});
  return arguments;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream all(text);
  for (std::string line; std::getline(all, line);) lines.push_back(line);
  return lines;
}

json last_look(const std::string& text) {
  const auto whole = text.substr(0, text.rfind('\n'));
  return json::parse(lines_of(whole).back());
}

std::size_t characters_in(const std::string& line) {
  return static_cast<std::size_t>(std::ranges::count_if(
      line, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::string acquire(const Fleet& fleet) {
  const auto taken =
      redlock({"acquire", "a", "--node-timeout", "10s"}, nodes_variable(fleet.uris()));
  REQUIRE(taken.status == 0);
  return field(taken.out, "owner");
}

/// How often somebody has connected to this node.
int connections_made(const Fleet& fleet) {
  const auto info = fleet.run(0, {"INFO", "stats"});
  const std::string name = "total_connections_received:";
  return std::stoi(info.substr(info.find(name) + name.size()));
}

/// How often this node was asked for who waits, which is a part of each look.
int questions_asked(const Fleet& fleet) {
  const auto info = fleet.run(0, {"INFO", "commandstats"});
  const std::string name = "cmdstat_hgetall:calls=";
  const auto at = info.find(name);
  return at == std::string::npos ? 0 : std::stoi(info.substr(at + name.size()));
}

TEST_CASE("status --watch appends blocks with the time to a pipe, until SIGINT") {
  const Fleet fleet({.nodes = 3});
  Running watch(watching({"status", "a"}), nodes_variable(fleet.uris()));
  REQUIRE(watch.await_out("a is free on a quorum of 3 nodes\n"));
  const auto owner = acquire(fleet);
  REQUIRE(watch.await_out("a is held by " + owner));
  watch.signal(SIGINT);
  const auto finished = watch.wait();
  CHECK(finished.status == 128 + SIGINT);
  CHECK(finished.err.empty());
  CHECK_FALSE(contains(finished.out, std::string(1, escape)));
  const std::regex begin(R"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\na is )");
  CHECK(std::regex_search(finished.out, begin, std::regex_constants::match_continuous));
  CHECK(std::regex_search(finished.out, std::regex(R"(\n\n\d{4}-\d\d-\d\d [^\n]* UTC\na is )")));
}

TEST_CASE("a node that goes away and returns shows as that") {
  Fleet fleet({.nodes = 3});
  Running watch(watching({"status", "a"}), nodes_variable(fleet.uris()));
  REQUIRE(watch.await_out("a is free"));
  fleet.kill(1);
  REQUIRE(watch.await_out("UTC  " + fleet.uri(1) + " went away: "));
  fleet.restart(1);
  REQUIRE(watch.await_out("UTC  " + fleet.uri(1) + " answers again\n"));
  watch.signal(SIGTERM);
  const auto finished = watch.wait();
  CHECK(finished.status == 128 + SIGTERM);
  CHECK(occurrences(finished.out, " went away: ") == 1);
  CHECK(occurrences(finished.out, " answers again") == 1);
}

TEST_CASE("doctor --watch -o json prints one object a line, over connections that stay") {
  Fleet fleet({.nodes = 3});
  Running watch(watching({"doctor", "-o", "json"}), nodes_variable(fleet.uris()));
  REQUIRE(watch.await_out_lines(2));
  const auto before = connections_made(fleet);
  REQUIRE(watch.await_out_lines(12));
  // Ten looks later: one by which this is asked, and one that the client itself may have made late.
  CHECK(connections_made(fleet) <= before + 2);
  fleet.kill(2);
  REQUIRE(watch.await_out("\"reachable\":false"));
  fleet.restart(2);
  do {
    REQUIRE(watch.await_out_lines(lines_of(watch.out()).size() + 1));
  } while (!last_look(watch.out())["nodes"][2]["reachable"].get<bool>());
  watch.signal(SIGTERM);
  const auto finished = watch.wait();
  CHECK(finished.status == 128 + SIGTERM);
  for (const auto& line : lines_of(finished.out)) {
    const auto time = json::parse(line)["time"].get<std::string>();
    CHECK(std::regex_match(time, std::regex(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)")));
  }
}

TEST_CASE("on a terminal the view is drawn over itself, within its width, until Ctrl-C") {
  const Fleet fleet({.nodes = 3});
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
  REQUIRE(session.await(fleet.uri(0)));
  session.type("\x03");
  REQUIRE(session.await("status 130"));
  CHECK_FALSE(contains(session.shown(), "\x1b[?25l"));  // the cursor is never hidden
  const std::regex sequence("\x1b\\[[0-9]*[AJKm]");
  for (const auto& line : lines_of(session.shown().substr(0, before_resize))) {
    CHECK_MESSAGE(characters_in(std::regex_replace(line, sequence, "")) < 60, line);
  }
}

TEST_CASE("in the background nothing is drawn over what somebody does in front") {
  const Fleet fleet({.nodes = 1});
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
  REQUIRE(session.await("a is free"));
  session.type("\x03");
  REQUIRE(session.await("status 130"));
}

TEST_CASE("a reader that reads no more keeps no signal waiting") {
  const Fleet fleet({.nodes = 1});
  // First, as much as a pipe takes.
  Running watch({"-c", "head -c 65536 /dev/zero; exec \"$0\" \"$@\"", command_path(), "status", "a",
                 "--watch", "100ms", "--node-timeout", "10s"},
                nodes_variable(fleet.uris()), "/bin/sh");
  REQUIRE(eventually([&] { return questions_asked(fleet) > 0; }));
  // Until it wants to write what it saw; on a slow machine the signal comes earlier, which is good.
  std::this_thread::sleep_for(std::chrono::seconds(1));
  watch.signal(SIGTERM);
  CHECK(ProcessWatch(watch.pid()).await_end());
  CHECK(watch.wait().status == 128 + SIGTERM);
}

TEST_CASE("on a dumb terminal the view is appended, as to a pipe") {
  const Fleet fleet({.nodes = 1});
  OnTerminal session(fleet, R"(trap : INT
export TERM=dumb
$REDLOCK status a --watch 100ms --node-timeout 10s
echo "status $?")");
  REQUIRE(session.await("a is free"));
  REQUIRE(session.await("a is free"));
  session.type("\x03");
  REQUIRE(session.await("status 130"));
  CHECK_FALSE(contains(session.shown(), std::string(1, escape)));
}

TEST_CASE("an interval that is too short, or none, is refused with a sentence") {
  const Variables nodes{{"REDLOCK_NODES", "redis://127.0.0.1:1"}};
  for (const std::string interval : {"99ms", "0", "0s"}) {
    const auto refused = redlock({"status", "a", "--watch", interval}, nodes);
    CHECK(refused.status == 64);
    CHECK(contains(refused.err, interval + " is too often: 100ms is the least"));
    CHECK(lines_of(refused.err).size() == 1);
  }
  CHECK(contains(redlock({"doctor", "--watch", "5"}, nodes).err, "say 5s"));
  CHECK(contains(redlock({"doctor", "--watch=soon"}, nodes).err, "'soon' is not a duration"));
}

TEST_CASE("--watch without an interval leaves the lock's name alone") {
  const Fleet fleet({.nodes = 1});
  Running watch({"status", "--watch", "a", "--node-timeout", "10s"}, nodes_variable(fleet.uris()));
  REQUIRE(watch.await_out("a is free"));
  watch.signal(SIGTERM);
  CHECK(watch.wait().status == 128 + SIGTERM);
}

}  // namespace
}  // namespace redlock::testing
