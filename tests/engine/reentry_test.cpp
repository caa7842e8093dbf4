// SPDX-License-Identifier: MIT
// Re-entry: the count rises only by a quorum, falls at once, and is told to every node by every
// hold; the lease is the same one throughout.
#include "engine/rig.hpp"

using namespace redlock::engine::test;

namespace {

std::uint32_t asked_count(const Rig& rig, NodeIndex node) {
  return rig.oldest<HoldCommand>(node).count;
}

/// Answers everything that waits at any node.
void confirm_all(Rig& rig, std::uint32_t nodes = 3) {
  for (NodeIndex node = 0; node < nodes; ++node) {
    while (rig.asked(node)) rig.answer(node, Held{7});
  }
}

/// A lease that is held twice, every message answered.
AcquireSucceeded held_twice(Rig& rig, AcquireRequest what = {}) {
  const auto lease = rig.lease_on_all(std::move(what));
  const auto id = rig.enter(lease.grant);
  confirm_all(rig);
  REQUIRE(rig.result<EnterSucceeded>(id).count == 2);
  return lease;
}

}  // namespace

TEST_CASE("an entry is confirmed by a quorum of holds with count + 1 and the same token") {
  Rig rig(3);
  const auto lease = rig.lease_on_all();
  rig.advance(5s);
  const auto id = rig.enter(lease.grant, 30s);
  for (NodeIndex node = 0; node < 3; ++node) {
    CHECK(asked_count(rig, node) == 2);
    CHECK(rig.oldest<HoldCommand>(node).token == 7);
    CHECK(rig.oldest<HoldCommand>(node).owner == lease.owner);
  }
  rig.answer(0, Held{7});
  CHECK_FALSE(rig.ended(id));
  rig.answer(1, Held{7});
  CHECK(rig.result<EnterSucceeded>(id).count == 2);
  CHECK(rig.result<EnterSucceeded>(id).valid_until == rig.start + 5s + 30s - 302ms);
}

TEST_CASE("an inner shorter lease leaves the outer one as it was") {
  Rig rig(3);
  const auto lease = rig.lease_on_all();
  const auto id = rig.enter(lease.grant, 1s);
  confirm_all(rig);
  CHECK(rig.result<EnterSucceeded>(id).valid_until == lease.valid_until);
  CHECK(rig.valid_until.empty());
  rig.leave(lease.grant);
  confirm_all(rig);
  CHECK(rig.valid_until.empty());
  rig.advance(lease.valid_until - 3s - rig.now - 1ns);
  CHECK(rig.lost.empty());
}

TEST_CASE("a failed entry leaves the count, releases nothing and puts the nodes right") {
  Rig rig(3);
  const auto lease = rig.lease_on_all(Rig::renewed());
  const auto id = rig.enter(lease.grant);
  rig.answer(0, Held{7});
  rig.answer({1, 2}, down);
  CHECK(rig.failure(id) == Errc::no_quorum);
  for (NodeIndex node = 0; node < 3; ++node) {
    CHECK(rig.releases(node) == 0);
    CHECK(asked_count(rig, node) == 1);
  }
  confirm_all(rig);
  CHECK(rig.valid_until.empty());
  CHECK(rig.lost.empty());
  CHECK(rig.renewals.empty());
  rig.advance(10s);
  CHECK(asked_count(rig, 0) == 1);
  confirm_all(rig);
  const auto again = rig.enter(lease.grant);
  confirm_all(rig);
  CHECK(rig.result<EnterSucceeded>(again).count == 2);
}

TEST_CASE("a node that confirms an entry too late is put right behind it") {
  Rig rig(3);
  const auto lease = rig.lease_on_all();
  const auto id = rig.enter(lease.grant);
  rig.answer(0, Held{7});
  rig.advance(250ms);
  CHECK(rig.failure(id) == Errc::no_quorum);
  rig.answer({1, 2}, Held{7});
  CHECK(asked_count(rig, 1) == 1);
  confirm_all(rig);
  const auto again = rig.enter(lease.grant);
  confirm_all(rig);
  CHECK(rig.result<EnterSucceeded>(again).count == 2);
}

TEST_CASE("renewals carry the count, and one during an entry carries the entry's") {
  Rig rig(3);
  const auto lease = held_twice(rig, Rig::renewed());
  rig.advance(10s);
  CHECK(asked_count(rig, 2) == 2);
  confirm_all(rig);
  rig.advance(10s - 1ms);
  rig.enter(lease.grant);
  rig.advance(1ms);
  for (const std::uint32_t count : {3U, 3U}) {
    CHECK(asked_count(rig, 0) == count);
    rig.answer(0, Held{7});
  }
  CHECK_FALSE(rig.asked(0));
}

TEST_CASE("leaving tells every node the lower count at once, and lengthens nothing") {
  Rig rig(3);
  const auto lease = held_twice(rig);
  rig.advance(1s);
  rig.leave(lease.grant);
  for (NodeIndex node = 0; node < 3; ++node) {
    CHECK(asked_count(rig, node) == 1);
    CHECK(rig.oldest<HoldCommand>(node).lease <= lease.valid_until - rig.now);
    CHECK(rig.releases(node) == 0);
  }
  confirm_all(rig);
  CHECK(rig.valid_until.empty());
  CHECK(rig.renewals.empty());
  rig.advance(60s);
  CHECK(rig.lost.at(lease.grant) == LossReason::expired);
}

