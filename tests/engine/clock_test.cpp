// SPDX-License-Identifier: MIT
// Clocks that jump or run: which node is blamed, for how long, and what becomes of the leases that
// it had confirmed. A node's clock here is what the test says it is.
#include "engine/rig.hpp"

using namespace redlock::engine::test;

namespace {

/// A rig whose nodes' clocks are read at will.
struct ClockRig : Rig {
  using Rig::Rig;
  /// The clocks of all nodes were read before that time.
  ClockRig(std::uint32_t nodes, Duration passed) : Rig(nodes) {
    for (NodeIndex node = 0; node < nodes; ++node) read(node);
    advance(passed);
  }

  void read(NodeIndex node, Duration ahead = {}, Duration uncertainty = 100us) {
    read_clock(node, ahead, uncertainty);
  }
  void read(std::initializer_list<NodeIndex> nodes, Duration ahead = {}) {
    for (const NodeIndex node : nodes) read(node, ahead);
  }
  /// That much later.
  void read_after(Duration time, std::initializer_list<NodeIndex> nodes, Duration ahead = {}) {
    advance(time);
    read(nodes, ahead);
  }
  /// Nodes 0 and 1 answer within 2 ms, the other three within 120.
  void read_near_and_far(Duration ahead) {
    for (NodeIndex node = 0; node < 5; ++node) read(node, ahead, node < 2 ? 1ms : 60ms);
  }
};

std::optional<ClockAstray> astray(Rig& rig, NodeIndex node) {
  const auto why = rig.engine.objection(rig.now, node);
  if (!why) return std::nullopt;
  CHECK(why->cause == Cause::clock_moved);
  return std::get<ClockAstray>(why->objection);
}

struct Reading {
  Duration after;
  std::vector<NodeIndex> nodes;
  Duration ahead = {};
};

/// What is read ten seconds after all clocks were, and which nodes are blamed then, with how much.
struct Story {
  const char* what;
  std::vector<Reading> readings;
  std::map<NodeIndex, Duration> blamed;
  std::uint32_t nodes = 3;
  bool far = false;  ///< some answer late, as in read_near_and_far()
};

}  // namespace

TEST_CASE("a clock that is wrong and stays so, or drifts within the allowance, is no matter") {
  ClockRig rig(3);
  for (int i = 0; i < 200; ++i) {
    const Duration drift = rig.since_start() / 101;
    rig.read(0, 1h + drift);
    rig.read(1, -1h - drift);
    rig.advance(i % 10 == 0 ? 10s : 1s);
  }
  CHECK(rig.clocks_moved.empty());
}

TEST_CASE("a clock that certainly jumped is noted on its node for clients that start later") {
  ClockRig rig(3, 10s);
  rig.read(0, 1h);
  rig.read(1);
  CHECK(rig.clock_notes.empty());  // two may be wrong, ours and that of node 1
  rig.read_after(1s, {1});
  rig.read(0, 1h);
  CHECK(rig.clock_notes.empty());
  rig.read(2);
  REQUIRE(rig.clock_notes.size() == 1);
  CHECK(rig.clock_notes[0].node == 0);
  CHECK(rig.clock_notes[0].lasts == 59s);
}

TEST_CASE("a node with a note of another client does not count while it lasts, max_lease at most") {
  for (const auto& [lasts, votes_in] : {std::pair(20s, 20s), std::pair(9000s, 60s)}) {
    Rig rig(3);
    const NodeFacts noted{.durable = true, .clock_noted = lasts};
    rig.engine.on_node_facts(rig.now, 2, noted);
    REQUIRE(astray(rig, 2));
    CHECK(astray(rig, 2)->ahead == 0s);
    CHECK(astray(rig, 2)->votes_in == votes_in);
    rig.acquire();
    CHECK_FALSE(rig.asked(2));
    rig.advance(votes_in);
    CHECK_FALSE(astray(rig, 2));
  }
}

