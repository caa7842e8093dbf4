// SPDX-License-Identifier: MIT
// NOSCRIPT: a message is sent again in full only while somebody still wants it. One that is
// repeated behind a release, or for a lease that is over, would stay on the node for a whole lease.
#include "engine/rig.hpp"

using namespace redlock::engine::test;

namespace {

/// A lease on three nodes whose node 2 forgot it; the heal is on its way.
Send heal_of_node_2(Rig& rig) {
  rig.advance(10s);
  rig.answer(2, Free{});
  rig.answer({0, 1}, Held{7});
  REQUIRE(rig.oldest_is<AcquireCommand>(2));
  return rig.take(2);
}

}  // namespace

TEST_CASE("an acquire whose script is unknown is not sent again once the vote is lost") {
  Rig rig(5);
  const auto id = rig.acquire();
  const Send straggler = rig.take(3);
  rig.answer({0, 1}, down);
  rig.answer(2, Refused{9s});
  CHECK_FALSE(rig.ended(id));  // lost, but nobody knows yet whether a quorum votes
  rig.answer(straggler, NoScript{});
  CHECK(rig.asked_count(3) == 1);
  CHECK(rig.releases(3) == 1);
  CHECK(rig.failure(id) == Errc::no_quorum);
  rig.answer(3, broken);
  rig.node_up(3);
  CHECK_FALSE(rig.asked(3));  // it has nothing, so nothing is owed
}

TEST_CASE("a hold whose script is unknown is sent in full, and confirms like any other") {
  Rig rig(3);
  const auto lease = rig.lease_on_all(Rig::renewed());
  rig.advance(10s);
  rig.answer(0, NoScript{});
  REQUIRE(rig.oldest_is<HoldCommand>(0));
  const Send again = rig.take(0);
  CHECK(again.form == Form::source);
  CHECK(std::get<HoldCommand>(again.command).token == 7);
  rig.answer(again, Held{7});
  rig.answer(1, Held{7});
  CHECK(rig.valid_until[lease.grant] == rig.start + 10s + 30s - 302ms);
}

TEST_CASE("a hold whose script is unknown is not sent again after release began") {
  Rig rig(3);
  const auto lease = rig.lease_on_all(Rig::renewed());
  rig.advance(10s);
  const Send hold = rig.take(0);
  rig.release(lease.grant);
  rig.answer(hold, NoScript{});
  CHECK(rig.asked_count(0) == 1);
  CHECK(rig.releases(0) == 1);
}

TEST_CASE("a hold whose script is unknown is not sent again after loss") {
  Rig rig(3);
  const auto lease = rig.lease_on_all(Rig::renewed());
  rig.advance(10s);
  const Send hold = rig.take(0);
  rig.answer({1, 2}, Taken{});
  REQUIRE(rig.lost.contains(lease.grant));
  rig.answer(hold, NoScript{});
  CHECK_FALSE(rig.asked(0));
}

TEST_CASE("a hold whose script is unknown is not sent again after its round timed out") {
  Rig rig(3);
  const auto lease = rig.lease_on_all();
  const auto id = rig.extend(lease.grant, 60s);
  const Send hold = rig.take(0);
  rig.advance(250ms);
  REQUIRE(rig.failure(id) == Errc::no_quorum);
  rig.answer(hold, NoScript{});
  CHECK_FALSE(rig.asked(0));
}

TEST_CASE("a heal whose script is unknown is sent in full, and heals") {
  Rig rig(3);
  const auto lease = rig.lease_on_all(Rig::renewed());
  rig.answer(heal_of_node_2(rig), NoScript{});
  REQUIRE(rig.oldest_is<AcquireCommand>(2));
  const Send again = rig.take(2);
  CHECK(again.form == Form::source);
  CHECK(std::get<AcquireCommand>(again.command).floor == 7);
  rig.answer(again, Granted{8});
  rig.advance(10s);
  rig.answer(2, Held{8});
  rig.answer(0, Free{});  // nodes 1 and 2 keep it
  CHECK_FALSE(rig.lost.contains(lease.grant));
}

TEST_CASE("a heal whose script is unknown is not sent again after release began") {
  Rig rig(3);
  const auto lease = rig.lease_on_all(Rig::renewed());
  const Send heal = heal_of_node_2(rig);
  rig.release(lease.grant);
  rig.answer(heal, NoScript{});
  CHECK(rig.asked_count(2) == 1);
  CHECK(rig.releases(2) == 1);
}

TEST_CASE("a heal whose script is unknown is not sent again after loss") {
  Rig rig(3);
  const auto lease = rig.lease_on_all(Rig::renewed());
  const Send heal = heal_of_node_2(rig);
  const auto id = rig.extend(lease.grant, 30s);
  rig.take(2);
  rig.answer(0, Taken{});
  REQUIRE(rig.failure(id) == Errc::lost);
  rig.answer(heal, NoScript{});
  CHECK_FALSE(rig.asked(2));
}

TEST_CASE("NOSCRIPT to an acquire and to the release behind it says that the node has nothing") {
  Rig rig(3);
  const auto id = rig.acquire();
  rig.answer({0, 1}, Granted{7});
  const auto lease = rig.result<AcquireSucceeded>(id);
  const auto release = rig.release(lease.grant);
  rig.answer(2, NoScript{});  // the acquire, which nobody wants any more
  CHECK(rig.asked_count(2) == 1);
  rig.answer(2, NoScript{});  // the release, which need not be repeated
  CHECK_FALSE(rig.asked(2));
  CHECK(rig.engine.releases_under_way() == 2);
  rig.answer(0, ReleasedHere{});
  CHECK_FALSE(rig.ended(release));
  rig.answer(1, NotHeld{});
  REQUIRE(rig.ended(release));  // without waiting for the node timeout
  CHECK(rig.result<ReleaseDone>(release).outcome == Released::already_gone);
}
