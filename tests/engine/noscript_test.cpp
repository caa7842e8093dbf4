// SPDX-License-Identifier: MIT
// NOSCRIPT: a message is sent again in full only while somebody still wants it. One that is
// repeated behind a release, or for a lease that is over, would stay on the node for a whole lease.
#include "engine/rig.hpp"

using namespace redlock::engine::test;

TEST_CASE("an acquire whose script is unknown is sent in full while somebody wants it") {
  Rig rig(5);
  const auto id = rig.acquire();
  rig.answer(0, NoScript{});
  CHECK(rig.take(0).form == Form::source);
  const Send straggler = rig.take(3);
  SUBCASE("not once its release was written") {
    rig.cancel(id);
  }
  SUBCASE("not once the vote is lost, but nobody knows yet whether a quorum votes") {
    rig.answer({1, 4}, down);
    rig.answer(2, Refused{9s});
    CHECK_FALSE(rig.ended(id));
  }
  rig.answer(straggler, NoScript{});
  CHECK(rig.asked_count(3) == 1);
  CHECK(rig.releases(3) == 1);
  CHECK(rig.ended_with<Failed>(id));
  rig.answer(3, broken);
  rig.node_up(3);
  CHECK_FALSE(rig.asked(3));  // it has nothing, so nothing is owed
}

TEST_CASE("an acquire that is sent again in full is waited for no longer") {
  Rig rig(3);
  const auto id = rig.acquire();
  for (int again = 0; again < 2; ++again) {
    rig.advance(100ms);
    rig.answer({0, 1, 2}, NoScript{});
  }
  CHECK(rig.ends_after(50ms, id));
  CHECK(rig.failure(id) == Errc::no_quorum);
}

TEST_CASE("an acquire that is sent again in full counts from then, and tells how long it waits") {
  Rig rig(3);
  const auto id = rig.acquire(Rig::waiting(60s, true));
  rig.advance(100ms);
  rig.answer({0, 1}, NoScript{});
  for (const NodeIndex node : {0U, 1U}) {
    CHECK(rig.oldest<AcquireCommand>(node).place.waited == 100ms);
    rig.answer(node, Granted{1});
  }
  CHECK(rig.result<AcquireSucceeded>(id).valid_until == rig.start + 100ms + 30s - 302ms);
}

TEST_CASE("a hold or a heal whose script is unknown is not sent again once nobody wants it") {
  enum class After { release, loss, timeout };  // of its round
  struct Case {
    bool heals;
    After after;
  };
  for (const Case& row :
       {Case{false, After::release}, Case{false, After::loss}, Case{false, After::timeout},
        Case{true, After::release}, Case{true, After::loss}}) {
    const auto [heals, after] = row;
    CAPTURE(row.heals);
    CAPTURE(static_cast<int>(row.after));
    RenewedRig rig;
    const NodeIndex node = heals ? 2 : 0;
    std::optional<Send> unknown;
    if (heals) unknown = rig.heal_of(node);
    rig.extend(rig.grant, 60s);
    if (!heals) unknown = rig.take(node);
    if (after == After::release) rig.release(rig.grant);
    if (after == After::loss) rig.answer({1, heals ? 0U : 2U}, Taken{});
    if (after == After::timeout) rig.advance(250ms);
    REQUIRE(rig.lost.contains(rig.grant) == (after == After::loss));
    while (rig.oldest_is<HoldCommand>(node)) rig.take(node);
    rig.answer(*unknown, NoScript{});
    CHECK(rig.asked_count(node) == (after == After::release ? 1 : 0));
    CHECK(rig.releases(node) == rig.asked_count(node));
  }
}

TEST_CASE("NOSCRIPT to an acquire and to the release behind it says that the node has nothing") {
  Rig rig(3);
  const auto release = rig.release(rig.lease_on({0, 1}).grant);
  rig.answer(2, NoScript{});  // the acquire, which nobody wants any more
  CHECK(rig.asked_count(2) == 1);
  rig.answer(2, NoScript{});  // the release, which need not be repeated
  CHECK_FALSE(rig.asked(2));
  CHECK(rig.engine.releases_under_way() == 2);
  rig.answer(0, ReleasedHere{});
  CHECK_FALSE(rig.ended(release));
  rig.answer(1, NotHeld{});
  REQUIRE(rig.ended(release));  // without waiting for the node timeout
  CHECK(rig.outcome(release) == Released::already_gone);
}
