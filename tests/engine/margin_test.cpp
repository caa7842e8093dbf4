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
  rig.advance(500ms - 1ns);
  CHECK(rig.lost.empty());
  rig.advance(1ns);
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
  Rig rig(3);
  const auto lease = rig.lease_on_all();
  rig.extend(lease.grant, 60s);
  rig.answer({0, 1}, Held{7});
  REQUIRE(rig.valid_until[lease.grant] == rig.start + sixty);
  rig.answer(2, broken);  // node 2 has thirty seconds, for all we know
  rig.extend(lease.grant, 1s);
  rig.answer(0, Free{});
  CHECK(rig.valid_until[lease.grant] == rig.start + thirty);
  rig.advance(thirty - 3s - 1ns);
  CHECK(rig.lost.empty());
  rig.advance(1ns);
  CHECK(rig.lost.at(lease.grant) == LossReason::expired);
}

TEST_CASE("what a node confirmed before it forgot does not come back with its healing") {
  Rig rig(3);
  const auto lease = rig.lease_on_all(Rig::renewed());
  rig.extend(lease.grant, 60s);
  rig.answer({0, 1, 2}, Held{7});
  rig.advance(10s);
  rig.answer(2, Free{});
  rig.answer({0, 1}, Held{7});
  rig.answer(2, Granted{8});
  rig.advance(10s);
  rig.answer(2, Held{8});
  rig.answer(0, Free{});
  // Node 1 has sixty seconds from the start, node 2 thirty from the last renewal.
  CHECK(rig.valid_until[lease.grant] == rig.start + 20s + thirty);
}

TEST_CASE("extending after a pause past the loss finds the lease lost and sends nothing") {
  Rig rig(3);
  const auto lease = rig.lease_on_all();
  rig.pause(thirty - 3s);
  const auto id = rig.extend(lease.grant, 60s);
  CHECK(rig.failure(id) == Errc::lost);
  CHECK(rig.lost.at(lease.grant) == LossReason::expired);
  for (NodeIndex node = 0; node < 3; ++node) CHECK_FALSE(rig.asked(node));
}

TEST_CASE("between its loss and its end a lease that the nodes take away is over at once") {
  Rig rig(3);
  const auto lease = rig.lease_on_all(Rig::renewed());
  rig.advance(10s);
  for (const NodeIndex node : {0U, 1U, 2U}) REQUIRE(rig.oldest_is<HoldCommand>(node));
  const Send first = rig.take(0);
  const Send second = rig.take(1);
  const Send third = rig.take(2);
  rig.advance(thirty - 13s);
  REQUIRE(rig.lost.at(lease.grant) == LossReason::nodes_unavailable);
  SUBCASE("taken") {
    rig.answer(first, Taken{});
    CHECK_FALSE(rig.valid_until.contains(lease.grant));
    rig.answer(second, Taken{});
    CHECK(rig.valid_until.at(lease.grant) == rig.now);
  }
  SUBCASE("forced") {
    rig.answer(first, ForcedOut{});
    rig.answer(second, Free{});
    CHECK(rig.valid_until.at(lease.grant) == rig.now);
  }
  SUBCASE("and nothing makes it longer") {
    rig.answer(first, Held{7});
    rig.answer(second, Held{7});
    rig.answer(third, Held{7});
    CHECK(rig.valid_until.empty());
  }
  CHECK(rig.lost.at(lease.grant) == LossReason::nodes_unavailable);
}

TEST_CASE("a caller that extends while another detaches is told so") {
  Rig rig(3);
  const auto lease = rig.lease_on_all();
  const auto id = rig.extend(lease.grant, 60s);
  rig.detach(lease.grant);
  CHECK(rig.failure(id) == Errc::lost);
  rig.answer({0, 1, 2}, Held{7});
  CHECK(rig.valid_until.empty());
  CHECK(rig.releases(0) == 0);
}

TEST_CASE("of four nodes, one that forgot is borne and two end the lease") {
  Rig rig(4);
  const auto lease = rig.lease_on_all(Rig::renewed());
  rig.advance(10s);
  rig.answer(0, Free{});
  CHECK(rig.lost.empty());
  rig.answer(1, Free{});
  CHECK(rig.lost.at(lease.grant) == LossReason::taken);
}

TEST_CASE("of four nodes, two that confirm do not extend and three do") {
  Rig rig(4);
  const auto lease = rig.lease_on_all();
  const auto no = rig.extend(lease.grant, 60s);
  rig.answer({0, 1}, Held{7});
  CHECK_FALSE(rig.ended(no));
  CHECK(rig.valid_until.empty());
  rig.answer({2, 3}, down);
  CHECK(rig.failure(no) == Errc::no_quorum);
  CHECK(rig.lost.empty());
  const auto yes = rig.extend(lease.grant, 60s);
  rig.answer({0, 1, 2}, Held{7});
  CHECK(rig.result<ExtendSucceeded>(yes).valid_until == rig.start + sixty);
}

TEST_CASE("of two nodes, both must hold") {
  Rig forgot(2);
  const auto lease = forgot.lease_on_all(Rig::renewed());
  forgot.advance(10s);
  forgot.answer(1, Free{});
  CHECK(forgot.lost.at(lease.grant) == LossReason::taken);

  Rig silent(2);
  const auto held = silent.lease_on_all();
  const auto id = silent.extend(held.grant, 60s);
  silent.answer(0, Held{7});
  CHECK_FALSE(silent.ended(id));
  silent.answer(1, down);
  CHECK(silent.failure(id) == Errc::no_quorum);
  CHECK(silent.lost.empty());
}
