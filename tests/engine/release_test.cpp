// SPDX-License-Identifier: MIT
// Releasing: what the caller is told, and what is owed to nodes that could not be told.
#include "engine/rig.hpp"

using namespace redlock::engine::test;

TEST_CASE("a quorum of deletions is released, without waiting for hung nodes") {
  Rig rig(5);
  const auto lease = rig.lease_on_all();
  const auto id = rig.release(lease.grant);
  rig.answer({0, 1}, ReleasedHere{});
  CHECK_FALSE(rig.ended(id));
  rig.answer(2, ReleasedHere{});
  CHECK(rig.result<ReleaseDone>(id).outcome == Released::released);
}

TEST_CASE("a lock that a quorum no longer has was already gone") {
  Rig rig(3);
  const auto lease = rig.lease_on_all();
  const auto id = rig.release(lease.grant);
  rig.answer(0, ReleasedHere{});
  rig.answer({1, 2}, NotHeld{});
  CHECK(rig.result<ReleaseDone>(id).outcome == Released::already_gone);
}

TEST_CASE("a release that too few nodes answer is unknown at the node timeout") {
  Rig rig(3);
  const auto lease = rig.lease_on_all();
  const auto id = rig.release(lease.grant);
  rig.answer(0, ReleasedHere{});
  rig.answer(1, broken);
  rig.advance(249ms);
  CHECK_FALSE(rig.ended(id));
  rig.advance(1ms);
  CHECK(rig.result<ReleaseDone>(id).outcome == Released::unknown);
}

TEST_CASE("a release that a broken connection swallowed is repeated on the next, for one lease") {
  Rig rig(3);
  const auto lease = rig.lease_on_all();
  rig.release(lease.grant);
  rig.answer({0, 1}, ReleasedHere{});
  rig.answer(2, broken);
  rig.advance(1s);
  rig.node_up(2);
  REQUIRE(rig.releases(2) == 1);
  rig.answer(2, broken);
  rig.advance(30s);
  rig.node_up(2);
  CHECK_FALSE(rig.asked(2));
}

TEST_CASE("a release that was confirmed is not repeated") {
  Rig rig(3);
  const auto lease = rig.lease_on_all();
  rig.release(lease.grant);
  rig.answer({0, 1, 2}, ReleasedHere{});
  rig.node_up(2);
  CHECK_FALSE(rig.asked(2));
  CHECK(rig.engine.releases_under_way() == 0);
}

TEST_CASE("a failed attempt whose connection broke is released on the next connection") {
  Rig rig(3);
  const auto id = rig.acquire();
  rig.answer(0, broken);
  rig.answer({1, 2}, Refused{9s});
  CHECK(rig.failure(id) == Errc::contended);
  rig.answer(0, down);  // the release could not be sent
  rig.node_up(0);
  CHECK(rig.releases(0) == 1);
}

TEST_CASE("an acquire that was never sent owes no release") {
  Rig rig(3);
  rig.acquire();
  const Send straggler = rig.take(0);
  rig.answer({1, 2}, Refused{9s});
  REQUIRE(rig.releases(0) == 1);
  rig.answer(straggler, down);
  rig.answer(0, down);
  rig.node_up(0);
  CHECK_FALSE(rig.asked(0));
}

TEST_CASE("a node that answered a release with an error is asked again") {
  Rig rig(3);
  const auto lease = rig.lease_on_all();
  rig.release(lease.grant);
  rig.answer(0, Unavailable{Cause::busy, Delivery::refused, "BUSY"});
  CHECK_FALSE(rig.asked(0));
  rig.advance(500ms);
  REQUIRE(rig.releases(0) == 1);
  rig.answer(0, ReleasedHere{});
  rig.advance(60s);
  CHECK_FALSE(rig.asked(0));
}

