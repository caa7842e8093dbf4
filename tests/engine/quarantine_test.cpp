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

/// Whether a fresh attempt asks this node; the attempt is given up.
bool asks(Rig& rig, NodeIndex node) {
  const RequestId request = rig.acquire();
  bool asked = false;
  for (NodeIndex each = 0; each < 3; ++each) {
    while (rig.asked(each)) {
      asked = asked || (each == node && rig.oldest_is<AcquireCommand>(each));
      rig.answer(each, down);
    }
  }
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

}  // namespace

TEST_CASE("a durable node with its marker votes at once, however young it is") {
  QuarantineRig rig(none);
  CHECK(asks(rig, 0));
}

TEST_CASE("a node that is not durable votes when it has been up for a quarantine") {
  QuarantineRig rig;
  rig.see(0, {.marker = true, .durable = false, .uptime = 60s});
  CHECK(votes_in(rig, 0) == 2s);
  CHECK(quarantine_of(rig, 0)->reason == InQuarantine::Reason::restart);
  CHECK_FALSE(asks(rig, 0));
  rig.advance(quarantine - 60s - 1ns);
  CHECK_FALSE(asks(rig, 0));
  rig.advance(1ns);
  CHECK(asks(rig, 0));
}

TEST_CASE("a node is no older than the last sight of the run before, whatever its clock says") {
  QuarantineRig rig;
  const NodeFacts before{.marker = true, .durable = false, .uptime = 24h, .run = "a"};
  rig.see(0, before);
  // Its machine started in 1970, and was told the time after redis-server had started.
  const auto another_run = [&](Duration uptime = 500'000h) {
    rig.see(0, {.marker = true, .durable = false, .uptime = uptime, .run = "b"});
  };
  CHECK(asks(rig, 0));
  rig.advance(20s);
  SUBCASE("seen when its clock was read") {
    rig.engine.on_node_clock(rig.now, 0, 0);
    rig.advance(5s);
    another_run();
    CHECK(votes_in(rig, 0) == 57s);
  }
  SUBCASE("seen when it was connected to") {
    another_run();
    CHECK(votes_in(rig, 0) == 42s);
    SUBCASE("and connecting once more makes it no older") {
      rig.advance(10s);
      another_run();
      CHECK(votes_in(rig, 0) == 32s);
    }
  }
  SUBCASE("also one that it says is shorter") {
    another_run(1h);
    CHECK(votes_in(rig, 0) == 42s);
  }
  SUBCASE("nor younger than nothing") {
    another_run(-24h);
    CHECK(votes_in(rig, 0) == 62s);
  }
}

TEST_CASE("neither an uptime that leaps nor a setting that is mended ends a quarantine") {
  QuarantineRig rig;
  rig.see(0, {.marker = true, .uptime = 5s, .run = "a"});
  rig.advance(2s);
  // The same run, by another connection: the node's clock was set.
  rig.see(0, {.marker = true, .uptime = 1h, .run = "a"});
  CHECK(votes_in(rig, 0) == 55s);
  // The operator mended it by CONFIG SET; what the crash took is still forgotten.
  rig.see(0, {.marker = true, .durable = true, .uptime = 10s, .run = "a"});
  CHECK(quarantine_of(rig, 0));
}

TEST_CASE("a node without a marker waits from when it was first seen so, and is then marked") {
  QuarantineRig rig;
  // How long it has been up says nothing: it may have been flushed a moment ago.
  rig.see(0, {.marker = false, .durable = true, .uptime = 1h});
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
  rig.engine.on_marker(0);
  CHECK(asks(rig, 0));
}

TEST_CASE("a node that has forgotten once more begins to wait anew") {
  QuarantineRig rig;
  rig.see(0, {.marker = false, .durable = true, .run = "a"});
  rig.advance(1s);
  rig.engine.on_pending_marker(rig.now, 0, "first");
  rig.advance(40s);
  SUBCASE("it is pending with another id: it may have been marked, and granted a lock") {
    rig.engine.on_pending_marker(rig.now, 0, "second");
  }
  SUBCASE("it has been restarted") {
    rig.see(0, {.marker = false, .durable = true, .run = "b"});
  }
  rig.advance(quarantine - 1s);
  CHECK_FALSE(asks(rig, 0));
  CHECK_FALSE(rig.tended.back().write);
  rig.advance(2s);
  CHECK(rig.tended.back().write);
  // At the last moment its id is found to be another.
  CHECK(rig.tended.back().pending != "third");
  rig.engine.on_pending_marker(rig.now, 0, "third");
  CHECK(votes_in(rig, 0) == 62s);
}

TEST_CASE("a node waits from when its id was first seen, whoever marked it as pending, and when") {
  QuarantineRig rig;
  rig.see(0, {.marker = false, .durable = true, .run = "a"});
  // It was marked, granted and forgot before the command that looked came there, whose reply is
  // lost. The next reply says that it is pending.
  rig.advance(5s);
  rig.engine.on_pending_marker(rig.now, 0, "id");
  CHECK(votes_in(rig, 0) == 62s);
  rig.advance(30s);
  rig.engine.on_pending_marker(rig.now, 0, "id");
  CHECK(votes_in(rig, 0) == 32s);
  rig.advance(32s);
  CHECK(rig.tended.back().write);
  CHECK(rig.tended.back().pending == "id");
}

TEST_CASE("a node that is promoted while it waits begins to wait anew, whatever it waited for") {
  QuarantineRig rig;
  NodeFacts facts{.marker = true, .durable = true, .promoted = true, .run = "a"};
  SUBCASE("for a promotion before") {}
  SUBCASE("for what it forgot") {
    // Others may have waited already, marked it, and been granted what the promotion lost.
    facts.marker = facts.promoted = false;
  }
  rig.see(0, facts);
  rig.advance(40s);
  rig.see(0, facts);
  CHECK(votes_in(rig, 0) == 22s);
  facts.marker = facts.promoted = facts.newly_promoted = true;
  rig.see(0, facts);
  CHECK(votes_in(rig, 0) == 62s);
  facts.newly_promoted = false;
  rig.advance(10s);
  rig.see(0, facts);
  CHECK(votes_in(rig, 0) == 52s);
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

TEST_CASE("a promoted replica waits although it has a marker") {
  QuarantineRig rig;
  rig.see(0, {.marker = true, .durable = true, .promoted = true});
  CHECK(votes_in(rig, 0) == 62s);
  CHECK(quarantine_of(rig, 0)->reason == InQuarantine::Reason::promotion);
  CHECK_FALSE(asks(rig, 0));
}

TEST_CASE("with too few voters left an attempt fails at once and says for how long") {
  CarefulRig rig(5);
  rig.see({0, 1, 2}, wiped);
  const RequestId request = rig.acquire();
  REQUIRE(rig.failure(request) == Errc::no_quorum);
  CHECK(rig.ballot(request, 0).cause == Cause::quarantined);
  CHECK(std::get<InQuarantine>(rig.ballot(request, 0).objection).votes_in > 61s);
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

TEST_CASE("without the quarantine everybody votes") {
  Rig rig(3);
  rig.engine.on_node_facts(rig.now, 0, {});
  CHECK(asks(rig, 0));
}
