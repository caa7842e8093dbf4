// SPDX-License-Identifier: MIT
// What a connection asks from time to time: the node's clock, and whether it is still what the
// handshake saw.
#include <doctest/doctest.h>
#include <string>

#include "cluster/fleet.hpp"
#include "net_link_fixture.hpp"
#include "support/proxy.hpp"

using namespace redlock::net;
using namespace redlock::wire;
using namespace redlock::testing;
using redlock::Cause;
using redlock::cluster::Fleet;

namespace {

void probed_often(Link::Config& config) {
  config.probe_interval = milliseconds(20);
}

/// Until probes have been answered that were sent after this call.
void run_for_probes(LinkFixture& link) {
  const std::size_t before = link.clocks.size();
  link.run_until([&] { return link.clocks.size() >= before + 3; });
}

}  // namespace

TEST_CASE("an idle connection that died unnoticed is found by the probe and replaced") {
  StubServer node(healthy);
  Proxy network(node.port());
  LinkFixture link(network.uri(), [](Link::Config& config) {
    config.silence = milliseconds(50);
    config.probe_interval = milliseconds(20);
  });
  link.run_until_up();
  link.run_until([&] { return link.clocks.size() >= 3; });  // the probe reads the clock as well
  network.hold();
  link.run_until_down();
  CHECK(link.downs[0].cause == Cause::timed_out);
  network.pass();
  link.run_until_up();
  CHECK(link.replies.empty());
}

TEST_CASE("a node that was a replica between two probes is looked at anew") {
  const Fleet fleet({.nodes = 2});
  LinkFixture link(fleet.uri(1), probed_often);
  link.run_until_up();
  CHECK_FALSE(link.was_replica);
  // Nobody runs the link meanwhile.
  fleet.run(1, {"REPLICAOF", "127.0.0.1", std::to_string(fleet.port(0))});
  fleet.run(1, {"REPLICAOF", "NO", "ONE"});
  link.run_until_up();
  CHECK(link.downs.at(0).detail == "it has been a replica meanwhile");
  CHECK(link.was_replica);
  run_for_probes(link);
  CHECK(link.downs.size() == 1);
}

TEST_CASE("a node that is a replica at a probe is given up") {
  const Fleet fleet({.nodes = 2});
  LinkFixture link(fleet.uri(1), probed_often);
  link.run_until_up();
  fleet.run(1, {"REPLICAOF", "127.0.0.1", std::to_string(fleet.port(0))});
  link.run_until([&] { return link.downs.size() == 2; });
  CHECK(link.downs[0].cause == Cause::read_only);
  CHECK(link.downs[1].cause == Cause::incompatible);
}

TEST_CASE("a user who may not ask for INFO keeps the connection, and is not refused again") {
  const Fleet fleet(
      {.nodes = 1,
       .settings = {"user alice on >secret ~redlock:* resetchannels -@all +hgetall +evalsha +eval "
                    "+script|load +time",
                    "user bob on >secret ~redlock:* resetchannels +@all"}});
  const std::string at = ":secret@127.0.0.1:" + std::to_string(fleet.port(0));
  LinkFixture never("redis://alice" + at, probed_often);
  LinkFixture no_more("redis://bob" + at, probed_often);
  never.run_until_up();
  run_for_probes(never);
  const std::string stats = fleet.run(0, {"INFO", "commandstats"});
  const std::size_t line = stats.find("cmdstat_info:");
  REQUIRE(line != std::string::npos);
  CHECK(contains(stats.substr(line, stats.find('\n', line) - line), "rejected_calls=1,"));
  no_more.run_until_up();
  fleet.run(0, {"ACL", "SETUSER", "bob", "-info"});
  run_for_probes(no_more);
  CHECK(never.downs.empty());
  CHECK(no_more.downs.empty());
}
