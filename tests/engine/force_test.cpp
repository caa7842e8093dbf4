// SPDX-License-Identifier: MIT
// Releasing by force: what the operator is told, and what becomes of the holder.
#include "engine/rig.hpp"

using namespace redlock::engine::test;

namespace {

const OwnerId somebody{{1, 2}};

RequestId force_release(Rig& rig) {
  return rig.request_by(
      [&](RequestId id) { rig.engine.force_release(rig.now, id, Rig::request().name, somebody); });
}

Cause cause_at(const BroadcastDone& done, NodeIndex node) {
  return std::get<Unavailable>(done.replies[node]).cause;
}

}  // namespace

TEST_CASE("a force is sent in full to every node, for this owner, for longer than its lease") {
  Rig rig(3);
  force_release(rig);
  for (NodeIndex node = 0; node < 3; ++node) {
    const auto& command = rig.oldest<ForceCommand>(node);
    CHECK(command.owner == somebody);
    // max_lease, 1 % of it, 2 ms, and a second.
    CHECK(command.keep_out == 61'602ms);
    CHECK(rig.take(node).form == Form::source);
  }
}

TEST_CASE("a force ends when every node has answered, and says what each of them did") {
  Rig rig(5);
  const auto id = force_release(rig);
  rig.answer(0, ReleasedHere{});
  rig.answer(1, NotHeld{});
  CHECK_FALSE(rig.ended(id));
  rig.answer(2, ReleasedHere{});
  CHECK_FALSE(rig.ended(id));
  rig.answer(3, ReleasedHere{});
  rig.answer(4, broken);
  REQUIRE(rig.ended_with<BroadcastDone>(id));
  const auto& done = rig.result<BroadcastDone>(id);
  CHECK(done.replied<ReleasedHere>() == (NodeSet::of(0) | NodeSet::of(2) | NodeSet::of(3)));
  CHECK(done.replied<NotHeld>() == NodeSet::of(1));
  CHECK(done.replied<Unavailable>() == NodeSet::of(4));
}

TEST_CASE("a node that hangs keeps a force no longer than the node timeout, and is said to") {
  Rig rig(3);
  const auto id = force_release(rig);
  rig.answer(0, ReleasedHere{});
  rig.answer(1, broken);
  CHECK(rig.ends_after(250ms, id));
  REQUIRE(rig.ended_with<BroadcastDone>(id));
  const auto& done = rig.result<BroadcastDone>(id);
  CHECK(done.replied<ReleasedHere>() == NodeSet::of(0));
  CHECK(cause_at(done, 1) == Cause::connection_lost);
  CHECK(cause_at(done, 2) == Cause::timed_out);
  rig.answer(2, ReleasedHere{});  // of no interest any more
  // It is not repeated: what it could not reach ends with its lease.
  rig.advance(1s);
  rig.node_up(1);
  CHECK(rig.all_answered());
}

TEST_CASE("a caller that extends what was forced out is told so") {
  LeaseRig rig;
  const auto id = rig.extend(rig.grant, 30s);
  rig.answer({0, 1}, ForcedOut{});
  CHECK(rig.failure(id) == Errc::lost);
  CHECK(rig.result<Failed>(id).detail == "somebody released it by force");
}

TEST_CASE(
    "a node that turns the owner away is not released, nor healed until it does so no longer") {
  RenewedRig rig;
  for (int round = 0; round < 2; ++round) {
    rig.advance(10s);
    rig.answer(0, ForcedOut{});
    rig.answer({1, 2}, Held{7});
    CHECK_FALSE(rig.asked(0));
  }
  SUBCASE("released") {
    rig.release(rig.grant);
    CHECK(rig.releases(0) == 0);
  }
  SUBCASE("healed: too few turned it away, and long ago") {
    rig.forgets(0);
    CHECK(rig.oldest_is<AcquireCommand>(0));
  }
}

TEST_CASE("a healing that is turned away takes the node back") {
  RenewedRig rig;
  rig.answer(rig.heal_of(0), ForcedOut{});
  rig.advance(10s);
  rig.answer(1, Free{});
  CHECK(rig.loss_of(rig.grant) == LossReason::forced);
}

TEST_CASE("an attempt that is forced out is refused, and releases what it may have elsewhere") {
  Rig rig(3);
  const auto id = rig.attempt({ForcedOut{}, ForcedOut{}});
  CHECK(rig.failure(id) == Errc::contended);
  CHECK(rig.releases(0) == 0);
  CHECK(rig.releases(2) == 1);

  Rig settles(3);
  const auto other = settles.attempt({Granted{7}, Granted{8}});
  REQUIRE(settles.oldest_is<HoldCommand>(0));
  settles.answer(0, ForcedOut{});
  settles.answer(2, Refused{9s});
  CHECK(settles.failure(other) == Errc::contended);
  CHECK(settles.ballot(other, 0).vote == Vote::refused);
  CHECK(settles.releases(0) == 0);
}