TEST_CASE("a node whose clock jumps does not count until it has kept time for max_lease") {
  ClockRig rig(3, 10s);
  rig.read({0, 1});
  rig.read(2, 1h);
  REQUIRE(rig.clocks_moved.size() == 1);
  CHECK(rig.clocks_moved[0].node == 2);
  CHECK(rig.clocks_moved[0].by == 1h);
  CHECK_FALSE(rig.clocks_moved[0].ours);
  REQUIRE(astray(rig, 2));
  CHECK(astray(rig, 2)->ahead == 1h);
  CHECK(astray(rig, 2)->votes_in == 60s);
  const RequestId request = rig.acquire();
  CHECK_FALSE(rig.asked(2));
  rig.answer(0, down);
  REQUIRE(rig.ended(request));
  CHECK(rig.ballot(request, 2).cause == Cause::clock_moved);
  CHECK(std::holds_alternative<ClockAstray>(rig.ballot(request, 2).objection));

  rig.read_after(59s, {2}, 1h);
  CHECK(astray(rig, 2));
  rig.advance(1s);
  CHECK_FALSE(astray(rig, 2));
  CHECK(rig.clocks_moved.size() == 1);
}

TEST_CASE("a clock that runs is noticed over several readings") {
  ClockRig rig(3);
  // Two percent: 200 ms in ten seconds, and 102 are allowed.
  for (int i = 0; i < 12; ++i) {
    rig.read({0, 1});
    rig.read(2, rig.since_start() / 50);
    rig.advance(5s);
  }
  CHECK(rig.clocks_moved.size() > 1);
  for (const NodeClockMoved& moved : rig.clocks_moved) CHECK(moved.node == 2);
  CHECK(astray(rig, 2));
}

TEST_CASE("a slow round trip is not blamed on the node") {
  ClockRig rig(3);
  rig.read(0, {}, 100us);
  rig.advance(10s);
  // The process was stopped with the answer in its socket: 5 s, so the middle is 2.5 s off.
  rig.read(0, -2500ms, 2500ms);
  CHECK(rig.clocks_moved.empty());
  rig.read_after(10s, {0});
  CHECK(rig.clocks_moved.empty());
}

TEST_CASE("if a quorum of nodes moves together it is our clock, and no node is blamed") {
  ClockRig rig(5, 10s);
  rig.read({0, 1}, 20s);
  CHECK(astray(rig, 0));
  CHECK(astray(rig, 1));
  rig.read({2}, 20s);
  REQUIRE(rig.clocks_moved.size() == 3);
  CHECK(rig.clocks_moved[2].ours);
  for (const NodeIndex node : {0U, 1U, 2U}) CHECK_FALSE(astray(rig, node));
  rig.read({3, 4}, 20s);
  CHECK_FALSE(astray(rig, 4));
  CHECK(rig.clock_notes.empty());
}

TEST_CASE("each node is blamed for what its own clock did, and none for what ours did") {
  const Story stories[] = {
      {"two jump by different amounts at different times, and node 2 says that we did not",
       {{0s, {0}, 1h}, {0s, {1, 2}}, {20s, {2}}, {0s, {0}, 1h}, {0s, {1}, 40s}, {0s, {2}}},
       {{0, 1h}, {1, 40s}}},
      {"this machine stands still after node 0 jumped",
       {{0s, {0}, 1h}, {0s, {1, 2}}, {10s, {0}, 1h + 20s}, {0s, {1, 2}, 20s}},
       {{0, 1h}}},
      {"it does between two readings of one sweep, of which some are asked for again",
       {{0s, {0, 1}}, {5ms, {2, 3, 4}, 20s}, {5ms, {0, 1}, 20s}},
       {},
       5},
      {"two are set one after the other, by as much",
       {{0s, {0}, 1h},
        {0s, {1, 2}},
        {1s, {0}, 1h},
        {0s, {1, 2}},
        {20s, {0, 1}, 1h},
        {1s, {0, 1}, 1h},
        {0s, {2}}},
       {{0, 1h}, {1, 1h}}},
      {"two move in different directions", {{0s, {0}, 5s}, {0s, {1}, -5s}}, {{0, 5s}, {1, -5s}}},
      {"a near node jumps, far ones may have moved too; one that says no is as likely to lie",
       {{0s, {0}, 150ms}, {130ms, {2, 3, 4}}, {0s, {1}}},
       {{0, 150ms}},
       5,
       true},
      {"near ones make a jump that the far nodes exclude",
       {{0s, {0, 1}, 1s}, {130ms, {2, 3, 4}}},
       {{0, 1s}, {1, 1s}},
       5,
       true},
  };
  for (const Story& story : stories) {
    CAPTURE(story.what);
    ClockRig rig(story.nodes);
    const auto uncertainty = [&](NodeIndex node) -> Duration {
      if (!story.far) return 100us;
      return node < 2 ? 1ms : 60ms;
    };
    for (NodeIndex node = 0; node < story.nodes; ++node) rig.read(node, 0s, uncertainty(node));
    rig.advance(10s);
    for (const auto& [after, nodes, ahead] : story.readings) {
      rig.advance(after);
      for (const NodeIndex node : nodes) rig.read(node, ahead, uncertainty(node));
    }
    std::map<NodeIndex, Duration> blamed;
    for (NodeIndex node = 0; node < story.nodes; ++node) {
      if (const auto why = astray(rig, node)) blamed[node] = why->ahead;
    }
    CHECK((blamed == story.blamed));
  }
}

