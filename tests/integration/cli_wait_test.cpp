// SPDX-License-Identifier: MIT
// What exec shows while it waits for a lock, and when it gives up.
#include "cli_process.hpp"
#include "on_terminal.hpp"
#include "support/stub_server.hpp"

namespace redlock::testing {
namespace {

// A busy machine must not look like a node that is gone.
Arguments waiting_for(const std::string& name, const Arguments& options = {},
                      const std::string& node_timeout = "10s") {
  Arguments arguments{"exec", name, "--node-timeout", node_timeout};
  arguments.insert(arguments.end(), options.begin(), options.end());
  arguments.insert(arguments.end(), {"--", "echo", "done"});
  return arguments;
}

/// A line that says how long one has waited, and how long one still will, if that is not for ever.
/// The first one says the whole time instead, unless the machine took a second to get there.
struct WaitLine {
  explicit WaitLine(const std::string& line) : text(line) {
    static const std::regex form(R"(waiting( since (\d+)s)?( up to (\d+)([sm])( more)?)? for )");
    std::smatch match;
    REQUIRE_MESSAGE(std::regex_search(line, match, form), line);
    if (match[2].matched) since = std::stoi(match[2]);
    if (match[4].matched) more = std::stoi(match[4]) * (match[5] == "m" ? 60 : 1);
  }
  std::string text;
  int since = 0;
  int more = 0;
};

std::vector<WaitLine> wait_lines(const std::string& text) {
  std::vector<WaitLine> lines;
  std::istringstream all(text);
  for (std::string line; std::getline(all, line);) {
    if (contains(line, "waiting ")) lines.emplace_back(line);
  }
  return lines;
}

TEST_CASE("without --wait, exec gives up when no node has ever answered") {
  Fleet fleet({.nodes = 3});
  for (std::size_t node = 0; node < 3; ++node) fleet.kill(node);
  const auto finished = redlock(waiting_for("a"), nodes_variable(fleet.uris()));
  CHECK(finished.status == 69);
  CHECK(finished.out.empty());
  const auto lines = wait_lines(finished.err);
  REQUIRE_FALSE(lines.empty());
  CHECK(contains(lines[0].text, "for a (no quorum of nodes: "));
  CHECK(std::abs(lines[0].since + lines[0].more - 10) <= 1);  // both are rounded
  CHECK(contains(finished.err, "no node has answered within 10 s"));
  CHECK(contains(finished.err, "--wait forever"));
  CHECK(contains(finished.err, "connection refused"));
}

TEST_CASE("nodes that accept connections and never answer have not answered") {
  const auto one = StubServer::silent();
  const auto finished = redlock(waiting_for("a", {}, "500ms"), nodes_variable({one.uri()}));
  CHECK(finished.status == 69);
  CHECK(contains(finished.err, "no node has answered within 10 s"));
}

TEST_CASE(
    "one node that answers, or --wait, makes exec go on waiting, and say so ever more rarely") {
  Fleet fleet({.nodes = 3});
  fleet.kill(0);
  fleet.kill(1);
  Running patient(waiting_for("a"), nodes_variable(fleet.uris()));
  Running told(waiting_for("a", {"--wait", "forever"}), nodes_variable({"redis://127.0.0.1:1"}));
  // At once, after 5, 15 and 35 seconds.
  for (Running* waiting : {&patient, &told}) {
    REQUIRE(waiting->await_err_lines(3));
    const auto lines = wait_lines(waiting->err());
    REQUIRE(lines.size() >= 3);
    CHECK(lines[1].since >= lines[0].since + 5);
    CHECK(lines[2].since >= lines[1].since + 10);
    const auto node = waiting == &told ? "redis://127.0.0.1:1" : fleet.uri(0);
    CHECK(contains(lines[2].text, "s for a (no quorum of nodes: " + node));
    CHECK(lines[2].more == 0);
  }
  fleet.restart(0);
  const auto finished = patient.wait();
  CHECK(finished.status == 0);
  CHECK(finished.out == "done\n");
  told.signal(SIGTERM);
  CHECK(told.wait().status == 128 + SIGTERM);
}

TEST_CASE("a wait that is to end says how long it has waited and how long it still will") {
  const Fleet fleet({.nodes = 1});
  const auto variables = nodes_variable(fleet.uris());
  Running holder({"exec", "a", "--", "sh", "-c", "echo held; read line"}, variables);
  REQUIRE(holder.await_out("held"));
  Running waiter(waiting_for("a", {"--wait", "60s"}), variables);
  REQUIRE(waiter.await_err_lines(2));
  const auto lines = wait_lines(waiter.err());
  REQUIRE(lines.size() >= 2);
  for (const WaitLine& line : lines) {
    CAPTURE(line.text);
    CHECK(contains(line.text, " for a, next in line (held by "));
    CHECK(std::abs(line.since + line.more - 60) <= 1);  // both are rounded
  }
  CHECK(lines[1].since >= 5);
  holder.write("go\n");
  CHECK(waiter.wait().out == "done\n");
}

TEST_CASE("on a terminal the line is refreshed, and gone when the lock is there") {
  const Fleet fleet({.nodes = 1});
  Running holder({"exec", "a", "--", "sh", "-c", "echo held; read line"},
                 nodes_variable(fleet.uris()));
  REQUIRE(holder.await_out("held"));
  OnTerminal session(fleet,
                     R"($REDLOCK exec a --node-timeout 10s -- echo granted; echo "status $?")");
  // At once, after a second, after another.
  for (int line = 0; line < 3; ++line) {
    REQUIRE(session.await("\r\x1b[Kredlock: waiting "));
    REQUIRE(session.await("for a, next in line (held by "));
  }
  auto shown = session.shown();
  std::ranges::replace(shown, '\r', '\n');
  const auto lines = wait_lines(shown);
  REQUIRE(lines.size() >= 3);
  for (std::size_t i = 1; i < lines.size(); ++i) CHECK(lines[i].since > lines[i - 1].since);
  holder.write("go\n");
  REQUIRE(session.await("\r\x1b[Kgranted"));
  CHECK(session.await("status 0"));
  // Each line is written over the one before it.
  CHECK_FALSE(contains(session.shown().substr(0, session.shown().find("granted")), "\n"));
}

TEST_CASE("the line says how many are before it, and moves up with them") {
  const Fleet fleet({.nodes = 3});
  const auto variables = nodes_variable(fleet.uris());
  Running holder({"exec", "a", "--", "sh", "-c", "echo held; read line"}, variables);
  REQUIRE(holder.await_out("held"));
  Running first({"exec", "a", "--node-timeout", "10s", "--", "sh", "-c", "echo second; read line"},
                variables);
  REQUIRE(first.await_err("for a, next in line (held by "));
  OnTerminal last(fleet, R"($REDLOCK exec a --node-timeout 10s -- echo granted)");
  REQUIRE(last.await("for a, 1 before it (held by "));
  holder.write("go\n");
  REQUIRE(first.await_out("second"));
  REQUIRE(last.await("for a, next in line (held by "));
  first.write("go\n");
  CHECK(last.await("\r\x1b[Kgranted"));
}

TEST_CASE("who barges has no place in any line") {
  const Fleet fleet({.nodes = 3});
  const auto variables = nodes_variable(fleet.uris());
  Running holder({"exec", "a", "--", "sh", "-c", "echo held; read line"}, variables);
  REQUIRE(holder.await_out("held"));
  Running waiter(waiting_for("a", {"--ordering", "barging"}), variables);
  REQUIRE(waiter.await_err(" for a (held by "));
  // A node that the holder reached late may have nothing yet; a line would stay.
  for (std::size_t node = 0; node < fleet.size(); ++node) {
    CHECK(eventually([&] {
      return fleet.run(node, {"KEYS", "redlock:[lw]*"}) == "redlock:lock:{a}";
    }));
  }
  holder.write("go\n");
  CHECK(waiter.wait().out == "done\n");
}

}  // namespace
}  // namespace redlock::testing
