// SPDX-License-Identifier: MIT
// Holding: renewal at a third of the lease, extending by hand, nodes that are healed, and grants
// made elsewhere that are taken up. Validity from mixed rounds is in mixed_rounds.scn.
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

TEST_CASE("the watchdog renews on every node at a third of the lease, with the same token") {
  RenewedRig rig;
  rig.advance(10s - 1ns);
  CHECK_FALSE(rig.asked(0));
  rig.advance(1ns);
  for (NodeIndex node = 0; node < 3; ++node) {
    CHECK(rig.oldest<HoldCommand>(node).token == 7);
    CHECK(rig.oldest<HoldCommand>(node).lease == 30s);
  }
  rig.answer({0, 1}, Held{7});
  CHECK(rig.valid_until[rig.grant] == rig.start + 10s + 30s - 302ms);
  REQUIRE(rig.renewals.size() == 1);
  CHECK(rig.renewals[0].ok);
}

TEST_CASE("a lease that is not renewed, or no longer, is lost a tenth of it before its end") {
  for (const bool held_too_long : {false, true}) {
    auto what = held_too_long ? Rig::renewed() : Rig::request();
    if (held_too_long) what.max_hold = 5s;
    LeaseRig rig(what);
    CHECK(rig.lost_after(29'698ms - 3s, rig.grant));
    CHECK(rig.lost.at(rig.grant) == LossReason::expired);
    CHECK_FALSE(rig.asked(0));
  }
}

TEST_CASE("a renewal that no quorum confirmed is tried again soon") {
  for (const Unavailable& why : {down, broken}) {
    RenewedRig rig;
    rig.advance(10s);
    rig.answer({0, 1, 2}, why);
    REQUIRE(rig.renewals.size() == 1);
    CHECK_FALSE(rig.renewals[0].ok);
    rig.advance(2500ms);
    for (const NodeIndex node : {0U, 1U, 2U}) CHECK(rig.oldest_is<HoldCommand>(node));
  }
}

TEST_CASE("a paused holder finds its lease lost before any answer can revive it") {
  RenewedRig rig;
  rig.advance(10s);
  rig.pause(30s);
  rig.answer(0, Held{7});
  CHECK(rig.lost.contains(rig.grant));
  rig.answer({1, 2}, Held{7});
  CHECK(rig.valid_until.empty());
  for (const bool enters : {false, true}) {
    LeaseRig other;
    other.pause(29'698ms - 3s);
    const auto id = enters ? other.enter(other.grant) : other.extend(other.grant, 60s);
    CHECK(other.failure(id) == Errc::lost);
    CHECK(other.loss_of(other.grant) == LossReason::expired);
    CHECK(other.all_answered());
  }
}

TEST_CASE("a shorter extend does not shorten the lease") {
  for (const auto asked_for : {1ms, 1'000ms}) {
    LeaseRig rig;
    rig.advance(5s);
    const auto id = rig.extend(rig.grant, asked_for);
    rig.answer({0, 1, 2}, Held{7});
    CHECK(rig.result<ExtendSucceeded>(id).valid_until == rig.lease.valid_until);
    CHECK(rig.valid_until.empty());
    CHECK(rig.lost.empty());
  }
}

TEST_CASE("a late answer to a short extend confirms the short lease, not the long one") {
  LeaseRig rig;
  rig.advance(20s);
  const auto id = rig.extend(rig.grant, 10s);
  const Send late = rig.take(0);
  rig.advance(250ms);
  CHECK(rig.failure(id) == Errc::no_quorum);
  rig.answer(late, Held{7});
  rig.answer({1}, Held{7});
  CHECK(rig.valid_until[rig.grant] == rig.start + 30s - 102ms);
}

TEST_CASE("a lease that a quorum denies is lost at once, and so is its extend") {
  for (const bool foreign_type : {false, true}) {
    LeaseRig rig;
    const auto id = rig.extend(rig.grant, 60s);
    rig.answer(0, Taken{foreign_type});
    CHECK(rig.lost.empty());
    rig.answer(1, foreign_type ? Reply{Taken{foreign_type}} : Reply{Free{}});
    CHECK(rig.loss_of(rig.grant) == LossReason::taken);
    CHECK(rig.failure(id) == Errc::lost);
    CHECK(rig.failure(rig.extend(rig.grant, 60s)) == Errc::lost);
    rig.drop(rig.grant);
    CHECK(rig.releases(2) == 1);
    CHECK(rig.releases(0) == 0);  // nothing of ours is there
  }
}

TEST_CASE("a healed node counts at once, another not until a round confirms it") {
  struct Heal {
    std::optional<Reply> reply;
    bool confirmed;
    bool counts;
  };
  for (const Heal& heal :
       {Heal{Granted{8}, false, true}, Heal{AlreadyOurs{}, false, true},
        Heal{std::nullopt, false, false}, Heal{broken, false, false}, Heal{broken, true, true}}) {
    RenewedRig rig;
    const Send sent = rig.heal_of(2);
    if (heal.reply) rig.answer(sent, *heal.reply);
    rig.advance(10s);
    if (heal.confirmed) rig.answer(2, Held{8});
    rig.answer(0, Free{});
    CHECK(rig.lost.contains(rig.grant) != heal.counts);
    rig.answer(1, Free{});
    CHECK(rig.lost.contains(rig.grant));
  }
}

TEST_CASE("a valid lease is healed also when too few nodes answer in the round") {
  Rig rig(5);
  rig.lease_on_all(Rig::renewed());
  rig.advance(10s);
  rig.answer({0, 1}, Held{7});
  rig.answer(4, Free{});
  rig.answer(2, broken);
  CHECK_FALSE(rig.asked(4));  // node 3 may still answer
  rig.advance(250ms);         // it does not in time
  CHECK(rig.oldest_is<AcquireCommand>(4));
}

TEST_CASE("nothing is healed for a grant that could not be taken up") {
  Rig rig(5);
  const auto id = rig.attach({}, 7, 30s);
  rig.answer({0, 1}, Held{7});
  rig.answer(4, Free{});
  rig.answer({2, 3}, broken);
  REQUIRE(rig.failure(id) == Errc::no_quorum);
  CHECK_FALSE(rig.asked(4));
}

TEST_CASE(
    "a grant that is not ours, or not by this token, is not taken up, and nothing is released") {
  struct Refusal {
    std::vector<Reply> replies;  // of nodes 0, 1, ...
    Errc failure;
    std::string detail;  // of the failure, or of what node 0 did
  };
  const std::string denied = "too few nodes have it for this owner";
  for (const Refusal& row :
       {Refusal{{Held{7}}, Errc::no_quorum, ""},
        Refusal{{Held{7}, Taken{}, Taken{}}, Errc::lost, denied},
        Refusal{{Held{7}, ForcedOut{}, ForcedOut{}}, Errc::lost, "somebody released it by force"},
        // A fence below the token does not confirm it; of a quorum, it refutes the token.
        Refusal{{Held{6}, Held{7}, down}, Errc::no_quorum, "its fence (6) is below the token"},
        Refusal{
            {Held{6}, Held{6}}, Errc::invalid_argument, "the token 7 was never given for it"}}) {
    CAPTURE(row.detail);
    Rig rig(3);
    const auto id = rig.attach(elsewhere(false));
    for (NodeIndex node = 0; node < row.replies.size(); ++node) {
      CHECK_FALSE(rig.ended(id));
      rig.answer(node, row.replies[node]);
    }
    rig.advance(250ms);
    REQUIRE(rig.failure(id) == row.failure);
    const std::string& detail = rig.result<Failed>(id).detail;
    CHECK((detail.empty() ? rig.ballot(id, 0).detail : detail) == row.detail);
    for (const NodeIndex node : {1U, 2U}) {
      if (rig.asked(node)) rig.answer(node, Held{7});  // too late
    }
    rig.advance(60s);
    CHECK(rig.all_answered());
    CHECK(rig.lost.empty());
  }
}

TEST_CASE("an answer that belongs to another command is no vote, and nobody waits for more") {
  LeaseRig rig;
  const auto id = rig.extend(rig.grant, 60s);
  rig.answer({0, 1}, Granted{9});
  CHECK(rig.failure(id) == Errc::no_quorum);
}

TEST_CASE("a lease whose loss was told is lost: it is neither confirmed nor renewed") {
  RenewedRig rig;
  rig.advance(10s);
  REQUIRE(rig.oldest_is<HoldCommand>(0));
  const auto extend = rig.extend(rig.grant, 60s);
  rig.give_up(rig.grant, LossReason::nodes_unavailable);
  CHECK(rig.lost.at(rig.grant) == LossReason::nodes_unavailable);
  CHECK(rig.failure(extend) == Errc::lost);
  rig.answer({0, 1, 2}, Held{7});
  rig.answer({0, 1, 2}, Held{7});
  CHECK(rig.valid_until.empty());
  rig.advance(20s);
  CHECK(rig.all_answered());
  CHECK(rig.failure(rig.extend(rig.grant, 60s)) == Errc::lost);
  rig.give_up(rig.grant, LossReason::expired);  // once
  rig.drop(rig.grant);
  CHECK(rig.releases(0) == 1);
  rig.give_up(rig.grant, LossReason::expired);  // of a lease that is over
}

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