TEST_CASE("earlier movements that ended during ours are not taken for a word on ours") {
  for (const Duration of_node_2 : {Duration(0h), Duration(2h)}) {
    for (const bool first : {false, true}) {
      ClockRig rig(3, 10s);
      rig.read(0);
      rig.advance(1ms);  // readings that are made together are not quite
      rig.read(1, 1h);
      rig.read(2, of_node_2);
      rig.advance(10s);
      if (first) rig.read(0, 20s);  // this machine stood still
      rig.read(1, 1h + 20s);
      if (!first) rig.read(0, 20s);
      CHECK_FALSE(astray(rig, 0));
      rig.read(2, of_node_2 + 20s);
      CHECK_FALSE(astray(rig, 0));
    }
  }
}

TEST_CASE("nodes that are read again one after the other after our pause are not blamed") {
  ClockRig rig(5, 0s);
  for (NodeIndex node = 0; node < 3; ++node) {
    for (NodeIndex read = 0; read < node; ++read) CHECK(astray(rig, read));
    rig.read_after(3s, {node}, 20s);
  }
  for (NodeIndex node = 0; node < 5; ++node) CHECK_FALSE(astray(rig, node));
  // Long after it nothing has come to another conclusion.
  for (int i = 0; i < 70; ++i) {
    rig.read_after(2s, {0, 1, 2, 3, 4}, 20s);
    for (NodeIndex node = 0; node < 5; ++node) CHECK_FALSE(astray(rig, node));
  }
}

TEST_CASE("nodes that were not read for long are not blamed for a pause of ours, nor later") {
  ClockRig rig(3, 110s);
  for (int i = 0; i < 40; ++i) {
    rig.read({0, 1, 2}, 20s);
    rig.advance(2s);
    for (const NodeIndex node : {0U, 1U, 2U}) CHECK_FALSE(astray(rig, node));
  }
  CHECK(rig.clocks_moved.size() == 3);
}

TEST_CASE("a node that was not read for very long does not excuse another that jumps meanwhile") {
  ClockRig rig(3, 0s);
  for (int i = 0; i < 12; ++i) rig.read_after(10s, {0});
  rig.read_after(10s, {0}, 1h);
  rig.advance(1s);
  rig.read(2, 2h);  // since more than two minutes ago
  CHECK(astray(rig, 0));
}

TEST_CASE("if our own clock runs no node is blamed once a quorum has shown it") {
  ClockRig rig(3);
  // Eight percent: what chrony does to correct it. Each node is read at another time.
  for (int i = 0; i < 40; ++i) {
    rig.read(static_cast<NodeIndex>(i % 3), rig.since_start() * 8 / 100);
    rig.advance(3s);
  }
  CHECK(rig.clocks_moved.size() > 20);
  CHECK(rig.clocks_moved.back().ours);
  for (const NodeIndex node : {0U, 1U, 2U}) CHECK_FALSE(astray(rig, node));
}

TEST_CASE("a pause of ours is not blamed on near nodes because far ones hide it") {
  ClockRig rig(5);
  rig.read_near_and_far(0ms);
  const auto lease = rig.lease_on_all(Rig::request(5s));
  rig.advance(1s);
  rig.read_near_and_far(150ms);
  CHECK(rig.clocks_moved.size() == 2);
  CHECK(astray(rig, 0));  // the far ones were asked before, and may have been answered
  rig.advance(130ms);
  rig.read_near_and_far(150ms);
  for (NodeIndex node = 0; node < 5; ++node) CHECK_FALSE(astray(rig, node));
  // Every node ends the lease that much earlier, whether or not it can prove it.
  CHECK(lease.valid_until - rig.valid_until.at(lease.grant) >= 150ms);
  CHECK(rig.clocks_moved.size() == 2);
}

