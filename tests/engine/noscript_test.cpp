// SPDX-License-Identifier: MIT
// NOSCRIPT: a message is sent again in full only while somebody still wants it. One that is
// repeated behind a release, or for a lease that is over, would stay on the node for a whole lease.
#include "engine/rig.hpp"

using namespace redlock::engine::test;

TEST_CASE("an acquire whose script is unknown is sent in full while somebody wants it") {
  Rig rig(5);
  const auto id = rig.acquire();
  rig.answer(0, NoScript{});
  CHECK(rig.take(0).form == Form::source);
  const Send straggler = rig.take(3);
  SUBCASE("not once its release was written") {
    rig.cancel(id);
  }
  SUBCASE("not once the vote is lost, but nobody knows yet whether a quorum votes") {
    rig.answer({1, 4}, down);
    rig.answer(2, Refused{9s});
    CHECK_FALSE(rig.ended(id));
  }
  rig.answer(straggler, NoScript{});
  CHECK(rig.asked_count(3) == 1);
  CHECK(rig.releases(3) == 1);
  CHECK(rig.ended_with<Failed>(id));
  rig.answer(3, broken);
  rig.node_up(3);
  CHECK_FALSE(rig.asked(3));  // it has nothing, so nothing is owed
}

TEST_CASE("a hold or a heal whose script is unknown is not sent again once nobody wants it") {
  RenewedRig rig;
  NodeIndex node = 0;
  std::size_t releases = 0;
  SUBCASE("a hold") {
    const auto id = rig.extend(rig.grant, 60s);
    SUBCASE("after release began") {
      releases = 1;
    }
    SUBCASE("after loss") {
      rig.answer({1, 2}, Taken{});
      REQUIRE(rig.lost.contains(rig.grant));
    }
    SUBCASE("after its round timed out") {
      rig.advance(250ms);
      REQUIRE(rig.failure(id) == Errc::no_quorum);
    }
  }
  SUBCASE("a heal") {
    rig.forgets(2);
    node = 2;
    REQUIRE(rig.oldest_is<AcquireCommand>(2));
    SUBCASE("after release began") {
      releases = 1;
    }
    SUBCASE("after loss") {
      const auto id = rig.extend(rig.grant, 30s);
      rig.answer(0, Taken{});
      REQUIRE(rig.failure(id) == Errc::lost);
    }
  }
  const Send unknown = rig.take(node);
  if (releases > 0) rig.release(rig.grant);
  while (rig.oldest_is<HoldCommand>(node)) rig.take(node);
  rig.answer(unknown, NoScript{});
  CHECK(rig.asked_count(node) == releases);
  CHECK(rig.releases(node) == releases);
}

TEST_CASE("NOSCRIPT to an acquire and to the release behind it says that the node has nothing") {
  Rig rig(3);
  const auto release = rig.release(rig.lease_on({0, 1}).grant);
  rig.answer(2, NoScript{});  // the acquire, which nobody wants any more
  CHECK(rig.asked_count(2) == 1);
  rig.answer(2, NoScript{});  // the release, which need not be repeated
  CHECK_FALSE(rig.asked(2));
  CHECK(rig.engine.releases_under_way() == 2);
  rig.answer(0, ReleasedHere{});
  CHECK_FALSE(rig.ended(release));
  rig.answer(1, NotHeld{});
  REQUIRE(rig.ended(release));  // without waiting for the node timeout
  CHECK(rig.outcome(release) == Released::already_gone);
}
