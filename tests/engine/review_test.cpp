// SPDX-License-Identifier: MIT
// What a review believes to be defects of clocks and quarantine; each test fails before its fix.
#include <doctest/doctest.h>
#include <string>

#include "engine/rig.hpp"

using namespace redlock;
using namespace redlock::engine;
using namespace redlock::engine::test;

namespace {

constexpr std::int64_t start_of_2026_us = 1'767'225'600'000'000;

void read_clock(Rig& rig, NodeIndex node, Duration ahead = {}, Duration give_or_take = 100us) {
  const auto us =
      std::chrono::duration_cast<std::chrono::microseconds>(rig.now.time_since_epoch() + ahead);
  rig.engine.on_node_clock(rig.now, node, start_of_2026_us + us.count(), give_or_take);
  rig.collect();
}

std::string objection_to(Rig& rig, NodeIndex node) {
  const auto why = rig.engine.objection(rig.now, node);
  return why ? why->detail : "";
}

}  // namespace

TEST_CASE("review: an uptime that leaps (it follows the node's wall clock) ends no quarantine") {
  Rig rig(3, {.max_lease = 60s, .quarantine = true});
  rig.engine.on_node_facts(rig.now, 0, {.marker = true, .uptime = 5s, .run = "a"});
  rig.advance(2s);
  // The same run, two seconds later, by another connection: its wall clock was set meanwhile.
  rig.engine.on_node_facts(rig.now, 0, {.marker = true, .uptime = 1h, .run = "a"});
  CHECK(objection_to(rig, 0) != "");
}

TEST_CASE("review: a run that began while this client watched is no older than that") {
  Rig rig(3, {.max_lease = 60s, .quarantine = true});
  rig.engine.on_node_facts(rig.now, 0, {.marker = true, .uptime = 24h, .run = "a"});
  rig.advance(10s);
  CHECK(objection_to(rig, 0) == "");
  rig.engine.on_node_facts(rig.now, 0, {.marker = true, .uptime = 1h, .run = "b"});
  CHECK(objection_to(rig, 0) != "");
}

TEST_CASE("review: a jump is noticed though the node was not read for longer than max_lease") {
  Rig rig(3);
  for (const NodeIndex node : {0U, 1U, 2U}) read_clock(rig, node);
  rig.advance(9s);
  const auto lease = rig.lease_on_all(Rig::request(60s));
  rig.advance(52s);  // nodes hung; 61 s since the last reading, and the lease has 7 s left
  read_clock(rig, 0, 40s);
  read_clock(rig, 1, 40s);
  CHECK_FALSE(rig.clocks_moved.empty());
  CHECK(rig.lost.contains(lease.grant));
}

TEST_CASE("review: a lease that ends earlier is renewed earlier") {
  Rig rig(3);
  for (const NodeIndex node : {0U, 1U, 2U}) read_clock(rig, node);
  const auto lease = rig.lease_on_all(Rig::renewed());
  rig.advance(5s);
  for (const NodeIndex node : {0U, 1U, 2U}) read_clock(rig, node, 18s);  // we stood still
  REQUIRE_FALSE(rig.lost.contains(lease.grant));
  rig.advance(3500ms);
  REQUIRE(rig.asked(0));
  rig.answer({0, 1}, Held{7});
  rig.advance(500ms);
  CHECK_FALSE(rig.lost.contains(lease.grant));
}

TEST_CASE("review: a pause of ours is not blamed on near nodes because far ones hide it") {
  Rig rig(5);
  for (NodeIndex node = 0; node < 5; ++node) read_clock(rig, node, {}, node < 2 ? 1ms : 60ms);
  rig.advance(10s);
  for (NodeIndex node = 0; node < 5; ++node) read_clock(rig, node, 150ms, node < 2 ? 1ms : 60ms);
  rig.advance(10s);
  for (NodeIndex node = 0; node < 5; ++node) read_clock(rig, node, 150ms, node < 2 ? 1ms : 60ms);
  CHECK(objection_to(rig, 0) == "");
  CHECK(objection_to(rig, 1) == "");
}

TEST_CASE("review: two nodes that jump by different amounts at different times are not us") {
  Rig rig(3);
  for (const NodeIndex node : {0U, 1U, 2U}) read_clock(rig, node);
  rig.advance(10s);
  read_clock(rig, 0, 1h);
  read_clock(rig, 1);
  read_clock(rig, 2);
  CHECK(objection_to(rig, 0) != "");
  rig.advance(20s);
  read_clock(rig, 2);
  read_clock(rig, 0, 1h);
  read_clock(rig, 1, 40s);
  read_clock(rig, 2);  // and this one says that we did not move
  CHECK(objection_to(rig, 0) != "");
  CHECK(objection_to(rig, 1) != "");
}

TEST_CASE("review: a setting that is mended in quarantine does not end it") {
  Rig rig(3, {.max_lease = 60s, .quarantine = true});
  rig.engine.on_node_facts(rig.now, 0, {.marker = true, .uptime = 5s, .run = "a"});
  CHECK(objection_to(rig, 0).find("set appendonly yes and appendfsync always") !=
        std::string::npos);
  rig.advance(5s);
  // The operator did just that, by CONFIG SET; what the crash took is still forgotten.
  rig.engine.on_node_facts(rig.now, 0, {.marker = true, .durable = true, .uptime = 10s, .run = "a"});
  CHECK(objection_to(rig, 0) != "");
}
