// SPDX-License-Identifier: MIT
// Clocks that jump or run: which node is blamed, for how long, and what becomes of the leases that
// it had confirmed. A node's clock here is what the test says it is.
#include <doctest/doctest.h>
#include <string>

#include "engine/rig.hpp"

using namespace redlock;
using namespace redlock::engine;
using namespace redlock::engine::test;

namespace {

constexpr std::int64_t year_2026_us = 1'767'225'600'000'000;

/// Node clocks beside a rig, all read at will.
struct Clocks {
  explicit Clocks(Rig& of) : rig(of) {}

  void read(NodeIndex node, Duration ahead = {}, Duration give_or_take = 100us) {
    const auto us =
        std::chrono::duration_cast<std::chrono::microseconds>(rig.now.time_since_epoch() + ahead);
    rig.engine.on_node_clock(rig.now, node, year_2026_us + us.count(), give_or_take);
    rig.collect();
  }
  void read(std::initializer_list<NodeIndex> nodes, Duration ahead = {}) {
    for (const NodeIndex node : nodes) read(node, ahead);
  }

  Rig& rig;
};

std::string words_about(Rig& rig, NodeIndex node) {
  const auto why = rig.engine.objection(rig.now, node);
  return why ? why->detail : "";
}

}  // namespace

TEST_CASE("a clock that is wrong and stays so is no matter") {
  Rig rig(3);
  Clocks clocks(rig);
  for (int i = 0; i < 100; ++i) {
    clocks.read(0, 1h);
    clocks.read(1, -1h);
    rig.advance(10s);
  }
  CHECK(rig.clocks_moved.empty());
}

TEST_CASE("a node whose clock jumps does not count until it has kept time for max_lease") {
  Rig rig(3);
  Clocks clocks(rig);
  clocks.read({0, 1, 2});
  rig.advance(10s);
  clocks.read({0, 1});
  clocks.read(2, 1h);
  REQUIRE(rig.clocks_moved.size() == 1);
  CHECK(rig.clocks_moved[0].node == 2);
  CHECK(rig.clocks_moved[0].by == 1h);
  CHECK_FALSE(rig.clocks_moved[0].ours);
  CHECK(words_about(rig, 2) ==
        "its clock went ahead by 3600000 ms against ours; it votes in 60 s if it keeps time until "
        "then");
  const RequestId request = rig.acquire();
  CHECK_FALSE(rig.asked(2));
  rig.answer(0, down);
  REQUIRE(rig.ended(request));
  const auto& ballot = rig.result<Failed>(request).ballots[2];
  CHECK(ballot.cause == Cause::clock_moved);

  rig.advance(59s);
  clocks.read(2, 1h);
  CHECK(words_about(rig, 2) != "");
  rig.advance(1s);
  CHECK(words_about(rig, 2) == "");
  CHECK(rig.clocks_moved.size() == 1);
}

TEST_CASE("a clock that runs is noticed over several readings") {
  Rig rig(3);
  Clocks clocks(rig);
  // Two percent: 200 ms in ten seconds, and 102 are allowed.
  for (int i = 0; i < 12; ++i) {
    clocks.read({0, 1});
    clocks.read(2, rig.since_start() / 50);
    rig.advance(5s);
  }
  CHECK(rig.clocks_moved.size() > 1);
  for (const NodeClockMoved& moved : rig.clocks_moved) CHECK(moved.node == 2);
  CHECK(words_about(rig, 2) != "");
}

TEST_CASE("clocks that drift within the allowance are not noticed") {
  Rig rig(3);
  Clocks clocks(rig);
  for (int i = 0; i < 200; ++i) {
    clocks.read(0, rig.since_start() / 101);
    clocks.read(1, -rig.since_start() / 101);
    rig.advance(1s);
  }
  CHECK(rig.clocks_moved.empty());
}

TEST_CASE("a slow round trip is not blamed on the node") {
  Rig rig(3);
  Clocks clocks(rig);
  clocks.read(0, {}, 100us);
  rig.advance(10s);
  // The process was stopped with the answer in its socket: 5 s, so the middle is 2.5 s off.
  clocks.read(0, -2500ms, 2500ms);
  CHECK(rig.clocks_moved.empty());
  rig.advance(10s);
  clocks.read(0);
  CHECK(rig.clocks_moved.empty());
}

