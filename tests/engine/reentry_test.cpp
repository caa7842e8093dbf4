// SPDX-License-Identifier: MIT
// Re-entry: the count rises only by a quorum, falls at once, and is told to every node by every
// hold; the lease is the same one throughout. An entry, and one that fails, are in re_entry.scn.
#include "engine/rig.hpp"

using namespace redlock::engine::test;

namespace {

/// A lease on three nodes that its owner enters and leaves.
struct ReentryRig : LeaseRig {
  using LeaseRig::LeaseRig;

  [[nodiscard]] std::uint32_t count_at(NodeIndex node) const {
    return oldest<HoldCommand>(node).count;
  }
  void confirm_all() { answer_all(Held{7}); }
  /// Once more, every message answered.
  void entered(std::uint32_t count) {
    const auto id = enter(grant);
    confirm_all();
    REQUIRE(result<EnterSucceeded>(id).count == count);
  }
};

}  // namespace

TEST_CASE(
    "a failed entry releases nothing, and a node that confirms it late is put right behind it") {
  ReentryRig rig(Rig::renewed());
  const auto id = rig.enter(rig.grant);
  rig.answer(0, Held{7});
  rig.advance(250ms);
  CHECK(rig.failure(id) == Errc::no_quorum);
  CHECK(rig.all_have_releases(0));
  rig.answer({1, 2}, Held{7});
  CHECK(rig.count_at(1) == 1);
  rig.confirm_all();
  CHECK(rig.renewals.empty());
  rig.entered(2);
}

TEST_CASE("renewals carry the count, and one during an entry carries the entry's") {
  ReentryRig rig(Rig::renewed());
  rig.entered(2);
  rig.advance(10s);
  CHECK(rig.count_at(2) == 2);
  rig.confirm_all();
  rig.advance(10s - 1ms);
  rig.enter(rig.grant);
  rig.advance(1ms);
  for (const std::uint32_t count : {3U, 3U}) {
    CHECK(rig.count_at(0) == count);
    rig.answer(0, Held{7});
  }
  CHECK_FALSE(rig.asked(0));
}

TEST_CASE("leaving tells every node the lower count at once, and lengthens nothing") {
  ReentryRig rig;
  rig.entered(2);
  rig.advance(1s);
  rig.leave(rig.grant);
  for (NodeIndex node = 0; node < 3; ++node) {
    CHECK(rig.count_at(node) == 1);
    CHECK(rig.oldest<HoldCommand>(node).lease <= rig.lease.valid_until - rig.now);
    CHECK(rig.releases(node) == 0);
  }
  rig.confirm_all();
  CHECK(rig.valid_until.empty());
  CHECK(rig.renewals.empty());
  rig.advance(60s);
  CHECK(rig.lost.at(rig.grant) == LossReason::expired);
}

TEST_CASE("the last level is not left but released") {
  ReentryRig rig;
  rig.leave(rig.grant);
  rig.leave(rig.grant + 1);  // which nobody holds
  CHECK(rig.all_answered());
  const auto id = rig.release(rig.grant);
  rig.answer({0, 1}, ReleasedHere{});
  CHECK(rig.outcome(id) == Released::released);
}

TEST_CASE("entering a lost lease fails with lost, and so does one that is lost meanwhile") {
  ReentryRig rig;
  const auto meanwhile = rig.enter(rig.grant);
  rig.answer(0, Taken{});
  rig.answer(1, Free{});
  CHECK(rig.failure(meanwhile) == Errc::lost);
  REQUIRE(rig.lost.contains(rig.grant));
  const auto after = rig.enter(rig.grant);
  CHECK(rig.failure(after) == Errc::lost);
  while (rig.asked(2)) rig.take(2);
  rig.leave(rig.grant);
  CHECK_FALSE(rig.asked(2));
  rig.drop(rig.grant);
  CHECK(rig.failure(rig.enter(rig.grant)) == Errc::lost);
}

TEST_CASE("two entries at once make two levels, and only those that were confirmed") {
  ReentryRig rig;
  const auto first = rig.enter(rig.grant);
  const auto second = rig.enter(rig.grant);
  CHECK(rig.count_at(0) == 2);
  for (NodeIndex node = 0; node < 3; ++node) rig.answer(node, node == 0 ? Reply{Held{7}} : down);
  CHECK(rig.failure(first) == Errc::no_quorum);
  CHECK(rig.count_at(0) == 3);
  rig.answer({0, 1}, Held{7});
  CHECK(rig.result<EnterSucceeded>(second).count == 2);
  rig.answer(2, Held{7});
  for (NodeIndex node = 0; node < 3; ++node) CHECK(rig.count_at(node) == 2);
}

TEST_CASE("a level left during an entry is not given back by it") {
  ReentryRig rig;
  rig.entered(2);
  const auto id = rig.enter(rig.grant);
  rig.leave(rig.grant);
  const Send entry = rig.take(0);
  CHECK(std::get<HoldCommand>(entry.command).count == 3);
  CHECK(rig.count_at(0) == 2);
  rig.answer(entry, Held{7});
  rig.answer(1, Held{7});
  CHECK(rig.result<EnterSucceeded>(id).count == 2);
}

TEST_CASE("a hold that is sent again after NOSCRIPT carries the count of its own time") {
  ReentryRig rig;
  rig.entered(2);
  rig.enter(rig.grant);
  rig.leave(rig.grant);
  rig.leave(rig.grant);  // only the entry's level is left, if it comes true
  const Send entry = rig.take(0);
  rig.answer(0, Held{7});  // another client loaded the script meanwhile
  rig.answer(entry, NoScript{});
  const Send again = rig.take(0);
  CHECK(again.form == Form::source);
  CHECK(std::get<HoldCommand>(again.command).count == 2);
}

TEST_CASE("an inner entry may ask for renewal, which the outer explicit lease had not") {
  ReentryRig rig(Rig::request(3s));
  rig.enter(rig.grant, 30s, true);
  rig.confirm_all();
  CHECK(rig.valid_until[rig.grant] == rig.start + 30s - 302ms);
  rig.leave(rig.grant);
  rig.confirm_all();
  rig.advance(10s);
  CHECK(rig.oldest<HoldCommand>(0).lease == 30s);
  CHECK(rig.count_at(0) == 1);
}

TEST_CASE("an inner entry that asks for renewal does not shorten the outer lease") {
  ReentryRig rig(Rig::request(40s));
  rig.enter(rig.grant, 30s, true);
  rig.confirm_all();
  rig.advance(14s);
  REQUIRE(rig.oldest_is<HoldCommand>(0));
  CHECK(rig.oldest<HoldCommand>(0).lease == 40s);
}
