// SPDX-License-Identifier: MIT
//
// What class Fleet does where something is in the way, shown on real redis-servers. What it does as
// a rule, every test shows that uses it; what is left behind afterwards, fleet_cleanup_test.cpp.
#include "cluster/fleet.hpp"

#include <doctest/doctest.h>
#include <fmt/core.h>

#include "cluster/sockets.hpp"
#include "support/processes.hpp"
#include "support/temporary_directory.hpp"
#include "support/text.hpp"

using namespace redlock::cluster;
using namespace redlock::testing;

TEST_CASE("a password is asked for, and is part of the URI") {
  Fleet fleet({.nodes = 1, .password = "a b\"c\\d%"});
  CHECK(fleet.uri(0) == fmt::format("redis://:a%20b%22c%5Cd%25@127.0.0.1:{}", fleet.port(0)));
  CHECK(fleet.run(0, {"PING"}) == "PONG");
  redlock::cluster::NodeClient stranger(fleet.port(0));
  CHECK(contains(stranger.command({"PING"}), "(error) NOAUTH"));
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
