// SPDX-License-Identifier: MIT
//
// What a test may rely on when it starts real nodes: every promise of class Fleet, shown on real
// redis-servers. What is left behind afterwards is the business of fleet_cleanup_test.cpp.
#include "cluster/fleet.hpp"

#include <doctest/doctest.h>
#include <fmt/core.h>
#include <set>

#include "cluster/sockets.hpp"
#include "support/processes.hpp"
#include "support/temporary_directory.hpp"
#include "support/text.hpp"

using namespace redlock::cluster;
using namespace redlock::testing;

TEST_CASE("a fleet is five nodes on ports of their own, and each answers") {
  const Fleet fleet;
  REQUIRE(fleet.size() == 5);
  std::set<std::uint16_t> ports;
  for (std::size_t i = 0; i < fleet.size(); ++i) {
    ports.insert(fleet.port(i));
    CHECK(fleet.run(i, {"PING"}) == "PONG");
    CHECK(fleet.state(i) == NodeState::running);
    CHECK(fleet.uri(i) == fmt::format("redis://127.0.0.1:{}", fleet.port(i)));
    CHECK(contains(fleet.run(i, {"INFO", "server"}), fmt::format("process_id:{}", fleet.pid(i))));
  }
  CHECK(ports.size() == 5);
  CHECK(fleet.uris().size() == 5);
}

TEST_CASE("all servers are started before any of them is awaited") {
  // Each of these servers begins only when all five have been started.
  const TemporaryDirectory place;
  const auto server = script_in(place, "server",
                                fmt::format(R"sh(
: >{0}/started.$$
while [ "$(ls {0} | grep -c '^started')" -lt 5 ]; do sleep 0.01; done
exec redis-server "$@"
)sh",
                                            place.path().string()));
  const ScopedVariable chosen("REDLOCK_REDIS_SERVER", server);
  const Fleet fleet({.start_timeout = std::chrono::seconds(30)});
  CHECK(fleet.run(4, {"PING"}) == "PONG");
}

TEST_CASE("a killed node has ended, the others answer, and it comes back on its port") {
  Fleet fleet({.nodes = 3});
  const auto port = fleet.port(1);
  const ProcessWatch first(fleet.pid(1));
  fleet.kill(1);
  CHECK_FALSE(first.is_running());
  CHECK(fleet.state(1) == NodeState::ended);
  CHECK(fleet.run(0, {"PING"}) == "PONG");
  CHECK(
      contains(message_of<FleetError>([&] { (void)fleet.run(1, {"PING"}); }), "cannot be reached"));

  fleet.kill(1);  // nothing happens to a node that has ended
  fleet.restart(1);
  CHECK(fleet.port(1) == port);
  CHECK(fleet.state(1) == NodeState::running);
  CHECK(fleet.run(1, {"PING"}) == "PONG");
}

TEST_CASE("a paused node keeps its connections, answers nobody, and goes on where it was") {
  Fleet fleet({.nodes = 1});
  const auto pid = fleet.pid(0);
  fleet.run(0, {"SET", "key", "value"});
  fleet.pause(0);
  CHECK(fleet.state(0) == NodeState::paused);
  CHECK(contains(
      message_of<FleetError>([&] { (void)fleet.run(0, {"PING"}, std::chrono::milliseconds(20)); }),
      "did not answer within 20 ms"));
  fleet.resume(0);
  CHECK(fleet.state(0) == NodeState::running);
  CHECK(fleet.pid(0) == pid);
  CHECK(fleet.run(0, {"GET", "key"}) == "value");
}

TEST_CASE("a durable node keeps its data through a kill, and loses it when restarted empty") {
  Fleet fleet({.nodes = 1, .persistence = Persistence::always});
  fleet.run(0, {"SET", "key", "value"});
  fleet.kill(0);
  fleet.restart(0, Data::kept);
  CHECK(fleet.run(0, {"GET", "key"}) == "value");
  fleet.restart(0, Data::empty);
  CHECK(fleet.run(0, {"GET", "key"}) == "(nil)");
}

TEST_CASE("a password is asked for, and is part of the URI") {
  Fleet fleet({.nodes = 1, .password = "a b\"c\\d%"});
  CHECK(fleet.uri(0) == fmt::format("redis://:a%20b%22c%5Cd%25@127.0.0.1:{}", fleet.port(0)));
  CHECK(fleet.run(0, {"PING"}) == "PONG");
  redlock::cluster::NodeClient stranger(fleet.port(0));
  CHECK(contains(stranger.command({"PING"}), "(error) NOAUTH"));
}

