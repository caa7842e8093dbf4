// SPDX-License-Identifier: MIT
// A node that has forgotten a lease, and gives it to nobody else while it is in quarantine: until
// when it counts all the same, and what makes that a wrong conclusion.
#include "engine/rig.hpp"

using namespace redlock::engine::test;

namespace {

/// Nodes that are known to keep their data, until one of them is wiped.
struct Careful : CarefulRig {
  explicit Careful(std::uint32_t nodes) : CarefulRig(nodes) {
    for (NodeIndex node = 0; node < nodes; ++node) see(node, sound);
  }
};

/// The same with a lease that is renewed.
struct CarefulLease : Careful {
  explicit CarefulLease(std::uint32_t nodes, bool rival = false)
      : Careful(nodes),
        grant(rival ? lease_beside_rival(renewed()) : lease_on_all(renewed()).grant) {}

  const GrantId grant;
};

constexpr bool beside_rival = true;

}  // namespace

TEST_CASE("what a node confirmed counts until it is over, also if it forgets that") {
  CarefulLease rig(3, beside_rival);
  rig.see(1, wiped);
  rig.advance(10s);
  rig.answer(0, Held{7});
  rig.answer(1, Free{});  // and grants nothing to anybody before 30 s
  CHECK(rig.lost.empty());
  // Node 2 takes part again: the lease goes on.
  rig.answer(2, Free{});
  REQUIRE(rig.oldest_is<AcquireCommand>(2));
  rig.answer(2, Granted{8});
  rig.advance(10s);
  rig.answer({0, 2}, Held{8});
  rig.answer(1, Free{});
  CHECK(rig.lost.empty());
  CHECK(rig.valid_until[rig.grant] > rig.start + 30s);
}

TEST_CASE("what a node confirmed and forgot is over in time") {
  CarefulLease rig(3, beside_rival);
  rig.see(1, wiped);
  while (rig.lost.empty() && rig.now < rig.start + 60s) {
    rig.advance(500ms);
    if (rig.asked(0)) rig.answer(0, Held{7});
    if (rig.asked(1)) rig.answer(1, Free{});
    if (rig.asked(2)) rig.answer(2, Taken{});
  }
  CHECK(rig.loss_of(rig.grant) == LossReason::nodes_unavailable);
  CHECK(rig.now < rig.start + 30s - 302ms);
}

TEST_CASE("what a node confirmed and forgot was not gone when it is released, until it was over") {
  for (const bool in_time : {true, false}) {
    Careful rig(3);
    const GrantId grant = rig.lease_beside_rival(Rig::request());
    rig.see(1, wiped);
    if (!in_time) rig.advance(30s);
    const RequestId release = rig.release(grant);
    rig.answer(0, ReleasedHere{});
    rig.answer(1, NotHeld{});
    CHECK(rig.outcome(release) == (in_time ? Released::released : Released::already_gone));
  }
  Careful elsewhere(3);
  elsewhere.see(1, wiped);
  const RequestId release = elsewhere.release_elsewhere(OwnerId{{1, 2}});
  elsewhere.answer({0, 1, 2}, NotHeld{});
  CHECK(elsewhere.outcome(release) == Released::already_gone);
}

TEST_CASE("a node that votes and does not have the lock is withdrawn at once") {
  CarefulLease rig(3, beside_rival);
  rig.see(1, wiped);
  rig.see(1, sound);  // adopted
  rig.advance(10s);
  rig.answer(1, Free{});
  CHECK(rig.loss_of(rig.grant) == LossReason::taken);
}

TEST_CASE(
    "a node whose clock moved counts as denying: it may have ended the lease, and grant another") {
  Careful rig(3);
  for (NodeIndex node = 0; node < 3; ++node) rig.read_clock(node);
  const GrantId grant = rig.lease_beside_rival(Rig::renewed());
  rig.advance(10s);
  rig.read_clock(1, -1h);
  for (const NodeIndex node : {0U, 2U}) rig.read_clock(node);
  REQUIRE(rig.engine.objection(rig.now, 1));
  CHECK(rig.lost.empty());
  rig.answer(1, Free{});
  CHECK(rig.lost.contains(grant));
}

// A quorum has forced the holder out, or released its lease from elsewhere, and a rival was
// granted. Then nodes of that quorum are wiped: they have forgotten that as well.
TEST_CASE("nothing is concluded from a quarantine when somebody takes the lease away") {
  for (const Reply& word : {Reply{ForcedOut{}}, Reply{Taken{}}, Reply{Free{}}}) {
    for (const bool before : {true, false}) {
      CarefulLease rig(3);
      rig.see({0, 1}, wiped);
      rig.advance(10s);
      if (before) rig.answer(2, word);
      rig.answer({0, 1}, Free{});
      CHECK(rig.lost.contains(rig.grant) == before);
      if (!before) rig.answer(2, word);
      CHECK(rig.lost.contains(rig.grant));
    }
  }
}

TEST_CASE("who was forced out is not confirmed by a node that has forgotten it") {
  CarefulLease rig(5);
  rig.advance(10s);
  rig.answer(0, Held{7});
  for (NodeIndex node = 1; node < 5; ++node) rig.answer(node, broken);  // valid until 29.7 s
  // Forced out on 0, 1 and 2, where a rival is granted; then 0 is wiped.
  rig.see(0, wiped);
  rig.advance(3s);
  rig.answer({1, 2}, ForcedOut{});
  rig.answer(0, Free{});
  rig.answer({3, 4}, Held{7});
  CHECK(rig.loss_of(rig.grant) == LossReason::forced);
}

