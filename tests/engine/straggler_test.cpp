// SPDX-License-Identifier: MIT
// Stragglers: answers of an attempt that come after it was granted, and what was seen of other
// owners while it was voted on. They decide who is released, and who is healed later.
#include "engine/rig.hpp"

using namespace redlock::engine::test;

namespace {

/// Granted by nodes 0 and 1; node 2 has not answered.
AcquireSucceeded granted_without_node_2(Rig& rig) {
  const auto id = rig.acquire(Rig::renewed());
  rig.answer({0, 1}, Granted{7});
  return rig.result<AcquireSucceeded>(id);
}

/// Granted by nodes 0 and 2 with token 9; the settle message to node 1 is not
/// answered.
AcquireSucceeded granted_while_settling_node_1(Rig& rig) {
  const auto id = rig.acquire(Rig::renewed());
  rig.answer(0, Granted{9});
  rig.answer(1, Granted{3});
  rig.answer(2, Granted{9});
  REQUIRE(rig.oldest_is<HoldCommand>(1));
  return rig.result<AcquireSucceeded>(id);
}

/// The next renewal: this node says free, the others confirm. Whether it is
/// then healed.
bool healed_when_free(Rig& rig, NodeIndex free, std::initializer_list<NodeIndex> others) {
  rig.advance(10s);
  rig.answer(free, Free{});
  rig.answer(others, Held{9});
  CHECK(rig.lost.empty());
  return rig.oldest_is<AcquireCommand>(free);
}

}  // namespace

TEST_CASE("a straggler that has nothing is not released, and is healed when it says free") {
  for (const Reply& nothing : {Reply{NoScript{}}, Reply{down}}) {
    Rig released(3);
    const auto lease = granted_without_node_2(released);
    released.answer(2, nothing);
    CHECK_FALSE(released.asked(2));
    released.release(lease.grant);
    CHECK(released.releases(2) == 0);

    Rig held(3);
    granted_without_node_2(held);
    held.answer(2, nothing);
    CHECK(healed_when_free(held, 2, {0, 1}));
  }
}

TEST_CASE("a straggler that may have executed the acquire is released") {
  Rig rig(3);
  const auto lease = granted_without_node_2(rig);
  rig.answer(2, broken);
  rig.release(lease.grant);
  CHECK(rig.releases(2) == 1);
}

TEST_CASE("a straggler that refused is not released, and is healed when it says free") {
  Rig released(3);
  const auto lease = granted_without_node_2(released);
  released.answer(2, Refused{9s});
  released.release(lease.grant);
  CHECK(released.releases(2) == 0);

  Rig held(3);
  granted_without_node_2(held);
  held.answer(2, Refused{9s});
  CHECK(healed_when_free(held, 2, {0, 1}));
}

TEST_CASE("a settle message answered too late: taken is not released, and is healed when free") {
  Rig released(3);
  const auto lease = granted_while_settling_node_1(released);
  released.answer(1, Taken{});
  released.release(lease.grant);
  CHECK(released.releases(1) == 0);

  Rig held(3);
  granted_while_settling_node_1(held);
  held.answer(1, Taken{});
  CHECK(healed_when_free(held, 1, {0, 2}));
}

TEST_CASE("a settle message answered too late: free is not released, and is healed") {
  Rig released(3);
  const auto lease = granted_while_settling_node_1(released);
  released.answer(1, Free{});
  released.release(lease.grant);
  CHECK(released.releases(1) == 0);

  Rig held(3);
  granted_while_settling_node_1(held);
  held.answer(1, Free{});
  CHECK(healed_when_free(held, 1, {0, 2}));
}

TEST_CASE("a settle message that was not executed leaves the grant that it followed") {
  for (const Reply& unheard : {Reply{NoScript{}}, Reply{down}, Reply{broken}}) {
    Rig rig(3);
    const auto lease = granted_while_settling_node_1(rig);
    rig.answer(1, unheard);
    CHECK_FALSE(rig.asked(1));
    rig.release(lease.grant);
    CHECK(rig.releases(1) == 1);
  }
}

TEST_CASE("a straggler that grants where the lock was found free since does not count") {
  Rig rig(3);
  const auto lease = granted_without_node_2(rig);
  rig.advance(10s);
  const Send straggler = rig.take(2);
  rig.answer(2, Free{});
  rig.answer(straggler, Granted{7});
  rig.answer(0, Free{});
  CHECK(rig.lost.contains(lease.grant));
}

TEST_CASE("a node that refused before the win is healed when it says free") {
  Rig rig(3);
  const auto id = rig.acquire(Rig::renewed());
  rig.answer(2, Refused{9s});
  rig.answer({0, 1}, Granted{9});
  REQUIRE(rig.ended_with<AcquireSucceeded>(id));
  CHECK(healed_when_free(rig, 2, {0, 1}));
}

TEST_CASE("a node that was taken while settling is healed when it says free") {
  Rig rig(5);
  const auto id = rig.acquire(Rig::renewed());
  rig.answer(0, Granted{9});
  rig.answer({1, 2}, Granted{3});
  rig.answer(1, Taken{});
  rig.answer(2, Held{9});
  rig.answer(3, Granted{9});
  REQUIRE(rig.ended_with<AcquireSucceeded>(id));
  rig.answer(4, Granted{9});
  CHECK(healed_when_free(rig, 1, {0, 2, 3, 4}));
}