TEST_CASE("settings reach every node, or one node only, and the later line wins") {
  Fleet fleet({.nodes = 2,
               .settings = {"maxmemory 5mb", "user alice on >secret ~* +@all"},
               .node_settings = {{1, {"maxmemory 6mb"}}}});
  CHECK(fleet.run(0, {"CONFIG", "GET", "maxmemory"}) == "maxmemory\n5242880");
  CHECK(fleet.run(1, {"CONFIG", "GET", "maxmemory"}) == "maxmemory\n6291456");
  CHECK(fleet.run(0, {"AUTH", "alice", "secret"}) == "OK");
  fleet.restart(1);
  CHECK(fleet.run(1, {"CONFIG", "GET", "maxmemory"}) == "maxmemory\n6291456");
}

TEST_CASE("a port that is taken at the last moment is replaced by another one") {
  // The first start says what redis-server says then.
  const TemporaryDirectory place;
  const auto server = script_in(place, "server",
                                fmt::format(R"sh(
if mkdir {0}/first; then
  grep '^port' "$1" >{0}/port; echo 'bind: Address already in use'; exit 1
fi
exec redis-server "$@"
)sh",
                                            place.path().string()));
  const ScopedVariable chosen("REDLOCK_REDIS_SERVER", server);
  const Fleet fleet({.nodes = 1});
  CHECK(fleet.run(0, {"PING"}) == "PONG");
  std::string word;
  int taken = 0;
  std::ifstream lines(place.path() / "port");
  while (lines >> word >> taken) {
  }
  CHECK(taken > 0);
  CHECK(fleet.port(0) != taken);
}

TEST_CASE("a node whose port another program took meanwhile does not restart, and says why") {
  Fleet fleet({.nodes = 2});
  fleet.kill(0);
  {
    const auto intruder = redlock::cluster::listen_on_loopback(fleet.port(0));
    CHECK(message_of<FleetError>([&] { fleet.restart(0); }) ==
          fmt::format("another program has taken port {} of node 1; end that program and restart "
                      "the node again",
                      fleet.port(0)));
    CHECK(fleet.state(0) == NodeState::ended);
  }
  fleet.restart(0);
  CHECK(fleet.run(0, {"PING"}) == "PONG");
}

TEST_CASE("a missing redis-server is an error that says what to do") {
  const ScopedVariable no_path("PATH", "/nowhere");
  CHECK(contains(message_of<FleetError>([] { Fleet fleet; }), "apt install redis-server"));
  const ScopedVariable chosen("REDLOCK_REDIS_SERVER", "/nowhere/redis-server");
  CHECK(contains(message_of<FleetError>([] { Fleet fleet; }), "REDLOCK_REDIS_SERVER names"));
}

TEST_CASE("a node that does not exist is out of range") {
  Fleet fleet({.nodes = 1});
  CHECK_THROWS_AS(fleet.kill(1), std::out_of_range);
  CHECK_THROWS_AS((void)fleet.port(7), std::out_of_range);
}

TEST_CASE(
    "a paused node can be restarted, killed and terminated; one that has ended is not paused") {
  Fleet fleet({.nodes = 2});
  fleet.pause(0);
  fleet.restart(0);
  CHECK(fleet.run(0, {"PING"}) == "PONG");
  fleet.pause(0);
  fleet.kill(0);
  fleet.pause(1);
  fleet.terminate(1);
  CHECK(fleet.state(0) == NodeState::ended);
  CHECK(fleet.state(1) == NodeState::ended);
  for (const auto& change : {&Fleet::pause, &Fleet::resume}) {
    CHECK(message_of<FleetError>([&] { (fleet.*change)(0); }) ==
          "node 1 does not run; restart it first");
  }
  fleet.restart(0);
  fleet.terminate(0);
  CHECK(fleet.state(0) == NodeState::ended);
}

TEST_CASE("replies of every kind can be read as text") {
  Fleet fleet({.nodes = 1});
  CHECK(fleet.run(0, {"INCR", "count"}) == "1");
  CHECK(fleet.run(0, {"HSET", "hash", "a", "1", "b", std::string("x\r\ny\0z", 6)}) == "2");
  CHECK(fleet.run(0, {"HGETALL", "hash"}) == std::string("a\n1\nb\nx\r\ny\0z", 12));
  CHECK(fleet.run(0, {"HGETALL", "none"}) == "(empty array)");
  CHECK(fleet.run(0, {"GET", "none"}) == "(nil)");
  CHECK(contains(fleet.run(0, {"GET", "hash"}), "(error) WRONGTYPE"));
  CHECK(fleet.run(0, {"EVAL", "return {1,{'x',2},false}", "0"}) == "1\nx\n2\n(nil)");
}