TEST_CASE("if a quorum of nodes moves together it is our clock, and no node is blamed") {
  Rig rig(5);
  Clocks clocks(rig);
  clocks.read({0, 1, 2, 3, 4});
  rig.advance(10s);
  clocks.read({0, 1}, 20s);
  CHECK(words_about(rig, 0) != "");
  CHECK(words_about(rig, 1) != "");
  clocks.read({2}, 20s);
  REQUIRE(rig.clocks_moved.size() == 3);
  CHECK(rig.clocks_moved[2].ours);
  for (const NodeIndex node : {0U, 1U, 2U}) CHECK(words_about(rig, node) == "");
  clocks.read({3, 4}, 20s);
  CHECK(words_about(rig, 4) == "");
}

TEST_CASE("nodes that move in different directions are blamed each for itself") {
  Rig rig(3);
  Clocks clocks(rig);
  clocks.read({0, 1, 2});
  rig.advance(10s);
  clocks.read(0, 5s);
  clocks.read(1, -5s);
  CHECK(words_about(rig, 0) != "");
  CHECK(words_about(rig, 1).find("went back by 5000 ms") != std::string::npos);
}

TEST_CASE("what a node confirmed ends as much earlier as its clock went ahead") {
  Rig rig(3);
  Clocks clocks(rig);
  clocks.read({0, 1, 2});
  const auto lease = rig.lease_on_all();
  rig.advance(10s);
  clocks.read({0, 1}, 10s);  // a quorum: this machine stood still for ten seconds
  CHECK(rig.lost.empty());
  REQUIRE(rig.valid_until.contains(lease.grant));
  const Duration earlier = lease.valid_until - rig.valid_until.at(lease.grant);
  CHECK(earlier >= 10s);
  CHECK(earlier < 10s + 1ms);
}

TEST_CASE("a lease is lost when a quorum of nodes has gone beyond its end") {
  Rig rig(3);
  Clocks clocks(rig);
  clocks.read({0, 1, 2});
  const auto lease = rig.lease_on_all();
  rig.advance(5s);
  clocks.read(0, 40s);
  CHECK(rig.lost.empty());
  clocks.read(1, 40s);
  CHECK(rig.lost.contains(lease.grant));
}

TEST_CASE("a node whose clock goes back keeps what it confirmed, and confirms nothing more") {
  Rig rig(3);
  Clocks clocks(rig);
  clocks.read({0, 1, 2});
  const auto lease = rig.lease_on_all(Rig::renewed());
  rig.advance(5s);
  clocks.read({0}, -1h);
  CHECK_FALSE(rig.valid_until.contains(lease.grant));
  rig.advance(5s);
  rig.answer({0, 1}, Held{7});
  CHECK(rig.renewals.empty());
  rig.answer(2, Held{7});
  REQUIRE(rig.renewals.size() == 1);
  CHECK(rig.renewals[0].ok);
}

TEST_CASE("a grant that comes after its node's clock jumped is released, and does not count") {
  Rig rig(3);
  Clocks clocks(rig);
  clocks.read({0, 1, 2});
  rig.advance(10s);
  const RequestId request = rig.acquire();
  clocks.read(2, 1h);
  rig.answer(2, Granted{7});
  rig.answer(1, down);
  CHECK_FALSE(rig.ended_with<AcquireSucceeded>(request));
  rig.answer(0, Granted{7});
  CHECK(rig.failure(request) == Errc::no_quorum);
  CHECK(rig.releases(2) == 1);
}

TEST_CASE("absurd clocks are borne") {
  Rig rig(3);
  Clocks clocks(rig);
  for (const std::int64_t us : {INT64_MIN, INT64_MAX, std::int64_t{0}, INT64_MAX, INT64_MIN}) {
    rig.engine.on_node_clock(rig.now, 0, us, 1ms);
    rig.advance(1s);
  }
  CHECK(words_about(rig, 0) != "");
}
