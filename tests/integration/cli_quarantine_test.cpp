// SPDX-License-Identifier: MIT
// redlock status and doctor on nodes that may have forgotten locks: they say why such a node does
// not vote yet and in how many seconds it does, as the errors do.
#include "cli_process.hpp"

namespace redlock::testing {
namespace {

// The longest lease of 60 s, the drift allowance of 1 %, 2 ms and a second.
constexpr int whole_quarantine_s = 62;

Finished ask_carefully(const Fleet& fleet, Arguments arguments) {
  auto variables = nodes_variable(fleet.uris());
  variables["REDLOCK_QUARANTINE"] = "on";
  arguments.insert(arguments.end(), {"--node-timeout", "10s"});
  auto finished = redlock(arguments, variables);
  finished.out = unwrapped(finished.out);
  return finished;
}
json ask_json(const Fleet& fleet, Arguments arguments) {
  arguments.insert(arguments.end(), {"-o", "json"});
  return json::parse(ask_carefully(fleet, std::move(arguments)).out);
}

bool names_problem(const json& problems, const std::string& severity, const std::string& words) {
  for (const auto& problem : problems) {
    if (problem["severity"] == severity && contains(problem["what"].get<std::string>(), words)) {
      return true;
    }
  }
  return false;
}

TEST_CASE("status and doctor say how long a new node waits until it votes") {
  const Fleet fleet({.nodes = 3, .persistence = Persistence::always});
  const auto status = ask_json(fleet, {"status", "a"});
  const auto examination = ask_json(fleet, {"doctor"});
  for (std::size_t node = 0; node < 3; ++node) {
    for (const auto& report : {status["nodes"][node], examination["nodes"][node]}) {
      CHECK(contains(report["quarantine"]["why"].get<std::string>(),
                     "s; run redlock adopt if the set is new, with --replaced NODE if this "));
      // Status counts from when its client first saw the node, the doctor from now.
      CHECK(report["quarantine"]["votes_in_s"] <= whole_quarantine_s);
      CHECK(report["quarantine"]["votes_in_s"] > 0);
    }
    CHECK(examination["nodes"][node]["quarantine"]["votes_in_s"] == whole_quarantine_s);
  }
  CHECK(names_problem(examination["nodes"][0]["problems"], "warning",
                      "starts now, it votes in 62 s"));
  CHECK(names_problem(examination["problems"], "warning", "takes its first lock in 62 s"));
  CHECK(occurrences(ask_carefully(fleet, {"doctor"}).out, "votes in 62s") == 3);
  const auto table = ask_carefully(fleet, {"status", "a"}).out;
  CHECK(occurrences(table, "quarantined, votes in ") == 3);
}

TEST_CASE("a node with a marker that may have forgotten waits for that long less its uptime") {
  const Fleet fleet({.nodes = 3,
                     .persistence = Persistence::always,
                     .node_settings = {{1, {"appendfsync everysec"}}}});
  REQUIRE(ask_carefully(fleet, {"adopt"}).status == 0);
  const auto uptime = [&] {
    return ask_json(fleet, {"doctor"})["nodes"][1]["uptime_s"].get<int>();
  };
  REQUIRE(eventually([&] { return uptime() > 0; }));
  const auto examination = ask_json(fleet, {"doctor"});
  const auto& node = examination["nodes"][1];
  CHECK(node["quarantine"]["votes_in_s"] == whole_quarantine_s - node["uptime_s"].get<int>());
  CHECK(names_problem(node["problems"], "warning", "it was restarted and may have forgotten"));
  CHECK(examination["nodes"][0]["quarantine"].is_null());
  CHECK(examination["problems"].empty());  // the other two are a quorum
  CHECK(examination["verdict"] == "degraded");
  CHECK(examination["safe"] == true);
  const auto status = ask_json(fleet, {"status", "a"});
  CHECK(status["nodes"][1]["quarantine"]["votes_in_s"] < whole_quarantine_s);
  CHECK(contains(status["nodes"][1]["quarantine"]["why"].get<std::string>(), "it was restarted"));
  CHECK(status["nodes"][0]["quarantine"].is_null());
}

TEST_CASE("a promoted replica is safe behind its quarantine, and votes when it is adopted") {
  const Fleet fleet({.nodes = 3, .persistence = Persistence::always});
  const Fleet former({.nodes = 1, .persistence = Persistence::always});
  fleet.run(2, {"REPLICAOF", "127.0.0.1", std::to_string(former.port(0))});
  REQUIRE(eventually([&] {
    return contains(fleet.run(2, {"INFO", "replication"}), "master_link_status:up");
  }));
  fleet.run(2, {"REPLICAOF", "NO", "ONE"});

  auto node = ask_json(fleet, {"doctor"})["nodes"][2];
  CHECK(node["promoted"] == true);
  CHECK(node["vouched"] == false);
  CHECK(node["quarantine"]["votes_in_s"] == whole_quarantine_s);
  CHECK(contains(node["quarantine"]["why"].get<std::string>(), "it was a replica"));
  CHECK(names_problem(node["problems"], "warning", "has been promoted"));
  CHECK_FALSE(names_problem(node["problems"], "error", "has been promoted"));
  const auto status = ask_json(fleet, {"status", "a"})["nodes"][2];
  CHECK(contains(status["quarantine"]["why"].get<std::string>(), "it was a replica"));

  REQUIRE(ask_carefully(fleet, {"adopt"}).status == 0);
  const auto examination = ask_json(fleet, {"doctor"});
  node = examination["nodes"][2];
  CHECK(node["vouched"] == true);
  CHECK(node["quarantine"].is_null());
  CHECK(node["problems"].empty());
  CHECK(examination["safe"] == true);
}

TEST_CASE("one node that lost its data degrades the set while it waits, three make it unsafe") {
  Fleet fleet({.nodes = 5, .persistence = Persistence::always});
  REQUIRE(ask_carefully(fleet, {"adopt"}).status == 0);
  REQUIRE(ask_carefully(fleet, {"doctor"}).status == 0);
  fleet.restart(4, cluster::Data::empty);
  const auto one = ask_carefully(fleet, {"doctor"});
  CHECK(one.status == 1);
  CHECK(one.out.starts_with("degraded: "));
  CHECK(contains(one.out, "has no marker"));
  fleet.restart(3, cluster::Data::empty);
  CHECK(ask_carefully(fleet, {"doctor"}).status == 1);
  fleet.restart(2, cluster::Data::empty);
  const auto three = ask_carefully(fleet, {"doctor"});
  CHECK(three.status == 2);
  CHECK(contains(three.out, "3 of 5 nodes have no marker"));
}

}  // namespace
}  // namespace redlock::testing
