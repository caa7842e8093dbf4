// SPDX-License-Identifier: MIT
// Healing: giving the lock back to a node that forgot it. What its answer means, when it is tried
// again, and what is left to release. When healing is allowed at all is in hold_test.cpp.
#include "engine/rig.hpp"

using namespace redlock::engine::test;

namespace {

/// Node 2 forgot the lease; the heal is on its way to it, behind the hold of an extension that
/// began before.
struct Crossing : RenewedRig {
  Crossing() {
    advance(10s);
    extension = extend(grant, 30s);
    answer(2, Free{});
    answer({0, 1}, Held{7});
    hold = take(2);
    heal = take(2);
    REQUIRE(std::holds_alternative<AcquireCommand>(heal.command));
  }

  RequestId extension = 0;
  Send hold;
  Send heal;
};

}  // namespace

TEST_CASE("a node that refused its healing is healed when it is free again") {
  RenewedRig rig;
  rig.answer(rig.heal_of(2), Refused{9s});
  rig.advance(10s);
  rig.answer(2, Taken{});
  rig.answer({0, 1}, Held{7});
  CHECK_FALSE(rig.asked(2));
  rig.heal_of(2);
}

TEST_CASE("a node that answers after the node timeout is healed as well") {
  RenewedRig rig;
  rig.advance(10s);
  rig.answer({0, 1}, Held{7});
  rig.advance(250ms);
  rig.answer(2, Free{});
  REQUIRE(rig.oldest_is<AcquireCommand>(2));
  rig.answer(2, Granted{8});
  CHECK_FALSE(rig.asked(2));
}

TEST_CASE("a late free that ends the lease is not healed") {
  Rig rig(3);
  const GrantId grant = rig.lease_beside_rival(Rig::renewed());
  rig.advance(10s);
  rig.answer(0, Held{7});
  rig.answer(2, Taken{});
  rig.advance(250ms);
  rig.answer(1, Free{});
  CHECK(rig.lost.contains(grant));
  CHECK_FALSE(rig.asked(1));
}

TEST_CASE("what is not renewed is not made longer by healing") {
  Rig rig(3);
  const GrantId grant = rig.lease_beside_rival(Rig::request());
  rig.enter(grant, 1ms);
  rig.answer({0, 1}, Held{7});
  rig.answer(2, Taken{});
  rig.advance(26s);
  rig.leave(grant);
  rig.answer({0, 1}, Held{7});
  rig.answer(2, Free{});
  REQUIRE(rig.oldest_is<AcquireCommand>(2));
  CHECK(rig.oldest<AcquireCommand>(2).lease < 4s);
  CHECK(rig.oldest<AcquireCommand>(2).lease > 3s);
  rig.answer(2, NoScript{});
  REQUIRE(rig.oldest_is<AcquireCommand>(2));
  CHECK(rig.oldest<AcquireCommand>(2).lease < 4s);
  CHECK(rig.oldest<AcquireCommand>(2).floor == 7);
  CHECK(rig.take(2).form == Form::source);
}

TEST_CASE("a heal without an answer is tried again, and released if any of it was sent") {
  for (const bool sent : {false, true}) {
    RenewedRig rig;
    for (int round = 0; round < 3; ++round) {
      rig.answer(rig.heal_of(2), sent ? broken : down);
      CHECK_FALSE(rig.asked(2));
    }
    rig.release(rig.grant);
    CHECK(rig.releases(2) == (sent ? 1 : 0));
  }
}

TEST_CASE("a free that was said before the healing does not undo it") {
  Crossing rig;
  rig.answer(rig.hold, Free{});
  rig.answer({0, 1}, Held{7});
  REQUIRE(rig.ended_with<ExtendSucceeded>(rig.extension));
  CHECK_FALSE(rig.asked(2));  // the heal is not sent twice
  rig.answer(rig.heal, Granted{8});
  CHECK_FALSE(rig.asked(2));
  rig.advance(10s);
  rig.answer(2, Held{8});
  rig.answer(0, Free{});  // nodes 1 and 2 keep it
  CHECK(rig.lost.empty());
}

TEST_CASE("what was said before the healing does not keep it from being released") {
  for (const Reply& word : {Reply{Taken{}}, Reply{ForcedOut{}}}) {
    for (const bool lost : {false, true}) {
      Crossing rig;
      if (lost) rig.advance(28s);
      CHECK(rig.lost.contains(rig.grant) == lost);
      rig.answer(rig.hold, word);
      rig.answer(rig.heal, Granted{8});
      rig.release(rig.grant);
      CHECK(rig.releases(2) == 1);
    }
  }
}

TEST_CASE("a held that was said before the healing does not count") {
  Crossing rig;
  rig.answer(rig.hold, Held{7});
  rig.answer(0, Free{});
  CHECK(rig.lost.contains(rig.grant));
}
