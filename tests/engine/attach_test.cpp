// SPDX-License-Identifier: MIT
// Taking up a grant that was made elsewhere: cancelled while nobody has confirmed it yet, and
// renewed afterwards like any other. Whether it is taken up at all is in hold_test.cpp.
#include "engine/rig.hpp"

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
    CHECK(rig.all_answered());
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

TEST_CASE("taking up a grant raises no fence, whatever its token says") {
  Rig rig(3);
  const auto id = rig.attach(elsewhere(true));
  for (const NodeIndex node : {0U, 1U, 2U}) CHECK(rig.oldest<HoldCommand>(node).token == 0);
  rig.answer(0, NoScript{});
  const Send again = rig.take(0);
  CHECK(std::get<HoldCommand>(again.command).token == 0);
  rig.answer(again, Held{7});
  rig.answer(1, Held{9});
  CHECK(rig.token_of(id) == 7);
  rig.advance(10s);
  CHECK(rig.oldest<HoldCommand>(0).token == 7);  // which a quorum has
}

TEST_CASE("a node whose fence is below the token does not confirm a grant that is taken up") {
  Rig rig(3);
  const auto id = rig.attach(elsewhere(false));
  rig.answer(0, Held{6});
  rig.answer(1, Held{7});
  CHECK_FALSE(rig.ended(id));
  rig.answer(2, down);
  CHECK(rig.failure(id) == Errc::no_quorum);
  CHECK(rig.ballot(id, 0).detail == "its fence (6) is below the token");
  CHECK(rig.releases(0) == 0);
}

TEST_CASE("a token that no quorum can have is told as wrong") {
  Rig rig(3);
  auto what = elsewhere(false);
  what.token = 8;
  const auto id = rig.attach(what);
  rig.answer({0, 1}, Held{7});
  REQUIRE(rig.failure(id) == Errc::invalid_argument);
  CHECK(rig.result<Failed>(id).detail == "the token 8 was never given for it");
  rig.answer(2, Held{8});
  rig.advance(60s);
  CHECK(rig.all_answered());
  CHECK(rig.lost.empty());
}