TEST_CASE("the last level is not left but released") {
  Rig rig(3);
  const auto lease = rig.lease_on_all();
  rig.leave(lease.grant);
  CHECK_FALSE(rig.asked(0));
  rig.leave(lease.grant + 1);  // which nobody holds
  const auto id = rig.release(lease.grant);
  rig.answer({0, 1}, ReleasedHere{});
  CHECK(rig.result<ReleaseDone>(id).outcome == Released::released);
}

TEST_CASE("entering a lost lease fails with lost, and so does one that is lost meanwhile") {
  Rig rig(3);
  const auto lease = rig.lease_on_all();
  const auto meanwhile = rig.enter(lease.grant);
  rig.answer(0, Taken{});
  rig.answer(1, Free{});
  CHECK(rig.failure(meanwhile) == Errc::lost);
  REQUIRE(rig.lost.contains(lease.grant));
  const auto after = rig.enter(lease.grant);
  CHECK(rig.failure(after) == Errc::lost);
  while (rig.asked(2)) rig.take(2);
  rig.leave(lease.grant);
  CHECK_FALSE(rig.asked(2));
  rig.drop(lease.grant);
  CHECK(rig.failure(rig.enter(lease.grant)) == Errc::lost);
}

TEST_CASE("a paused owner cannot enter a lease that ended meanwhile") {
  Rig rig(3);
  const auto lease = rig.lease_on_all(Rig::renewed());
  rig.pause(40s);
  CHECK(rig.failure(rig.enter(lease.grant)) == Errc::lost);
  CHECK(rig.lost.contains(lease.grant));
}

TEST_CASE("two entries at once make two levels, and only those that were confirmed") {
  Rig rig(3);
  const auto lease = rig.lease_on_all();
  const auto first = rig.enter(lease.grant);
  const auto second = rig.enter(lease.grant);
  CHECK(asked_count(rig, 0) == 2);
  for (NodeIndex node = 0; node < 3; ++node) rig.answer(node, node == 0 ? Reply{Held{7}} : down);
  CHECK(rig.failure(first) == Errc::no_quorum);
  CHECK(asked_count(rig, 0) == 3);
  rig.answer({0, 1}, Held{7});
  CHECK(rig.result<EnterSucceeded>(second).count == 2);
  rig.answer(2, Held{7});
  for (NodeIndex node = 0; node < 3; ++node) CHECK(asked_count(rig, node) == 2);
}

TEST_CASE("a level left during an entry is not given back by it") {
  Rig rig(3);
  const auto lease = held_twice(rig);
  const auto id = rig.enter(lease.grant);
  rig.leave(lease.grant);
  const Send entry = rig.take(0);
  CHECK(std::get<HoldCommand>(entry.command).count == 3);
  CHECK(asked_count(rig, 0) == 2);
  rig.answer(entry, Held{7});
  rig.answer(1, Held{7});
  CHECK(rig.result<EnterSucceeded>(id).count == 2);
}

TEST_CASE("a hold that is sent again after NOSCRIPT carries the count of its own time") {
  Rig rig(3);
  const auto lease = held_twice(rig);
  rig.enter(lease.grant);
  rig.leave(lease.grant);
  rig.leave(lease.grant);  // only the entry's level is left, if it comes true
  const Send entry = rig.take(0);
  rig.answer(0, Held{7});  // another client loaded the script meanwhile
  rig.answer(entry, NoScript{});
  const Send again = rig.take(0);
  CHECK(again.form == Form::source);
  CHECK(std::get<HoldCommand>(again.command).count == 2);
}

TEST_CASE("an entry under way ends when the lease is released") {
  Rig rig(3);
  const auto lease = rig.lease_on_all();
  const auto id = rig.enter(lease.grant);
  rig.drop(lease.grant);
  CHECK(rig.failure(id) == Errc::lost);
  rig.answer({0, 1}, Held{7});
}

TEST_CASE("an inner entry may ask for renewal, which the outer explicit lease had not") {
  Rig rig(3);
  const auto lease = rig.lease_on_all(Rig::request(3s));
  rig.enter(lease.grant, 30s, true);
  confirm_all(rig);
  CHECK(rig.valid_until[lease.grant] == rig.start + 30s - 302ms);
  rig.leave(lease.grant);
  confirm_all(rig);
  rig.advance(10s);
  CHECK(rig.oldest<HoldCommand>(0).lease == 30s);
  CHECK(asked_count(rig, 0) == 1);
}

TEST_CASE("a healed node learns the count from the next round") {
  Rig rig(3);
  held_twice(rig, Rig::renewed());
  rig.advance(10s);
  rig.answer(2, Free{});
  rig.answer({0, 1}, Held{7});
  REQUIRE(rig.oldest_is<AcquireCommand>(2));
  rig.answer(2, Granted{8});
  rig.advance(10s);
  CHECK(asked_count(rig, 2) == 2);
}