TEST_CASE("a release whose script is unknown is sent in full") {
  Rig rig(1);
  const auto lease = rig.lease_on_all();
  const auto id = rig.release(lease.grant);
  rig.answer(0, NoScript{});
  const Send again = rig.take(0);
  CHECK(again.form == Form::source);
  CHECK_FALSE(rig.ended(id));
  rig.answer(again, ReleasedHere{});
  CHECK(rig.result<ReleaseDone>(id).outcome == Released::released);
}

TEST_CASE("releasing twice finds it gone, and sends nothing") {
  Rig rig(1);
  const auto lease = rig.lease_on_all();
  rig.release(lease.grant);
  rig.answer(0, ReleasedHere{});
  const auto again = rig.release(lease.grant);
  CHECK(rig.result<ReleaseDone>(again).outcome == Released::already_gone);
  CHECK_FALSE(rig.asked(0));
}

TEST_CASE("a caller that extends while another releases is told so") {
  Rig rig(3);
  const auto lease = rig.lease_on_all();
  const auto extend = rig.extend(lease.grant, 30s);
  rig.release(lease.grant);
  CHECK(rig.failure(extend) == Errc::lost);
}

TEST_CASE("somebody's grant is released by name and owner on every node") {
  Rig rig(3);
  const auto id = rig.release_elsewhere(OwnerId{{1, 2}});
  for (NodeIndex node = 0; node < 3; ++node) {
    CHECK(rig.oldest<ForceCommand>(node).owner == OwnerId{{1, 2}});
  }
  rig.answer({0, 1}, ReleasedHere{});
  CHECK(rig.result<ReleaseDone>(id).outcome == Released::released);
}

TEST_CASE("what was granted elsewhere is released for good: what is late of it finds no way back") {
  // The process that detached it may have a heal, or an acquire, on its way to a node.
  Rig rig(3);
  const auto id = rig.attach({{5, 6}}, 7, 1s);
  rig.answer({0, 1}, Held{7});
  rig.answer(2, Taken{});
  rig.release(rig.result<AcquireSucceeded>(id).grant);
  for (NodeIndex node = 0; node < 3; ++node) {
    REQUIRE(rig.oldest_is<ForceCommand>(node));
    CHECK(rig.oldest<ForceCommand>(node).owner == OwnerId{{5, 6}});
    CHECK(rig.oldest<ForceCommand>(node).keep_out == 60s);  // the longest lease
  }
  rig.answer({0, 1}, ReleasedHere{});
  rig.answer(2, broken);
  rig.advance(59s);  // its lease elsewhere may be longer than the one here
  rig.node_up(2);
  REQUIRE(rig.oldest_is<ForceCommand>(2));
  rig.answer(2, NotHeld{});
  const auto own = rig.lease_on_all();
  rig.release(own.grant);
  CHECK(rig.oldest_is<ReleaseCommand>(0));
}

TEST_CASE("a detached lease is neither renewed nor released") {
  Rig rig(3);
  const auto lease = rig.lease_on_all(Rig::renewed());
  rig.detach(lease.grant);
  rig.advance(60s);
  CHECK_FALSE(rig.asked(0));
  CHECK(rig.lost.empty());
}

TEST_CASE("a node that was never sent the acquire counts as gone and is not asked") {
  Rig rig(3);
  const auto granted = rig.acquire();
  rig.answer({0, 1}, Granted{7});
  rig.answer(2, down);
  const auto id = rig.release(rig.result<AcquireSucceeded>(granted).grant);
  CHECK_FALSE(rig.asked(2));
  CHECK_FALSE(rig.ended(id));
  rig.answer(0, NotHeld{});
  CHECK(rig.result<ReleaseDone>(id).outcome == Released::already_gone);
}

TEST_CASE("a release that nobody waits for is sent and tells nobody") {
  Rig rig(3);
  const auto lease = rig.lease_on_all();
  rig.drop(lease.grant);
  for (NodeIndex node = 0; node < 3; ++node) CHECK(rig.releases(node) == 1);
  rig.answer({0, 1, 2}, ReleasedHere{});
  rig.advance(1s);
  rig.drop(lease.grant);  // gone already
  CHECK_FALSE(rig.ended(0));
}
