// SPDX-License-Identifier: MIT
// Healing: giving the lock back to a node that forgot it. What its answer means, when it is tried
// again, and what is left to release. When healing is allowed at all is in hold_test.cpp.
#include "engine/rig.hpp"

using namespace redlock::engine::test;

namespace {

/// The next renewal, in which node 2 says free and the others confirm.
void round_without_node_2(Rig& rig) {
  rig.advance(10s);
  rig.answer(2, Free{});
  rig.answer({0, 1}, Held{7});
}

}  // namespace

TEST_CASE("a node that refused its healing is healed when it is free again") {
  Rig rig(3);
  rig.lease_on_all(Rig::renewed());
  round_without_node_2(rig);
  REQUIRE(rig.oldest_is<AcquireCommand>(2));
  rig.answer(2, Refused{9s});
  rig.advance(10s);
  rig.answer(2, Taken{});
  rig.answer({0, 1}, Held{7});
  CHECK_FALSE(rig.asked(2));
  round_without_node_2(rig);
  CHECK(rig.oldest_is<AcquireCommand>(2));
}

TEST_CASE("a node that answers after the node timeout is healed as well") {
  Rig rig(3);
  rig.lease_on_all(Rig::renewed());
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
  CHECK(rig.oldest<AcquireCommand>(2).lease < 4s);
}

TEST_CASE("a heal that could not be sent is tried again when the node says free again") {
  Rig rig(3);
  const auto lease = rig.lease_on_all(Rig::renewed());
  for (int round = 0; round < 3; ++round) {
    round_without_node_2(rig);
    REQUIRE(rig.oldest_is<AcquireCommand>(2));
    rig.answer(2, down);
    CHECK_FALSE(rig.asked(2));
  }
  rig.release(lease.grant);
  CHECK(rig.releases(2) == 0);  // not a byte of any heal was sent
}

TEST_CASE("a heal whose answer was lost is tried again, and its node is released") {
  Rig rig(3);
  const auto lease = rig.lease_on_all(Rig::renewed());
  for (int round = 0; round < 2; ++round) {
    round_without_node_2(rig);
    REQUIRE(rig.oldest_is<AcquireCommand>(2));
    rig.answer(2, broken);
  }
  rig.release(lease.grant);
  CHECK(rig.releases(2) == 1);
}

TEST_CASE("a free that was said before the healing does not undo it") {
  Rig rig(3);
  const auto lease = rig.lease_on_all(Rig::renewed());
  rig.advance(10s);
  const auto extend = rig.extend(lease.grant, 30s);  // behind the renewal, before the heal
  rig.answer(2, Free{});
  rig.answer({0, 1}, Held{7});
  const Send in_flight = rig.take(2);
  const Send heal = rig.take(2);
  REQUIRE(std::holds_alternative<AcquireCommand>(heal.command));
  rig.answer(in_flight, Free{});
  rig.answer({0, 1}, Held{7});
  REQUIRE(rig.ended_with<ExtendSucceeded>(extend));
  CHECK_FALSE(rig.asked(2));  // the heal is not sent twice
  rig.answer(heal, Granted{8});
  CHECK_FALSE(rig.asked(2));
  rig.advance(10s);
  rig.answer(2, Held{8});
  rig.answer(0, Free{});  // nodes 1 and 2 keep it
  CHECK_FALSE(rig.lost.contains(lease.grant));
}

TEST_CASE("what was said before the healing does not keep it from being released") {
  for (const Reply& word : {Reply{Taken{}}, Reply{ForcedOut{}}}) {
    for (const bool lost : {false, true}) {
      Rig rig(3);
      const auto lease = rig.lease_on_all(Rig::renewed());
      rig.advance(10s);
      rig.answer(2, Free{});
      rig.extend(lease.grant, 30s);  // behind the renewal, before the heal
      rig.answer({0, 1}, Held{7});
      const Send second = rig.take(2);
      const Send heal = rig.take(2);
      REQUIRE(std::holds_alternative<AcquireCommand>(heal.command));
      if (lost) rig.advance(28s);
      CHECK(rig.lost.contains(lease.grant) == lost);
      rig.answer(second, word);
      rig.answer(heal, Granted{8});
      rig.release(lease.grant);
      CHECK(rig.releases(2) == 1);
    }
  }
}

TEST_CASE("a held that was said before the healing does not count") {
  Rig rig(3);
  const auto lease = rig.lease_on_all(Rig::renewed());
  rig.advance(10s);
  rig.extend(lease.grant, 30s);
  rig.answer(2, Free{});
  rig.answer({0, 1}, Held{7});
  const Send in_flight = rig.take(2);
  rig.answer(in_flight, Held{7});
  rig.answer(0, Free{});
  CHECK(rig.lost.contains(lease.grant));
}

TEST_CASE("a node that is being healed is released") {
  Rig rig(3);
  const auto lease = rig.lease_on_all(Rig::renewed());
  round_without_node_2(rig);
  rig.release(lease.grant);
  CHECK(rig.releases(2) == 1);
  rig.answer(2, Granted{8});  // the heal, executed before the release behind it
  rig.answer(2, ReleasedHere{});
  CHECK_FALSE(rig.asked(2));
}
