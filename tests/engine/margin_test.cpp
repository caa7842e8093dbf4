// SPDX-License-Identifier: MIT
// When a lease ends: the margin before its validity, a lease that was granted late, and a validity
// that becomes shorter because a node took back what it had confirmed.
#include "engine/rig.hpp"

using namespace redlock::engine::test;

namespace {

constexpr Duration thirty = 30s - 302ms;  // the validity of thirty seconds
constexpr Duration sixty = 60s - 602ms;

}  // namespace

TEST_CASE("the margin before loss is half of what is left, if a tenth of the lease is more") {
  Rig rig(3, {.node_timeout = 60s});
  const auto id = rig.acquire();
  rig.pause(thirty - 1s);
  rig.answer({0, 1}, Granted{7});
  const auto lease = rig.result<AcquireSucceeded>(id);
  CHECK(lease.valid_until == rig.now + 1s);
  CHECK(rig.lost_after(500ms, lease.grant));
  CHECK(rig.lost.at(lease.grant) == LossReason::expired);
}

TEST_CASE("a renewed lease that was granted late is renewed before it is lost") {
  Rig rig(3);
  const auto id = rig.acquire(Rig::renewed(350ms));
  rig.advance(240ms);
  rig.answer({0, 1}, Granted{7});
  REQUIRE(rig.ended_with<AcquireSucceeded>(id));
  rig.answer(2, broken);
  rig.advance(40ms);
  CHECK(rig.lost.empty());
  REQUIRE(rig.oldest_is<HoldCommand>(0));
  rig.answer({0, 1}, Held{7});
  rig.advance(100ms);
  CHECK(rig.lost.empty());
}

TEST_CASE("a node that takes back the longer confirmation leaves the shorter validity") {
  LeaseRig rig;
  rig.extend(rig.grant, 60s);
  rig.answer({0, 1}, Held{7});
  REQUIRE(rig.valid_until[rig.grant] == rig.start + sixty);
  rig.answer(2, broken);  // node 2 has thirty seconds, for all we know
  rig.extend(rig.grant, 1s);
  rig.answer(0, Free{});
  CHECK(rig.valid_until[rig.grant] == rig.start + thirty);
  CHECK(rig.lost_after(thirty - 3s, rig.grant));
  CHECK(rig.lost.at(rig.grant) == LossReason::expired);
}

TEST_CASE("what a node confirmed before it forgot does not come back with its healing") {
  RenewedRig rig;
  rig.extend(rig.grant, 60s);
  rig.answer({0, 1, 2}, Held{7});
  rig.answer(rig.heal_of(2), Granted{8});
  rig.advance(10s);
  rig.answer(2, Held{8});
  rig.answer(0, Free{});
  // Node 1 has sixty seconds from the start, node 2 thirty from the last renewal.
  CHECK(rig.valid_until[rig.grant] == rig.start + 20s + thirty);
}

TEST_CASE("between its loss and its end a lease that the nodes take away is over at once") {
  RenewedRig rig;
  rig.advance(10s);
  for (const NodeIndex node : {0U, 1U, 2U}) REQUIRE(rig.oldest_is<HoldCommand>(node));
  const Send first = rig.take(0);
  const Send second = rig.take(1);
  const Send third = rig.take(2);
  rig.advance(thirty - 13s);
  REQUIRE(rig.lost.at(rig.grant) == LossReason::nodes_unavailable);
  SUBCASE("taken") {
    rig.answer(first, Taken{});
    CHECK_FALSE(rig.valid_until.contains(rig.grant));
    rig.answer(second, Taken{});
    CHECK(rig.valid_until.at(rig.grant) == rig.now);
  }
  SUBCASE("forced") {
    rig.answer(first, ForcedOut{});
    rig.answer(second, Free{});
    CHECK(rig.valid_until.at(rig.grant) == rig.now);
  }
  SUBCASE("and nothing makes it longer") {
    rig.answer(first, Held{7});
    rig.answer(second, Held{7});
    rig.answer(third, Held{7});
    CHECK(rig.valid_until.empty());
  }
  rig.advance(60s);
  CHECK(rig.all_answered());
  CHECK(rig.lost.at(rig.grant) == LossReason::nodes_unavailable);
}

TEST_CASE("a caller that extends or enters while another ends the lease is told so") {
  for (const bool entry : {false, true}) {
    for (void (Rig::*ends)(GrantId) : {&Rig::drop, &Rig::detach}) {
      LeaseRig rig;
      const auto id = entry ? rig.enter(rig.grant) : rig.extend(rig.grant, 60s);
      (rig.*ends)(rig.grant);
      CHECK(rig.failure(id) == Errc::lost);
      rig.answer({0, 1, 2}, Held{7});
      CHECK(rig.valid_until.empty());
      CHECK(rig.all_have_releases(ends == &Rig::drop ? 1 : 0));
    }
  }
}

TEST_CASE("a quorum must confirm what makes a lease longer, and must not forget it") {
  for (const std::uint32_t nodes : {2U, 3U, 4U}) {
    Rig held(nodes);
    const auto lease = held.lease_on_all(Rig::renewed());
    held.advance(10s);
    held.answer(0, Free{});
    CHECK(held.lost.contains(lease.grant) == (nodes == 2));
    held.answer(1, Free{});
    CHECK(held.lost.at(lease.grant) == LossReason::taken);

    Rig rig(nodes);
    const auto extended = rig.lease_on_all();
    const auto no = rig.extend(extended.grant, 60s);
    for (NodeIndex node = 0; node < nodes / 2; ++node) rig.answer(node, Held{7});
    CHECK_FALSE(rig.ended(no));
    CHECK(rig.valid_until.empty());
    for (NodeIndex node = nodes / 2; node < nodes; ++node) rig.answer(node, down);
    CHECK(rig.failure(no) == Errc::no_quorum);
    CHECK(rig.valid_until.empty());
    CHECK(rig.lost.empty());
    CHECK(rig.all_have_releases(0));  // a failed hold never releases
    const auto yes = rig.extend(extended.grant, 60s);
    CHECK(rig.oldest<HoldCommand>(0).lease == 60s);
    for (NodeIndex node = 0; node <= nodes / 2; ++node) rig.answer(node, Held{7});
    CHECK(rig.result<ExtendSucceeded>(yes).valid_until == rig.start + sixty);
  }
}
