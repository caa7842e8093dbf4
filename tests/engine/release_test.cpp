// SPDX-License-Identifier: MIT
// Releasing: what the caller is told, and what is owed to nodes that could not be told.
#include "engine/rig.hpp"

using namespace redlock::engine::test;

TEST_CASE("a release is told when a quorum has answered, else as unknown at the node timeout") {
  struct Answers {
    std::vector<Reply> replies;
    std::uint32_t nodes;
    Released outcome;
  };
  const ReleasedHere released{};
  for (const Answers& answers :
       {Answers{{released, released, released}, 5, Released::released},
        Answers{{released, NotHeld{}, NotHeld{}}, 3, Released::already_gone},
        Answers{{released, broken}, 3, Released::unknown}}) {
    Rig rig(answers.nodes);
    const auto id = rig.release(rig.lease_on_all().grant);
    NodeIndex node = 0;
    for (const Reply& reply : answers.replies) {
      CHECK_FALSE(rig.ended(id));
      rig.answer(node++, reply);
    }
    if (answers.outcome == Released::unknown) CHECK(rig.ends_after(250ms, id));
    CHECK(rig.outcome(id) == answers.outcome);
  }
}

TEST_CASE("a release whose script is unknown is sent in full, and one of what is gone not at all") {
  LeaseRig rig;
  const auto id = rig.release(rig.grant);
  rig.answer(0, NoScript{});
  const Send again = rig.take(0);
  CHECK(again.form == Form::source);
  rig.answer(again, ReleasedHere{});
  CHECK_FALSE(rig.ended(id));
  rig.answer({1, 2}, ReleasedHere{});
  CHECK(rig.outcome(id) == Released::released);
  CHECK(rig.outcome(rig.release(rig.grant)) == Released::already_gone);
  CHECK(rig.all_answered());
}

TEST_CASE("somebody's grant is released by name and owner on every node") {
  Rig rig(3);
  const auto id = rig.release_elsewhere(OwnerId{{1, 2}});
  for (NodeIndex node = 0; node < 3; ++node) {
    CHECK(rig.oldest<ForceCommand>(node).owner == OwnerId{{1, 2}});
  }
  rig.answer({0, 1}, ReleasedHere{});
  CHECK(rig.outcome(id) == Released::released);
}

TEST_CASE("what was granted elsewhere is released for good: what is late of it finds no way back") {
  // The process that detached it may have a heal, or an acquire, on its way to a node.
  Rig rig(3);
  const GrantId grant = rig.take_up(1s);
  rig.answer(2, Taken{});
  rig.release(grant);
  for (NodeIndex node = 0; node < 3; ++node) {
    REQUIRE(rig.oldest_is<ForceCommand>(node));
    CHECK(rig.oldest<ForceCommand>(node).owner == OwnerId{{5, 6}});
    CHECK(rig.oldest<ForceCommand>(node).keep_out == 60s);  // the longest lease
    CHECK(rig.oldest<ForceCommand>(node).longest_lease == 60s);
  }
  rig.answer({0, 1}, ReleasedHere{});
  rig.answer(2, broken);
  rig.advance(59s);  // its lease elsewhere may be longer than the one here
  rig.node_up(2);
  REQUIRE(rig.oldest_is<ForceCommand>(2));
  rig.answer(2, NotHeld{});
  rig.release(rig.lease_on_all().grant);
  CHECK(rig.oldest_is<ReleaseCommand>(0));
}

TEST_CASE("a detached lease is neither renewed nor released") {
  RenewedRig rig;
  rig.detach(rig.grant);
  rig.advance(60s);
  CHECK_FALSE(rig.asked(0));
  CHECK(rig.lost.empty());
}

TEST_CASE("a node that was never sent the acquire counts as gone and is not asked") {
  Rig rig(3);
  const GrantId grant = rig.lease_on({0, 1}).grant;
  rig.answer(2, down);
  const auto id = rig.release(grant);
  CHECK_FALSE(rig.asked(2));
  CHECK_FALSE(rig.ended(id));
  rig.answer(0, NotHeld{});
  CHECK(rig.outcome(id) == Released::already_gone);
}

TEST_CASE("a release that nobody waits for is sent and tells nobody") {
  LeaseRig rig;
  rig.drop(rig.grant);
  CHECK(rig.all_have_releases(1));
  rig.answer({0, 1, 2}, ReleasedHere{});
  rig.advance(1s);
  rig.drop(rig.grant);  // gone already
  CHECK_FALSE(rig.ended(0));
}
