// SPDX-License-Identifier: MIT
// redlock waiters: who waits for a lock, and what is said when nobody does or nobody tells.
#include "cli_process.hpp"

namespace redlock::testing {
namespace {

constexpr auto* line_key = "redlock:line:{a}";
constexpr auto* waiters_key = "redlock:waiters:{a}";

// A busy machine must not look like a node that is gone.
Finished waiters(const Fleet& fleet, const Arguments& more = {},
                 const std::string& timeout = "10s") {
  Arguments arguments{"waiters", "a", "--node-timeout", timeout};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return redlock(arguments, nodes_variable(fleet.uris()));
}

json as_json(const Fleet& fleet) {
  return json::parse(waiters(fleet, {"-o", "json"}).out);
}

std::unique_ptr<Running> wait_for_a(const Fleet& fleet, const std::string& label,
                                    const std::string& ordering = "fifo") {
  return std::make_unique<Running>(Arguments{"acquire", "a", "--wait", "forever", "--node-timeout",
                                             "10s", "--as", label, "--ordering", ordering},
                                   nodes_variable(fleet.uris()));
}

void hold_a(const Fleet& fleet) {
  const auto held = redlock({"acquire", "a", "--lease", "60s", "--node-timeout", "10s"},
                            nodes_variable(fleet.uris()));
  REQUIRE(held.status == 0);
}

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
  fleet.run(node, {"ZADD", line_key, began, id});
  fleet.run(node, {"HSET", waiters_key, id, "99999999999999 " + manner + " 60"});
}

TEST_CASE("waiters are listed in order, with program, waiting time and place on each node") {
  const Fleet fleet({.nodes = 3});
  hold_a(fleet);
  std::vector<std::unique_ptr<Running>> waiting;
  json report;
  for (const std::string label : {"one", "two"}) {
    waiting.push_back(wait_for_a(fleet, label));
    // After a pause of the machine a waiter may be gone from a queue, until it asks again.
    REQUIRE(eventually([&] {
      report = as_json(fleet);
      return report["waiting"].size() == waiting.size() && all_are_everywhere(report);
    }));
  }
  CHECK(report["verdict"] == "held");
  CHECK(report["waiting"][0]["who"]["label"] == "one");
  CHECK(report["waiting"][0]["who"]["pid"] == waiting[0]->pid());
  CHECK(report["waiting"][1]["who"]["label"] == "two");
  CHECK(report["waiting"][0]["waited_ms"].get<int>() >=
        report["waiting"][1]["waited_ms"].get<int>());
  CHECK(report["nodes"][2]["read"] == true);

  const std::regex row(R"(\n2  two, pid \d+ on \S+ +\d+ m?s +2 2 2 +yes\n)");
  Finished shown;
  const bool is_shown = eventually([&] {
    shown = waiters(fleet);
    return shown.status == 0 && shown.out.starts_with("2 wait for a\na is held by ") &&
           std::regex_search(shown.out, row);
  });
  CHECK_MESSAGE(is_shown, shown.out);
}

TEST_CASE("a line is shown as each node has it: no place, a turn, a waiter that polls") {
  const Fleet fleet({.nodes = 3});
  enter(fleet, 0, "aa:1", "1000", "w");
  enter(fleet, 0, "bb:1", "3600000000", "p");
  enter(fleet, 2, "bb:1", "3600000000", "p");
  fleet.run(0, {"HSET", waiters_key, "redlock:lock:{a}", "aa:1 99999999999999"});
  fleet.run(1, {"ACL", "SETUSER", "default", "-zrange"});
  const auto report = as_json(fleet);
  REQUIRE(report["waiting"].size() == 2);
  CHECK(report["waiting"][0]["id"] == "aa:1");
  CHECK(report["waiting"][0]["who"].is_null());
  CHECK(report["waiting"][0]["has_turn"] == true);
  CHECK(report["waiting"][0]["places"] == json::array({1, nullptr, nullptr}));
  CHECK(report["waiting"][1]["polls"] == true);
  CHECK(report["waiting"][1]["has_turn"] == false);
  CHECK(report["waiting"][1]["places"] == json::array({2, nullptr, 1}));
  CHECK(report["nodes"][1]["read"] == false);

  const auto shown = waiters(fleet).out;
  CHECK(shown.starts_with("2 wait for a\na is free on a quorum of 3 nodes\n"));
  CHECK_MESSAGE(std::regex_search(shown, std::regex(R"(\n1  \? +\d+ h +1 \? - +turn\n)")), shown);
  CHECK_MESSAGE(std::regex_search(shown, std::regex(R"(\n2  \? +\d+ h +2 \? 1 +polls\n)")), shown);
  CHECK(contains(unwrapped(shown), fleet.uri(1) + ": the user may not read its line"));
}

TEST_CASE("a waiter that barges stands in no line, and that is said where nobody is seen") {
  const Fleet fleet({.nodes = 3});
  hold_a(fleet);
  const auto barging = wait_for_a(fleet, "impatient", "barging");
  REQUIRE(barging->await_err("waiting"));
  const auto shown = waiters(fleet);
  CHECK(shown.status == 0);
  CHECK(contains(shown.out,
                 "nobody waits for a in order; calls that wait with --ordering barging are in "
                 "no line, and not shown\n"));
  CHECK(as_json(fleet)["waiting"].empty());
}

TEST_CASE("too few nodes that tell who waits is 69, and 78 if their user may not") {
  Fleet fleet({.nodes = 3});
  for (std::size_t node = 0; node < 2; ++node) {
    fleet.run(node, {"ACL", "SETUSER", "default", "-zrange"});
  }
  enter(fleet, 2, "aa:1", "1000", "w");
  const auto refused = waiters(fleet);
  CHECK(refused.status == 78);
  CHECK(contains(refused.out, "a: 1 seen waiting, but only 1 of 3 nodes show their lines\n"));
  for (std::size_t node = 0; node < 3; ++node) fleet.kill(node);
  const auto silent = waiters(fleet);
  CHECK(silent.status == 69);
  CHECK(contains(silent.out, "a: no node shows its line\n"));
  CHECK(contains(silent.out, fleet.uri(2) + ": "));
}

TEST_CASE("waiters --watch shows who comes") {
  const Fleet fleet({.nodes = 1});
  hold_a(fleet);
  Running watch({"waiters", "a", "--watch", "100ms", "--node-timeout", "10s"},
                nodes_variable(fleet.uris()));
  REQUIRE(watch.await_out("nobody waits for a"));
  const auto one = wait_for_a(fleet, "one");
  REQUIRE(watch.await_out("1 waits for a\n"));
  watch.signal(SIGINT);
  CHECK(watch.wait().status == 128 + SIGINT);
}

}  // namespace
}  // namespace redlock::testing