TEST_CASE("after a movement every clock is read at once, but no more than once a second") {
  ClockRig rig(3, 10s);
  rig.read({0, 1}, 20s);
  REQUIRE(rig.clocks_moved.size() == 2);
  CHECK(rig.readings_asked_for == 1);
  rig.read_after(999ms, {2}, 1h);
  CHECK(rig.readings_asked_for == 1);
  rig.read_after(1ms, {2}, 2h);
  CHECK(rig.readings_asked_for == 2);
}

TEST_CASE("a jump is noticed though the node was not read for longer than max_lease") {
  ClockRig rig(3, 9s);
  const auto lease = rig.lease_on_all(Rig::request(60s));
  rig.advance(52s);  // nodes hung; 61 s since the last reading, and the lease has 7 s left
  rig.read(0, 40s);
  CHECK_FALSE(rig.clocks_moved.empty());
  CHECK(rig.lost.empty());
  rig.read(1, 40s);  // a quorum has gone beyond its end
  CHECK(rig.lost.contains(lease.grant));
}

TEST_CASE("a lease that ends earlier is renewed earlier") {
  ClockRig rig(3, 0s);
  rig.lease_on_all(Rig::renewed());
  rig.read_after(5s, {0, 1, 2}, 18s);  // we stood still
  REQUIRE(rig.lost.empty());
  rig.advance(3500ms);
  REQUIRE(rig.asked(0));
  rig.answer({0, 1}, Held{7});
  rig.advance(500ms);
  CHECK(rig.lost.empty());
}

TEST_CASE("between its loss and its end a lease still ends earlier if clocks move") {
  ClockRig rig(3, 0s);
  const auto lease = rig.lease_on_all();
  rig.advance(27s);
  REQUIRE(rig.lost.at(lease.grant) == LossReason::expired);
  rig.read(0, 2s);
  CHECK_FALSE(rig.valid_until.contains(lease.grant));
  rig.read(1, 2s);
  REQUIRE(rig.valid_until.contains(lease.grant));
  CHECK(lease.valid_until - rig.valid_until.at(lease.grant) >= 2s);
  CHECK(rig.lost.at(lease.grant) == LossReason::expired);
}

TEST_CASE("a node whose clock goes back keeps what it confirmed, and confirms nothing more") {
  ClockRig rig(3, 0s);
  const auto lease = rig.lease_on_all(Rig::renewed());
  rig.read_after(5s, {0}, -1h);
  CHECK_FALSE(rig.valid_until.contains(lease.grant));
  rig.advance(5s);
  rig.answer({0, 1}, Held{7});
  CHECK(rig.renewals.empty());
  CHECK_FALSE(rig.valid_until.contains(lease.grant));
  rig.answer(2, Held{7});
  REQUIRE(rig.renewals.size() == 1);
  CHECK(rig.renewals[0].ok);
}

TEST_CASE("a node whose clock moved is not asked for a lease again that it lost") {
  ClockRig rig(3, 0s);
  rig.lease_on_all(Rig::renewed());
  rig.read_after(5s, {0}, -1h);
  rig.advance(5s);
  rig.answer({1, 2}, Held{7});
  REQUIRE(rig.oldest_is<HoldCommand>(0));
  rig.answer(0, Free{});
  CHECK_FALSE(rig.asked(0));
}

TEST_CASE("a grant that comes after its node's clock jumped is released, and does not count") {
  ClockRig rig(3, 10s);
  const RequestId request = rig.acquire();
  rig.read(2, 1h);
  rig.answer(2, Granted{7});
  rig.answer(1, down);
  CHECK_FALSE(rig.ended_with<AcquireSucceeded>(request));
  rig.answer(0, Granted{7});
  CHECK(rig.failure(request) == Errc::no_quorum);
  CHECK(rig.releases(2) == 1);
}

TEST_CASE("absurd clocks are borne") {
  ClockRig rig(3);
  for (const std::int64_t us : {INT64_MIN, INT64_MAX, std::int64_t{0}, INT64_MAX, INT64_MIN}) {
    rig.engine.on_node_clock(rig.now, 0, us, 1ms);
    rig.advance(1s);
  }
  CHECK(astray(rig, 0));
}
