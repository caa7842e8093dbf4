// SPDX-License-Identifier: MIT
// An attempt under way is ended by its caller, its client or its deadline: every node that may have
// something is released, once, whatever the attempt was about to do.
#include "engine/rig.hpp"

using namespace redlock::engine::test;

namespace {

/// A deadline counts for the attempt under way, unlike the end of the waiting time.
AcquireRequest for_100_ms() {
  AcquireRequest what = Rig::waiting(100ms);
  what.deadline = Rig::start + 100ms;
  return what;
}

void end(Rig& rig, RequestId id, Errc why) {
  rig.advance(99ms);
  CHECK_FALSE(rig.ended(id));
  if (why != Errc::timed_out) rig.cancel(id, why);
  rig.advance(1ms);
  CHECK(rig.failure(id) == why);
}

constexpr Errc ends[] = {Errc::cancelled, Errc::closed, Errc::timed_out};

}  // namespace

TEST_CASE("an attempt that is ended releases every node, and late grants change nothing") {
  for (const Errc why : ends) {
    Rig rig(3);
    const auto id = rig.attempt({Granted{7}}, for_100_ms());
    end(rig, id, why);
    CHECK(rig.all_have_releases(1));
    rig.answer({1, 2}, Granted{7});  // the acquires, answered after all
    CHECK(rig.all_have_releases(1));
    rig.answer({0, 1, 2}, ReleasedHere{});
    CHECK(rig.all_answered());
  }
}

TEST_CASE("ending an attempt that has lost the vote releases no node twice") {
  for (const Errc why : ends) {
    Rig rig(5);
    // Out of reach for certain, but not known yet whether a quorum votes.
    const auto id = rig.attempt({down, down, Refused{9s}}, for_100_ms());
    CHECK(rig.releases(3) == 1);
    end(rig, id, why);
    for (const NodeIndex node : {0U, 1U, 2U}) CHECK(rig.releases(node) == 0);
    for (const NodeIndex node : {3U, 4U}) CHECK(rig.releases(node) == 1);
    rig.answer({3, 4}, Granted{7});
    rig.answer({3, 4}, ReleasedHere{});
    CHECK(rig.all_answered());
  }
}

TEST_CASE("ending an attempt that settles releases every node once") {
  for (const Errc why : ends) {
    Rig rig(3);
    const auto id = rig.attempt({Granted{2}, Granted{1}}, for_100_ms());
    REQUIRE(rig.oldest_is<HoldCommand>(1));
    end(rig, id, why);
    CHECK(rig.all_have_releases(1));
    rig.answer(1, Held{2});  // the settle message, too late
    CHECK(rig.failure(id) == why);
    CHECK(rig.all_have_releases(1));
  }
}
