// SPDX-License-Identifier: MIT
// Nodes that may have forgotten: who votes, from when, and what everybody is told meanwhile.
#include "engine/rig.hpp"

using namespace redlock::engine::test;

namespace {

/// max_lease, its drift allowance and a second: 60 s + 602 ms + 1 s.
constexpr auto quarantine = 61'602ms;

/// Nodes that are known to keep their data, but for one of which nothing is known.
struct QuarantineRig : CarefulRig {
  explicit QuarantineRig(NodeIndex but = 0) : CarefulRig(3) {
    for (NodeIndex node = 0; node < 3; ++node) {
      if (node != but) see(node, sound);
    }
  }
};

constexpr NodeIndex none = 99;

/// What is seen of node 0 by one connection, and how many seconds it waits then.
struct Sight {
  Duration after;
  NodeFacts facts;
  std::chrono::seconds votes_in;
};

/// Whether a fresh attempt asks this node; the attempt is given up.
bool asks(Rig& rig, NodeIndex node) {
  const RequestId request = rig.acquire();
  const bool asked = rig.oldest_is<AcquireCommand>(node);
  rig.answer_all(down);
  CHECK(rig.ended(request));
  return asked;
}

std::optional<InQuarantine> quarantine_of(Rig& rig, NodeIndex node) {
  const auto why = rig.engine.objection(rig.now, node);
  if (!why) return std::nullopt;
  CHECK(why->cause == Cause::quarantined);
  return std::get<InQuarantine>(why->objection);
}

/// In seconds, rounded up; zero if it votes.
std::chrono::seconds votes_in(Rig& rig, NodeIndex node) {
  return std::chrono::ceil<std::chrono::seconds>(
      quarantine_of(rig, node).value_or(InQuarantine()).votes_in);
}

void check(const std::vector<Sight>& sights) {
  QuarantineRig rig;
  for (const Sight& sight : sights) {
    rig.advance(sight.after);
    rig.see(0, sight.facts);
    CHECK(votes_in(rig, 0) == sight.votes_in);
  }
}

}  // namespace

TEST_CASE("a node that is not durable votes when it has been up for a quarantine") {
  QuarantineRig rig;
  rig.see(0, {.marker = ours, .durable = false, .uptime = 60s});
  CHECK(votes_in(rig, 0) == 2s);
  CHECK(quarantine_of(rig, 0)->reason == InQuarantine::Reason::restart);
  CHECK_FALSE(asks(rig, 0));
  rig.advance(quarantine - 60s - 1ns);
  CHECK_FALSE(asks(rig, 0));
  rig.advance(1ns);
  CHECK(asks(rig, 0));
}