TEST_CASE("a lease that a quorum holds may be explained by a quarantine again") {
  CarefulLease rig(5);
  rig.advance(10s);
  rig.answer(4, Taken{});
  rig.answer({0, 1, 2, 3}, Held{7});
  rig.advance(10s);
  rig.answer(4, Taken{});
  rig.answer({0, 1, 2, 3}, Held{7});
  rig.see({0, 1}, wiped);
  rig.advance(10s);
  rig.answer({2, 3}, Held{7});
  rig.answer({0, 1}, Free{});
  CHECK_FALSE(rig.lost.contains(rig.grant));
}

TEST_CASE("a node that has the lease again is as good as any") {
  CarefulLease rig(3);
  rig.see(0, wiped);
  rig.advance(10s);
  rig.answer({1, 2}, Held{7});
  rig.answer(0, Free{});
  rig.see(0, sound);  // adopted
  rig.advance(10s);
  rig.answer({1, 2}, Held{7});
  rig.answer(0, Free{});
  REQUIRE(rig.oldest_is<AcquireCommand>(0));
  rig.answer(0, Granted{8});
  rig.advance(10s);
  rig.answer(0, Held{8});
  rig.answer(1, Taken{});
  CHECK_FALSE(rig.lost.contains(rig.grant));
}

TEST_CASE("what was asked before the denial does not make a quarantine explain more") {
  CarefulLease rig(3);
  rig.advance(10s);
  SUBCASE("in the same round") {
    rig.answer(2, ForcedOut{});
    rig.answer({0, 1}, Held{7});  // executed before the force came there
  }
  SUBCASE("in another one") {
    rig.extend(rig.grant, 30s);
    const Send second = rig.take(0);
    rig.answer(2, Held{7});
    rig.answer(2, ForcedOut{});
    rig.answer(second, Held{7});
    rig.answer({0, 1}, Held{7});
    rig.answer(1, Held{7});
  }
  REQUIRE(rig.lost.empty());
  // The force comes to 0 and 1, a rival is granted there, and they are wiped. Node 2 is silent.
  rig.see({0, 1}, wiped);
  rig.advance(10s);
  rig.answer({0, 1}, Free{});
  CHECK(rig.lost.contains(rig.grant));
}

TEST_CASE("a node that was healed and is taken counts as denying as well") {
  CarefulLease rig(3, beside_rival);
  rig.advance(10s);
  rig.answer({0, 1}, Held{7});
  rig.answer(2, Free{});
  REQUIRE(rig.oldest_is<AcquireCommand>(2));
  rig.answer(2, Granted{8});
  // Released from elsewhere, and granted to a rival; then 0 and 1 are wiped.
  rig.see({0, 1}, wiped);
  rig.advance(10s);
  rig.answer(2, Taken{});
  rig.answer({0, 1}, Free{});
  CHECK(rig.lost.contains(rig.grant));
}

TEST_CASE("a quarantine that began before the node confirmed explains nothing") {
  CarefulLease rig(3, beside_rival);
  rig.see(1, wiped);
  rig.advance(10s);
  rig.answer({0, 1}, Held{7});  // somebody else has marked node 1 meanwhile, or it kept its data
  rig.answer(2, Taken{});
  CHECK(rig.lost.empty());
  rig.advance(10s);
  rig.answer(1, Free{});
  CHECK(rig.lost.contains(rig.grant));
}

TEST_CASE(
    "a denial of a node in quarantine is no sign that the lease was taken: it may have an old lock "
    "again") {
  CarefulLease rig(5, beside_rival);
  rig.see({0, 1}, wiped);
  rig.advance(10s);
  rig.answer(0, Free{});
  rig.answer(1, Taken{});
  CHECK_FALSE(rig.lost.contains(rig.grant));  // 0, 2 and 3 are left
}

TEST_CASE("a late answer to settling that is explained by a quarantine is no denial") {
  Careful rig(5);
  const auto id = rig.acquire(Rig::renewed());
  rig.answer(4, Granted{5});
  rig.answer({0, 1}, Granted{7});
  REQUIRE(rig.oldest_is<HoldCommand>(4));
  rig.answer(2, Granted{7});
  const GrantId grant = rig.grant_of(id);
  rig.answer(3, Refused{30s});
  rig.see({0, 4}, wiped);
  rig.advance(10s);
  const Send settle = rig.take(4);
  rig.answer(0, Taken{});  // it came back with an older state
  rig.answer(settle, Free{});
  CHECK_FALSE(rig.lost.contains(grant));  // 1, 2 and 4 are left
}

TEST_CASE("a heal under way is released, though its node is seen in quarantine meanwhile") {
  CarefulLease rig(5, beside_rival);
  rig.advance(10s);
  rig.extend(rig.grant, 30s);  // behind the renewal, before the heal
  rig.answer(4, Free{});
  rig.answer({0, 1, 2}, Held{7});
  const Send second = rig.take(4);
  const Send heal = rig.take(4);
  REQUIRE(std::holds_alternative<AcquireCommand>(heal.command));
  rig.engine.on_pending_marker(rig.now, 4, "id", rig.now);  // when it was looked for
  rig.answer(second, Free{});
  rig.answer(3, Taken{});
  rig.answer(heal, Granted{8});  // somebody has marked it meanwhile
  rig.release(rig.grant);
  CHECK(rig.releases(4) == 1);
}

TEST_CASE("what was released from elsewhere is gone, whatever is forgotten, in any order") {
  for (const bool forgotten_first : {false, true}) {
    CarefulLease rig(5);
    rig.see({0, 1, 2}, wiped);
    const RequestId release = rig.release(rig.grant);
    if (forgotten_first) rig.answer({0, 1, 2}, NotHeld{});
    rig.answer({3, 4}, NotHeld{});
    if (!forgotten_first) rig.answer({0, 1, 2}, NotHeld{});
    CHECK(rig.outcome(release) == Released::already_gone);
  }
}
