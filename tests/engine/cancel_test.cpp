// SPDX-License-Identifier: MIT
// The caller ends its call while an attempt is under way: every node that may have something is
// released, once, whatever the attempt was about to do.
#include "engine/rig.hpp"

using namespace redlock::engine::test;

namespace {

/// Out of reach for certain, but not known yet whether a quorum votes.
RequestId failing(Rig& rig) {
  const auto id = rig.acquire();
  rig.answer({0, 1}, down);
  rig.answer(2, Refused{9s});
  REQUIRE_FALSE(rig.ended(id));
  return id;
}

}  // namespace

TEST_CASE("cancelling an attempt that has lost the vote releases no node twice") {
  for (const Errc why : {Errc::cancelled, Errc::closed}) {
    Rig rig(5);
    const auto id = failing(rig);
    CHECK(rig.releases(3) == 1);
    rig.cancel(id, why);
    CHECK(rig.failure(id) == why);
    for (const NodeIndex node : {0U, 1U, 2U}) CHECK(rig.releases(node) == 0);
    for (const NodeIndex node : {3U, 4U}) CHECK(rig.releases(node) == 1);
    rig.answer({3, 4}, Granted{7});
    rig.answer({3, 4}, ReleasedHere{});
    for (const NodeIndex node : {3U, 4U}) CHECK_FALSE(rig.asked(node));
  }
}

TEST_CASE("cancelling an attempt that settles releases every node once") {
  for (const Errc why : {Errc::cancelled, Errc::closed}) {
    Rig rig(3);
    const auto id = rig.acquire();
    rig.answer(0, Granted{2});
    rig.answer(1, Granted{1});
    REQUIRE(rig.oldest_is<HoldCommand>(1));
    rig.cancel(id, why);
    CHECK(rig.failure(id) == why);
    for (NodeIndex node = 0; node < 3; ++node) CHECK(rig.releases(node) == 1);
    rig.answer(1, Held{2});  // the settle message, too late
    CHECK(rig.failure(id) == why);
    for (NodeIndex node = 0; node < 3; ++node) CHECK(rig.releases(node) == 1);
  }
}

TEST_CASE("a deadline that ends an attempt which has lost the vote releases no node twice") {
  Rig rig(5);
  auto what = Rig::request();
  what.deadline = rig.now + 100ms;
  const auto id = rig.acquire(what);
  rig.answer({0, 1}, down);
  rig.answer(2, Refused{9s});
  REQUIRE(rig.releases(3) == 1);
  rig.advance(100ms);
  CHECK(rig.failure(id) == Errc::timed_out);
  CHECK(rig.releases(3) == 1);
}
