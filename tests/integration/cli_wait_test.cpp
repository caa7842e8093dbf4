// SPDX-License-Identifier: MIT
// What exec shows while it waits for a lock, and when it gives up. And redlock waiters: who waits
// for a lock, and what is said when nobody does or nobody tells.
#include "cli_process.hpp"
#include "on_terminal.hpp"
#include "support/stub_server.hpp"

namespace redlock::testing {
namespace {

Arguments waiting_exec(const Arguments& options = {}) {
  return exec_a(options, {"echo", "done"});
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
  for (const auto& line : lines_of(text)) {
    if (contains(line, "waiting ")) lines.emplace_back(line);
  }
  return lines;
}

TEST_CASE_FIXTURE(ThreeNodes, "without --wait, exec gives up when no node has ever answered") {
  for (std::size_t node = 0; node < 3; ++node) fleet.kill(node);
  const auto finished = exits_with(69, run(waiting_exec()));
  CHECK(finished.out.empty());
  const auto lines = wait_lines(finished.err);
  REQUIRE_FALSE(lines.empty());
  CHECK(contains(lines[0].text, "for a (no quorum of nodes: "));
  CHECK(std::abs(lines[0].since + lines[0].more - 10) <= 1);  // both are rounded
  check_contains(finished.err,
                 {"no node has answered within 10 s", "--wait forever", "connection refused"});
}

TEST_CASE("nodes that accept connections and never answer have not answered") {
  const auto one = StubServer::silent();
  const auto finished = exits_with(
      69, redlock(waiting_exec({"--node-timeout", "500ms"}), nodes_variable({one.uri()})));
  CHECK(contains(finished.err, "no node has answered within 10 s"));
}

TEST_CASE_FIXTURE(ThreeNodes, "one node that answers, or --wait, makes exec wait and say so") {
  fleet.kill(0);
  fleet.kill(1);
  Running patient_one(fleet, waiting_exec());
  Running told(patient(waiting_exec({"--wait", "forever"})),
               nodes_variable({"redis://127.0.0.1:1"}));
  // At once, after 5, 15 and 35 seconds.
  for (Running* waiting : {&patient_one, &told}) {
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
  const auto finished = exits_with(0, patient_one.wait());
  CHECK(finished.out == "done\n");
  told.signal(SIGTERM);
  CHECK(told.wait().status == 128 + SIGTERM);
}

TEST_CASE_FIXTURE(OneNode, "a wait that is to end says how long it has lasted and will") {
  Holder holder(fleet);
  Running waiter(fleet, waiting_exec({"--wait", "60s"}));
  REQUIRE(waiter.await_err_lines(2));
  const auto lines = wait_lines(waiter.err());
  REQUIRE(lines.size() >= 2);
  for (const WaitLine& line : lines) {
    CAPTURE(line.text);
    CHECK(contains(line.text, " for a, next in line (held by "));
    CHECK(std::abs(line.since + line.more - 60) <= 1);  // both are rounded
  }
  CHECK(lines[1].since >= 5);
  holder.let_go();
  CHECK(waiter.wait().out == "done\n");
}

TEST_CASE_FIXTURE(OneNode, "on a terminal the line is refreshed, and gone when the lock is there") {
  Holder holder(fleet);
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
  holder.let_go();
  REQUIRE(session.await("\r\x1b[Kgranted"));
  CHECK(session.await("status 0"));
  // Each line is written over the one before it.
  CHECK_FALSE(contains(session.shown().substr(0, session.shown().find("granted")), "\n"));
}

TEST_CASE_FIXTURE(ThreeNodes, "the line says how many are before it, and moves up with them") {
  Holder holder(fleet);
  Running first(fleet, exec_a({}, {"sh", "-c", "echo second; read line"}));
  REQUIRE(first.await_err("for a, next in line (held by "));
  OnTerminal last(fleet, R"($REDLOCK exec a --node-timeout 10s -- echo granted)");
  REQUIRE(last.await("for a, 1 before it (held by "));
  holder.let_go();
  REQUIRE(first.await_out("second"));
  REQUIRE(last.await("for a, next in line (held by "));
  first.write("go\n");
  CHECK(last.await("\r\x1b[Kgranted"));
}

TEST_CASE_FIXTURE(ThreeNodes, "who barges has no place in any line") {
  Holder holder(fleet);
  Running waiter(fleet, waiting_exec({"--ordering", "barging"}));
  REQUIRE(waiter.await_err(" for a (held by "));
  // A node that the holder reached late may have nothing yet; a line would stay.
  for (std::size_t node = 0; node < fleet.size(); ++node) {
    CHECK(eventually([&] {
      return fleet.run(node, {"KEYS", "redlock:[lw]*"}) == "redlock:lock:{a}";
    }));
  }
  const auto shown = exits_with(0, run({"waiters", "a"}));
  CHECK(contains(shown.out,
                 "nobody waits for a in order; calls that wait with --ordering barging are in "
                 "no line, and not shown\n"));
  CHECK(run_json({"waiters", "a"})["waiting"].empty());
  holder.let_go();
  CHECK(waiter.wait().out == "done\n");
}

constexpr auto* waiters_key = "redlock:waiters:{a}";

/// Whether each has its place on all three nodes, and is told of its turn there.
bool all_are_everywhere(const json& report) {
  std::size_t place = 0;
  return std::ranges::all_of(report["waiting"], [&place](const json& call) {
    ++place;
    return call["places"] == json::array({place, place, place}) && call["polls"] == false;
  });
}

/// An entry as the scripts write it, which stays.
void enter(const Fleet& fleet, std::size_t node, const std::string& id, const std::string& began,
           const std::string& manner) {
  fleet.run(node, {"ZADD", "redlock:line:{a}", began, id});
  fleet.run(node, {"HSET", waiters_key, id, "99999999999999 " + manner + " 60"});
}

void forbid_lines(const Fleet& fleet, std::size_t node) {
  fleet.run(node, {"ACL", "SETUSER", "default", "-zrange"});
}

TEST_CASE_FIXTURE(ThreeNodes, "waiters are listed in order, with their place on each node") {
  const Holder holder(fleet);
  std::list<Running> waiting;
  json report;
  for (const std::string label : {"one", "two"}) {
    waiting.emplace_back(fleet, waiting_exec({"--as", label}));
    // After a pause of the machine a waiter may be gone from a queue, until it asks again.
    REQUIRE(eventually([&] {
      report = run_json({"waiters", "a"});
      return report["waiting"].size() == waiting.size() && all_are_everywhere(report);
    }));
  }
  check_members(report, {{"/verdict", "held"},
                         {"/waiting/0/who/label", "one"},
                         {"/waiting/0/who/pid", waiting.front().pid()},
                         {"/waiting/1/who/label", "two"},
                         {"/nodes/2/read", true}});
  const auto waited = [&](std::size_t place) {
    return report["waiting"][place]["waited_ms"].get<int>();
  };
  CHECK(waited(0) > waited(1));
  CHECK(waited(0) < 600'000);

  const std::regex row(R"(\n2  two, pid \d+ on \S+ +\d+ m?s +2 2 2 +yes\n)");
  Finished shown;
  const bool is_shown = eventually([&] {
    shown = run({"waiters", "a"});
    return shown.status == 0 && shown.out.starts_with("2 wait for a\na is held by ") &&
           std::regex_search(shown.out, row);
  });
  CHECK_MESSAGE(is_shown, shown.out);
}

TEST_CASE_FIXTURE(ThreeNodes, "a line is shown as each node has it: places, a turn, who polls") {
  enter(fleet, 0, "aa:1", "1000", "w");
  enter(fleet, 0, "bb:1", "3600000000", "p");
  enter(fleet, 2, "bb:1", "3600000000", "p");
  fleet.run(0, {"HSET", waiters_key, "redlock:lock:{a}", "aa:1 99999999999999"});
  forbid_lines(fleet, 1);
  const auto report = run_json({"waiters", "a"});
  CHECK(report["waiting"].size() == 2);
  check_members(report, {{"/waiting/0/id", "aa:1"},
                         {"/waiting/0/who", nullptr},
                         {"/waiting/0/has_turn", true},
                         {"/waiting/0/places", json::array({1, nullptr, nullptr})},
                         {"/waiting/1/polls", true},
                         {"/waiting/1/has_turn", false},
                         {"/waiting/1/places", json::array({2, nullptr, 1})},
                         {"/nodes/1/read", false}});

  const auto shown = run({"waiters", "a"}).out;
  CHECK(shown.starts_with("2 wait for a\na is free on a quorum of 3 nodes\n"));
  CHECK_MESSAGE(std::regex_search(shown, std::regex(R"(\n1  \? +\d+ h +1 \? - +turn\n)")), shown);
  CHECK_MESSAGE(std::regex_search(shown, std::regex(R"(\n2  \? +\d+ h +2 \? 1 +polls\n)")), shown);
  CHECK(contains(unwrapped(shown), fleet.uri(1) + ": the user may not read its line"));
}

TEST_CASE_FIXTURE(ThreeNodes, "too few nodes that tell who waits is 69, or 78 if they may not") {
  forbid_lines(fleet, 0);
  forbid_lines(fleet, 1);
  enter(fleet, 2, "aa:1", "1000", "w");
  const auto refused = exits_with(78, run({"waiters", "a"}));
  CHECK(contains(refused.out, "a: 1 seen waiting, but only 1 of 3 nodes show their lines\n"));
  for (std::size_t node = 0; node < 3; ++node) fleet.kill(node);
  const auto silent = exits_with(69, run({"waiters", "a"}));
  check_contains(silent.out, {"a: no node shows its line\n", fleet.uri(2) + ": "});
}

TEST_CASE_FIXTURE(OneNode, "waiters --watch shows who comes") {
  const Holder holder(fleet);
  Running watch(fleet, {"waiters", "a", "--watch", "100ms"});
  REQUIRE(watch.await_out("nobody waits for a"));
  const Running one(fleet, waiting_exec());
  REQUIRE(watch.await_out("1 waits for a\n"));
  watch.signal(SIGINT);
  CHECK(watch.wait().status == 128 + SIGINT);
}

}  // namespace
}  // namespace redlock::testing
