// SPDX-License-Identifier: MIT
// redlock release --force, as real processes against real nodes.
#include "cli_process.hpp"

namespace redlock::testing {
namespace {

Finished run(const Fleet& fleet, Arguments arguments) {
  // A busy machine must not look like a node that is gone.
  arguments.insert(arguments.end(), {"--node-timeout", "10s"});
  return redlock(arguments, nodes_variable(fleet.uris()));
}

TEST_CASE("release --force takes a lock away, says from whom, and the next gets it") {
  const Fleet fleet({.nodes = 3});
  const auto first = run(fleet, {"acquire", "a"});
  const auto owner = field(first.out, "owner");
  const auto forced = run(fleet, {"release", "a", "--force"});
  CHECK(forced.status == 0);
  CHECK(contains(forced.out, "released from " + owner + " on "));
  CHECK(forced.err.empty());
  CHECK(run(fleet, {"hold", "a", "--owner", owner}).status == 75);
  const auto second = run(fleet, {"acquire", "a", "--wait", "forever"});
  CHECK(second.status == 0);
  CHECK(std::stoull(field(second.out, "token")) > std::stoull(field(first.out, "token")));
}

TEST_CASE("release --force speaks JSON, and exits 75 where nothing is held") {
  const Fleet fleet({.nodes = 3});
  const auto owner = field(run(fleet, {"acquire", "a"}).out, "owner");
  const auto forced = json::parse(run(fleet, {"release", "a", "--force", "-o", "json"}).out);
  CHECK(forced["name"] == "a");
  CHECK(forced["result"] == "released");
  CHECK(forced["owner"] == owner);
  CHECK(forced["confirmed"].get<int>() >= 2);
  REQUIRE(forced["nodes"].size() == 3);
  CHECK(forced["nodes"][0]["node"] == fleet.uri(0));
  CHECK(forced["nodes"][0]["cause"].is_null());
  const auto again = run(fleet, {"release", "b", "--force", "-o", "json"});
  CHECK(again.status == 75);
  CHECK(json::parse(again.out)["result"] == "nothing_held");
  CHECK(json::parse(again.out)["owner"].is_null());
}

TEST_CASE("release --force without a quorum exits 69 and says which nodes are missing") {
  Fleet fleet({.nodes = 3});
  REQUIRE(run(fleet, {"acquire", "a"}).status == 0);
  fleet.kill(0);
  fleet.kill(1);
  const auto forced = run(fleet, {"release", "a", "--force"});
  CHECK(forced.status == 69);
  CHECK(contains(forced.out, "unknown"));
  CHECK(contains(forced.err, fleet.uri(0)));
}

TEST_CASE("release --force says of every node what became of the lock there") {
  Fleet fleet({.nodes = 3});
  // Held by a command that goes on until every node has it; `acquire` ends once a quorum has.
  Running holder({"exec", "a", "--node-timeout", "10s", "--", "sh", "-c", "echo held; read line"},
                 nodes_variable(fleet.uris()));
  REQUIRE(holder.await_out("held"));
  for (std::size_t node = 0; node < fleet.size(); ++node) {
    REQUIRE(eventually([&] { return fleet.run(node, {"EXISTS", "redlock:lock:{a}"}) == "1"; }));
  }
  fleet.pause(2);
  const auto forced =
      redlock({"release", "a", "--force", "--node-timeout", "2s"}, nodes_variable(fleet.uris()));
  CHECK(forced.status == 0);
  CHECK(contains(forced.out, "released from "));
  CHECK(contains(forced.out, fleet.uri(0) + ": removed\n"));
  CHECK(contains(forced.out, fleet.uri(1) + ": removed\n"));
  CHECK(contains(forced.out, fleet.uri(2) + ": unreachable: "));
  fleet.resume(2);
}

TEST_CASE("release must be told whose lock, in one way") {
  const Variables nowhere = nodes_variable({"redis://127.0.0.1:1"});
  const auto neither = redlock({"release", "a"}, nowhere);
  CHECK(neither.status == 64);
  CHECK(contains(neither.err, "--force"));
  CHECK(redlock({"release", "a", "--force", "--owner", std::string(32, 'e')}, nowhere).status ==
        64);
  const auto help = redlock({"release", "--help"}, nowhere);
  CHECK(contains(help.out, "token is older"));
}

TEST_CASE("a command whose lock is released by force is told to end, and redlock says why") {
  const Fleet fleet({.nodes = 3});
  Running running({"exec", "a", "--lease", "15s", "--", "sh", "-c", "echo ready; exec sleep 100"},
                  nodes_variable(fleet.uris()));
  REQUIRE(running.await_out("ready"));
  CHECK(run(fleet, {"release", "a", "--force"}).status == 0);
  const auto finished = running.wait();
  CHECK(finished.status == 79);
  CHECK(contains(finished.err, "the lock was released by force"));
}

}  // namespace
}  // namespace redlock::testing
