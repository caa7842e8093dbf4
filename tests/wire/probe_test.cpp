// SPDX-License-Identifier: MIT
// What a connection asks from time to time: the node's clock, and whether it is still what the
// handshake saw.
#include "wire/rig.hpp"

using namespace redlock::wire;

namespace {

LinkRig::Script node_saying(const std::string& replication) {
  const std::string info = "redis_version:7.0.15\r\n" + replication;
  return [info](const RedisCommand& command) {
    return is(command, "INFO") ? bulk(info) : healthy(command);
  };
}

}  // namespace

TEST_CASE("a link that is told to reads the node's clock at once") {
  LinkRig rig;
  rig.probe();  // there is no connection yet, and it shows the clock
  rig.run();
  CHECK(rig.clocks.size() == 1);
  rig.pass(5s);
  CHECK(rig.clocks.size() == 1);
  rig.probe();
  rig.run();
  REQUIRE(rig.clocks.size() == 2);
  CHECK(rig.clocks[1].now == rig.now);
}

TEST_CASE("the clock is reckoned from the middle of its round trip, half of which is the error") {
  ConnectedRig rig;
  rig.node = silent;
  rig.probe();
  rig.run();
  rig.pass(10ms);
  rig.receive(array({bulk("1700000000"), bulk("500")}));
  REQUIRE(rig.clocks.size() == 2);
  CHECK(rig.clocks[1].now == rig.now);
  CHECK(rig.clocks[1].unix_us == 1'700'000'000'000'500 + 5'000);
  CHECK(rig.clocks[1].uncertainty == 5ms);
  CHECK(rig.clocks[1].round_trip == 10ms);
}

TEST_CASE("the round trip of a new connection is one in which the node compiles no scripts") {
  LinkRig rig;
  redlock::engine::Duration compiled{};
  rig.node = [&](const RedisCommand& command) {
    if (is(command, "INFO")) rig.now += 4ms;  // all of the first round trip
    if (is(command, "SCRIPT")) {
      rig.now += 3ms;
      compiled += 3ms;
    }
    return healthy(command);
  };
  rig.run();
  REQUIRE(rig.clocks.size() == 1);
  CHECK(rig.clocks[0].uncertainty == compiled / 2);
  CHECK(rig.clocks[0].round_trip == 4ms);
}

TEST_CASE("an idle connection is probed, and one that died unnoticed is replaced") {
  ConnectedRig rig(healthy, [](Link::Config& config) { config.probe_interval = 10s; });
  rig.pass(35s);
  CHECK(rig.clocks.size() == 4);  // the probe reads the clock
  rig.delivers = false;
  rig.pass(5s + 1'001ms);
  CHECK(rig.only_down().cause == Cause::timed_out);
  rig.delivers = true;
  rig.pass(20ms);
  CHECK(rig.warnings.size() == 2);
  CHECK(rig.replies.empty());
}

TEST_CASE("only what shows a promotion ends a connection, not every other id") {
  ConnectedRig rig(node_saying("role:master\r\nmaster_replid:aaa\r\nsecond_repl_offset:-1\r\n"));
  for (const char* harmless :
       {"role:master\r\nmaster_replid:bbb\r\nsecond_repl_offset:-1\r\n",  // its first replica
        "role:master\r\nmaster_replid:aaa\r\nsecond_repl_offset:9\r\n", "role:master\r\n", ""}) {
    rig.node = node_saying(harmless);
    rig.probe();
    rig.run();
    INFO(harmless);
    CHECK(rig.downs.empty());
  }
  rig.node = node_saying("role:master\r\nmaster_replid:bbb\r\nsecond_repl_offset:9\r\n");
  rig.probe();
  rig.pass(20ms);
  CHECK(rig.only_down().detail == "it has been a replica meanwhile");
  CHECK(rig.facts->was_replica);
}

TEST_CASE("a node that is a replica at a probe, or is to be one and is as it was, is given up") {
  for (const std::string replid : {"aaa", "bbb"}) {
    const std::string offset = "\r\nsecond_repl_offset:-1\r\n";
    ConnectedRig rig(node_saying("role:master\r\nmaster_replid:aaa" + offset));
    rig.node = node_saying("role:slave\r\nmaster_replid:" + replid + offset);
    rig.probe();
    rig.pass(20ms);
    REQUIRE(rig.downs.size() == 2);
    CHECK(rig.downs[0].cause == Cause::read_only);
    CHECK(rig.downs[0].detail == "its role has changed");
    CHECK(rig.downs[1].cause == Cause::incompatible);
  }
}

TEST_CASE("a node that refuses to write as a replica is asked for no vote before a handshake") {
  const std::string before = "role:master\r\nmaster_replid:aaa\r\nsecond_repl_offset:-1\r\n";
  for (const engine::Command& refused :
       {engine::Command(LinkRig::acquire()), engine::Command(LinkRig::release())}) {
    ConnectedRig rig(node_saying(before));
    rig.node = node_answering(error("READONLY You can't write against a read only replica."));
    CHECK(unavailable(rig.call(refused)).cause == Cause::read_only);
    CHECK(rig.only_down().detail == "it has become a replica");

    // Before anybody looks it is a master again, with another node's data.
    rig.node = node_saying("role:master\r\nmaster_replid:bbb\r\nsecond_repl_offset:9\r\n");
    rig.pass(20ms);
    CHECK(rig.connections == 2);
    CHECK(rig.facts.value().was_replica);
  }
}

TEST_CASE("a user who may not ask for INFO, or not any more, keeps the connection") {
  const auto no_info = [](const RedisCommand& command) {
    return is(command, "INFO") ? error("NOPERM this user has no permissions") : healthy(command);
  };
  for (const bool never : {true, false}) {
    ConnectedRig rig(never ? no_info : LinkRig::Script(healthy));
    rig.node = no_info;
    for (int i = 0; i < 3; ++i) {
      rig.probe();
      rig.run();
    }
    if (never) CHECK(rig.said("INFO") == 1);
    CHECK(rig.clocks.size() == 4);
    CHECK(rig.downs.empty());
  }
}