TEST_CASE("a node that was restarted is no older than the last sight of the run before") {
  const NodeFacts before{.marker = ours, .uptime = 24h, .run = "a"};
  // Its machine started in 1970, and was told the time after redis-server had started.
  const NodeFacts another{.marker = ours, .uptime = 500'000h, .run = "b"};
  const NodeFacts young{.marker = ours, .uptime = 1h, .run = "b"};
  const NodeFacts unborn{.marker = ours, .uptime = -24h, .run = "b"};
  const NodeFacts crashed{.marker = ours, .uptime = 5s, .run = "a"};
  const NodeFacts clock_set{.marker = ours, .uptime = 1h, .run = "a"};
  // By CONFIG SET; what the crash took is still forgotten.
  const NodeFacts mended{.marker = ours, .durable = true, .uptime = 12s, .run = "a"};
  for (const std::vector<Sight>& sights : std::initializer_list<std::vector<Sight>>{
           {{0s, before, 0s}, {20s, another, 42s}, {10s, another, 32s}},
           {{0s, before, 0s}, {20s, young, 42s}},
           {{0s, before, 0s}, {20s, unborn, 62s}},
           {{0s, crashed, 57s}, {2s, clock_set, 55s}, {5s, mended, 50s}}}) {
    check(sights);
  }
  // Seen, too, when its clock was read.
  QuarantineRig rig;
  rig.see(0, before);
  rig.advance(20s);
  rig.engine.on_node_clock(rig.now, 0, 0);
  rig.advance(5s);
  rig.see(0, another);
  CHECK(votes_in(rig, 0) == 57s);
}

TEST_CASE("a node that is promoted while it waits begins to wait anew, whatever it waited for") {
  const NodeFacts promoted{.marker = ours, .durable = true, .promoted = true, .run = "a"};
  NodeFacts once_more = promoted;
  once_more.newly_promoted = true;
  // Others may have waited already, marked it, and been granted what the promotion lost.
  for (const NodeFacts& before : {promoted, wiped}) {
    check({{0s, before, 62s}, {40s, before, 22s}, {0s, once_more, 62s}, {10s, promoted, 52s}});
  }
  QuarantineRig rig;
  rig.see(0, promoted);
  CHECK(quarantine_of(rig, 0)->reason == InQuarantine::Reason::promotion);
  CHECK_FALSE(asks(rig, 0));
}

TEST_CASE("a node without a marker waits from when it was first seen so, and is then marked") {
  QuarantineRig rig;
  // How long it has been up says nothing: it may have been flushed a moment ago.
  rig.see(0, {.durable = true, .uptime = 1h});
  CHECK(votes_in(rig, 0) == 62s);
  CHECK(quarantine_of(rig, 0)->reason == InQuarantine::Reason::no_marker);
  rig.advance(30s);
  CHECK_FALSE(rig.tended.empty());
  CHECK_FALSE(rig.tended.back().write);
  // Another connection does not begin it anew.
  rig.see(0, wiped);
  rig.advance(quarantine - 30s);
  CHECK_FALSE(asks(rig, 0));
  rig.advance(1s);
  CHECK(rig.tended.back().write);
  CHECK(rig.tended.back().node == 0);
  rig.engine.on_marker(rig.now, 0, rig.tended.back().marker);
  CHECK(asks(rig, 0));
}

TEST_CASE("a node that has forgotten once more begins to wait anew") {
  QuarantineRig rig;
  rig.see(0, {.durable = true, .run = "a"});
  rig.advance(1s);
  rig.engine.on_pending_marker(rig.now, 0, "first", rig.now);
  rig.advance(40s);
  SUBCASE("it is pending with another id: it may have been marked, and granted a lock") {
    rig.engine.on_pending_marker(rig.now, 0, "second", rig.now);
  }
  SUBCASE("it has been restarted") {
    rig.see(0, {.durable = true, .run = "b"});
  }
  rig.advance(quarantine - 1s);
  CHECK_FALSE(asks(rig, 0));
  CHECK_FALSE(rig.tended.back().write);
  rig.advance(2s);
  CHECK(rig.tended.back().write);
  // At the last moment its id is found to be another.
  CHECK(rig.tended.back().pending != "third");
  rig.engine.on_pending_marker(rig.now, 0, "third", rig.now);
  CHECK(votes_in(rig, 0) == 62s);
}

TEST_CASE("a node waits from when its id was first seen, whoever marked it as pending, and when") {
  QuarantineRig rig;
  rig.see(0, {.durable = true, .run = "a"});
  // It was marked, granted and forgot before the command that looked came there, whose reply is
  // lost. The next reply says that it is pending.
  rig.advance(5s);
  rig.engine.on_pending_marker(rig.now, 0, "id", rig.now);
  CHECK(votes_in(rig, 0) == 62s);
  rig.advance(30s);
  rig.engine.on_pending_marker(rig.now, 0, "id", rig.now);
  CHECK(votes_in(rig, 0) == 32s);
  rig.advance(32s);
  CHECK(rig.tended.back().write);
  CHECK(rig.tended.back().pending == "id");
}

TEST_CASE("a node that somebody adopted meanwhile votes at once") {
  QuarantineRig rig;
  rig.see(0, wiped);
  rig.advance(5s);
  rig.see(0, sound);
  CHECK(asks(rig, 0));
  const auto looks = rig.tended.size();
  rig.advance(10s);
  CHECK(rig.tended.size() == looks);
}

TEST_CASE("an acquire that finds no marker quarantines the node") {
  QuarantineRig rig(none);
  const RequestId request = rig.acquire();
  rig.answer(0, Unavailable{Cause::marker_missing, Delivery::refused, "NOMARKER"});
  rig.answer({1, 2}, Granted{7});
  CHECK(rig.ended_with<AcquireSucceeded>(request));
  CHECK(votes_in(rig, 0) == 62s);
  CHECK_FALSE(asks(rig, 0));
}

TEST_CASE("with too few voters left an attempt fails at once and says for how long") {
  CarefulRig rig(5);
  rig.see({0, 1, 2, 3, 4}, sound);
  rig.see({0, 1, 2}, wiped);
  const RequestId request = rig.acquire();
  REQUIRE(rig.failure(request) == Errc::no_quorum);
  CHECK(rig.ballot(request, 0).cause == Cause::quarantined);
  CHECK(std::get<InQuarantine>(rig.ballot(request, 0).objection).votes_in > 61s);
}

TEST_CASE("a node that could not be reached is waited for where the others may not vote") {
  CarefulRig rig(3);
  rig.see({0, 1, 2}, sound);
  rig.see({0}, wiped);
  const RequestId request = rig.acquire(Rig::waiting(60s, true));
  rig.answer(1, down);
  while (rig.asked_count(2) > 0) {
    if (rig.oldest_is<AcquireCommand>(2)) {
      rig.answer(2, Refused{30s});
    } else {
      rig.answer(2, rig.oldest_is<LeaveCommand>(2) ? Reply(LineLeft{}) : Reply(NotHeld{}));
    }
  }
  while (rig.asked_count(1) > 0) rig.answer(1, down);
  rig.advance(70ms);
  REQUIRE(rig.oldest_is<AcquireCommand>(1));
  rig.answer(2, Granted{7});
  rig.answer(1, Granted{7});
  CHECK(rig.ended_with<AcquireSucceeded>(request));
}

TEST_CASE("a quarantined node is not healed, but what it still holds counts") {
  QuarantineRig rig(none);
  const auto lease = rig.lease_on_all(Rig::renewed());
  rig.see(0, wiped);
  rig.forgets(0);
  CHECK_FALSE(rig.asked(0));
  rig.advance(10s);
  rig.answer({0, 1}, Held{7});
  CHECK(rig.valid_until[lease.grant] == rig.start + 20s + 30s - 302ms);
}
