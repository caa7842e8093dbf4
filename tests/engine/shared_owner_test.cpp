// SPDX-License-Identifier: MIT
// Two processes that drew one owner (a machine that was cloned): what one gets must not look like a
// grant to the other, and what one gives up must not be the other's.
#include "engine/rig.hpp"

using namespace redlock::engine::test;

TEST_CASE("what an owner that is shared was granted is released, and nothing else") {
  Rig rig(5);
  const auto id = rig.attempt({Granted{7}, AlreadyOurs{}, AlreadyOurs{}, AlreadyOurs{}});
  REQUIRE(rig.failure(id) == Errc::no_quorum);
  CHECK(rig.ballot(id, 1).vote == Vote::unavailable);
  CHECK(rig.ballot(id, 1).detail == "another process locks with the same random numbers");
  CHECK(rig.releases(0) == 1);
  CHECK_FALSE(rig.asked(1));
  // The last one may have it of the other process as well, until it says that it granted it.
  CHECK(rig.releases(4) == 0);
  SUBCASE("it did") {
    rig.answer(4, Granted{7});
    CHECK(rig.releases(4) == 1);
    rig.answer(4, ReleasedHere{});
  }
  SUBCASE("it did not") {
    rig.answer(4, AlreadyOurs{});
  }
  SUBCASE("nobody knows: it ends by itself") {
    rig.answer(4, broken);
  }
  CHECK_FALSE(rig.asked(4));
  rig.answer(0, ReleasedHere{});
  rig.advance(1min);
  for (const NodeIndex node : {0U, 1U, 2U, 3U, 4U}) {
    rig.node_up(node);
    CHECK_FALSE(rig.asked(node));
  }
  CHECK(rig.engine.deadline() == never);
}

TEST_CASE("a lease goes on without a node that has its owner for another process, for good") {
  Rig rig(3);
  const GrantId grant = rig.lease_on({0, 1}, Rig::renewed()).grant;
  rig.answer(2, AlreadyOurs{});
  CHECK_FALSE(rig.lost.contains(grant));
  for (int renewal = 0; renewal < 3; ++renewal) {
    rig.advance(10s);
    rig.answer({0, 1}, Held{7});
    CHECK_FALSE(rig.asked(2));
  }
  SUBCASE("and is released where it was granted") {
    rig.drop(grant);
    CHECK(rig.releases(0) == 1);
    CHECK_FALSE(rig.asked(2));
  }
  SUBCASE("what that node says later confirms nothing") {
    rig.advance(10s);
    rig.answer(0, Free{});
    rig.answer(1, Held{7});
    CHECK(rig.lost.contains(grant));
  }
}

TEST_CASE("a lease that is lost leaves another process its lock, too, and no more") {
  Rig rig(5);
  const GrantId grant = rig.lease_on({0, 1, 2}).grant;
  rig.advance(1min);
  REQUIRE(rig.lost.contains(grant));
  rig.answer(3, AlreadyOurs{});
  SUBCASE("a grant behind the loss is given back") {
    rig.answer(4, Granted{7});
    rig.release(grant);
  }
  SUBCASE("and one behind the release") {
    rig.release(grant);
    CHECK(rig.releases(4) == 0);
    rig.answer(4, Granted{7});
  }
  CHECK(rig.releases(0) == 1);
  CHECK(rig.releases(3) == 0);
  CHECK(rig.releases(4) == 1);
}

TEST_CASE("a node that may still grant the lock is not taken for one that has nothing") {
  Rig rig(5);
  const GrantId grant = rig.lease_on({0, 1, 2}).grant;
  rig.answer(3, AlreadyOurs{});
  const RequestId release = rig.release(grant);
  rig.answer({0, 1}, ReleasedHere{});
  rig.answer(2, NotHeld{});
  CHECK(rig.outcome(release) == Released::unknown);
}

TEST_CASE("a heal takes what is there already, whose release is owed as any other") {
  for (const bool released_meanwhile : {false, true}) {
    RenewedRig rig;
    const Send heal = rig.heal_of(2);
    if (released_meanwhile) rig.release(rig.grant);
    rig.answer(heal, AlreadyOurs{});
    if (!released_meanwhile) {
      rig.advance(10s);
      rig.answer({0, 1, 2}, Held{7});
      CHECK(rig.lost.empty());
      rig.release(rig.grant);
    }
    CHECK(rig.releases(2) == 1);
    rig.answer(2, broken);
    rig.node_up(2);
    CHECK(rig.releases(2) == 1);
  }
}
