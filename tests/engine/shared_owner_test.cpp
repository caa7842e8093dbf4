// SPDX-License-Identifier: MIT
// Two processes that drew one owner (a machine that was cloned): what one gets must not look like a
// grant to the other, and what one gives up must not be the other's.
#include "engine/rig.hpp"

using namespace redlock::engine::test;

TEST_CASE("a lock that is this owner's already is no grant, and is not released") {
  Rig rig(3);
  const auto id = rig.acquire();
  rig.answer(0, AlreadyOurs{});
  REQUIRE(rig.failure(id) == Errc::no_quorum);
  const Ballot& vote = rig.result<Failed>(id).ballots[0];
  CHECK(vote.vote == Vote::unavailable);
  CHECK(vote.detail == "another process locks with the same random numbers");
  CHECK_FALSE(rig.asked(0));
  // The others may have it of the other process as well, until they say that they granted it.
  CHECK(rig.releases(1) == 0);
  rig.answer(1, Granted{7});
  CHECK(rig.releases(1) == 1);
  rig.answer(2, AlreadyOurs{});
  CHECK_FALSE(rig.asked(2));
  rig.answer(1, ReleasedHere{});
  rig.advance(1min);
  for (const NodeIndex node : {0U, 1U, 2U}) {
    rig.node_up(node);
    CHECK_FALSE(rig.asked(node));
  }
  CHECK(rig.engine.deadline() == never);
}

TEST_CASE("what was granted before is released at once") {
  Rig rig(3);
  const auto id = rig.acquire();
  rig.answer(0, Granted{7});
  rig.answer(1, AlreadyOurs{});
  CHECK(rig.failure(id) == Errc::no_quorum);
  CHECK(rig.releases(0) == 1);
  CHECK_FALSE(rig.asked(1));
  CHECK(rig.releases(2) == 0);
  rig.answer(2, broken);  // nobody knows whose it is: it ends by itself
  rig.node_up(2);
  CHECK_FALSE(rig.asked(2));
}

TEST_CASE("while settling, too, one such answer fails the attempt") {
  Rig rig(3);
  const auto id = rig.acquire();
  rig.answer(0, Granted{2});
  rig.answer(1, Granted{1});
  rig.answer(2, AlreadyOurs{});
  CHECK(rig.failure(id) == Errc::no_quorum);
  CHECK(rig.releases(0) == 1);
  CHECK(rig.releases(1) == 1);
  CHECK(rig.releases(2) == 0);
}

TEST_CASE("the next attempt draws another owner") {
  Rig rig(3);
  auto what = Rig::request();
  what.wait = 10s;
  const auto id = rig.acquire(what);
  const OwnerId first = rig.oldest<AcquireCommand>(0).owner;
  rig.answer({0, 1, 2}, AlreadyOurs{});
  rig.advance(1s);
  CHECK_FALSE(rig.ended(id));
  CHECK(rig.oldest<AcquireCommand>(0).owner != first);
}

TEST_CASE("a lease whose owner turns out to be another's as well is lost, and not released there") {
  Rig rig(3);
  const auto id = rig.acquire();
  rig.answer({0, 1}, Granted{7});
  const GrantId grant = rig.result<AcquireSucceeded>(id).grant;
  rig.answer(2, AlreadyOurs{});
  REQUIRE(rig.lost.contains(grant));
  CHECK(rig.lost.at(grant) == LossReason::taken);
  rig.drop(grant);
  CHECK(rig.releases(0) == 1);
  CHECK(rig.releases(2) == 0);
}

TEST_CASE("a heal takes what is there already") {
  Rig rig(3);
  const auto lease = rig.lease_on_all(Rig::renewed());
  rig.advance(10s);
  rig.answer(2, Free{});
  rig.answer({0, 1}, Held{7});
  REQUIRE(rig.oldest_is<AcquireCommand>(2));
  rig.answer(2, AlreadyOurs{});
  rig.advance(10s);
  rig.answer({0, 1, 2}, Held{7});
  CHECK_FALSE(rig.lost.contains(lease.grant));
  rig.release(lease.grant);
  CHECK(rig.releases(2) == 1);
}

TEST_CASE("the release of a heal that found its lock already there is owed as any other") {
  Rig rig(3);
  const auto lease = rig.lease_on_all(Rig::renewed());
  rig.advance(10s);
  rig.answer(2, Free{});
  rig.answer({0, 1}, Held{7});
  const Send heal = rig.take(2);
  rig.release(lease.grant);
  rig.answer(heal, AlreadyOurs{});
  rig.answer(2, broken);
  rig.node_up(2);
  CHECK(rig.releases(2) == 1);
}
