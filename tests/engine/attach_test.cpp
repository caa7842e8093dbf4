// SPDX-License-Identifier: MIT
// Taking up a grant that was made elsewhere: cancelled while nobody has confirmed it yet, and
// renewed afterwards like any other. Whether it is taken up at all is in hold_test.cpp.
#include <doctest/doctest.h>

#include "engine/rig.hpp"

using namespace redlock;
using namespace redlock::engine;
using namespace redlock::engine::test;

namespace {

AttachRequest elsewhere(bool renew) {
  AttachRequest what;
  what.owner = {{5, 6}};
  what.token = 7;
  what.lease = 30s;
  what.renew = renew;
  return what;
}

}  // namespace

TEST_CASE("a taking-up that was cancelled is over: late answers change nothing") {
  for (const bool renew : {false, true}) {
    Rig rig(3);
    const auto id = rig.attach(elsewhere(renew));
    rig.cancel(id);
    CHECK(rig.failure(id) == Errc::cancelled);
    rig.cancel(id, Errc::closed);  // ended already
    rig.answer({0, 1, 2}, Held{7});
    rig.advance(60s);
    for (NodeIndex node = 0; node < 3; ++node) CHECK_FALSE(rig.asked(node));
    CHECK(rig.lost.empty());
    CHECK(rig.valid_until.empty());
    CHECK(rig.failure(id) == Errc::cancelled);
    CHECK(rig.engine.deadline() == never);
  }
}

TEST_CASE("a grant that was taken up is renewed at a third of the lease, if asked") {
  for (const bool renew : {false, true}) {
    Rig rig(3);
    const auto id = rig.attach(elsewhere(renew));
    rig.answer({0, 1, 2}, Held{7});
    REQUIRE(rig.ended_with<AcquireSucceeded>(id));
    rig.advance(10s - 1ns);
    CHECK_FALSE(rig.asked(0));
    rig.advance(1ns);
    CHECK(rig.oldest_is<HoldCommand>(0) == renew);
  }
}
