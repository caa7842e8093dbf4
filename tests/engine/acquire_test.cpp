// SPDX-License-Identifier: MIT
// One acquisition with one attempt: which vote decides, what is known then, and what is left on the
// nodes afterwards.
#include "engine/rig.hpp"
#include "engine/stripe.hpp"

using namespace redlock::engine::test;

TEST_CASE("all nodes are asked at once, and the quorum-th yes answers the caller") {
  Rig rig(5);
  const auto id = rig.acquire();
  for (NodeIndex node = 0; node < 5; ++node) CHECK(rig.oldest_is<AcquireCommand>(node));
  rig.advance(3ms);
  rig.answer({4, 1}, Granted{7});
  CHECK_FALSE(rig.ended(id));
  rig.answer(2, Granted{7});
  REQUIRE(rig.ended_with<AcquireSucceeded>(id));
  CHECK(rig.result<AcquireSucceeded>(id).token == 7);
}

TEST_CASE("validity is the lease less one per cent and 2 ms, counted from the first send") {
  Rig rig(3);
  const auto id = rig.acquire();
  rig.advance(50ms);
  rig.answer({0, 1}, Granted{7});
  CHECK(rig.result<AcquireSucceeded>(id).valid_until == rig.start + 30s - 300ms - 2ms);
}

TEST_CASE("a quorum of refusals is contended, and only nodes that may hold it are released") {
  Rig rig(5);
  const auto id = rig.acquire();
  rig.answer(0, Granted{7});
  rig.answer({1, 2}, Refused{9s});
  CHECK_FALSE(rig.ended(id));
  CHECK(rig.releases(0) == 0);
  rig.answer(3, Refused{9s});
  CHECK(rig.failure(id) == Errc::contended);
  CHECK(rig.releases(0) == 1);
  CHECK(rig.releases(1) == 0);
  CHECK(rig.releases(4) == 1);  // has not answered, so it may hold it
}

TEST_CASE("a minority that is down changes nothing for the caller") {
  Rig rig(5);
  const auto id = rig.acquire();
  rig.answer({0, 1}, down);
  rig.answer({2, 3, 4}, Granted{7});
  CHECK(rig.ended_with<AcquireSucceeded>(id));
}

TEST_CASE("unavailable is not refused: three of five down is no_quorum, at once") {
  Rig rig(5);
  const auto id = rig.acquire();
  rig.answer({0, 1}, Granted{7});
  rig.answer({2, 3}, down);
  CHECK_FALSE(rig.ended(id));
  rig.answer(4, down);
  CHECK(rig.failure(id) == Errc::no_quorum);
  CHECK(rig.releases(0) == 1);
  CHECK(rig.releases(4) == 0);  // not a byte was sent to it
  CHECK(rig.result<Failed>(id).ballots[4].cause == Cause::connection_failed);
}

TEST_CASE("nodes that were not waited for are pending in a failure, not unavailable") {
  Rig rig(5);
  const auto id = rig.acquire();
  rig.answer({0, 1, 2}, down);
  REQUIRE(rig.failure(id) == Errc::no_quorum);
  const auto& ballots = rig.result<Failed>(id).ballots;
  CHECK(ballots[2].vote == Vote::unavailable);
  for (const NodeIndex node : {3U, 4U}) {
    CAPTURE(node);
    CHECK(ballots[node].vote == Vote::pending);
    CHECK(ballots[node].cause == Cause::none);
    CHECK(rig.releases(node) == 1);  // it may have granted the lock
  }
}

TEST_CASE("three hung nodes are no_quorum exactly at the node timeout") {
  Rig rig(5);
  const auto id = rig.acquire();
  rig.answer({0, 1}, Granted{7});
  rig.advance(250ms - 1ns);
  CHECK_FALSE(rig.ended(id));
  rig.advance(1ns);
  CHECK(rig.failure(id) == Errc::no_quorum);
  CHECK(rig.result<Failed>(id).ballots[3].cause == Cause::timed_out);
  for (NodeIndex node = 0; node < 5; ++node) CHECK(rig.releases(node) == 1);
}

TEST_CASE("a lost vote is released at once; its kind is told when a quorum voted") {
  Rig rig(5);
  const auto id = rig.acquire();
  rig.answer({0, 1}, down);
  rig.answer(2, Refused{9s});
  // Out of reach: two are down and one refused. But two more may vote.
  CHECK(rig.releases(3) == 1);
  CHECK_FALSE(rig.ended(id));
  rig.answer({3, 4}, Refused{9s});
  CHECK(rig.failure(id) == Errc::contended);
}

TEST_CASE("a lost vote whose quorum never votes is no_quorum at the node timeout") {
  Rig rig(3);
  const auto id = rig.acquire();
  rig.answer(0, down);
  rig.answer(1, Refused{9s});
  rig.advance(250ms);
  CHECK(rig.failure(id) == Errc::no_quorum);
}

TEST_CASE("a quorum that answers too late is released on every node") {
  Rig rig(3, {.node_timeout = 10s});
  const auto id = rig.acquire(Rig::request(1s));
  rig.pause(988ms);  // the validity of one second
  rig.answer({0, 1}, Granted{7});
  CHECK(rig.failure(id) == Errc::too_late);
  for (NodeIndex node = 0; node < 3; ++node) CHECK(rig.releases(node) == 1);
}

TEST_CASE("no success with validity at the minimum, and success just above it") {
  for (const auto& [pause, granted] : {std::pair{20'000ms, false}, std::pair{19'999ms, true}}) {
    Rig rig(3, {.node_timeout = 60s});
    auto what = Rig::request();
    what.min_validity = 9'698ms;  // 30 s - 302 ms - 20 s
    const auto id = rig.acquire(what);
    rig.pause(pause);
    rig.answer({0, 1}, Granted{7});
    CHECK(rig.ended_with<AcquireSucceeded>(id) == granted);
    if (!granted) CHECK(rig.failure(id) == Errc::too_late);
  }
}

TEST_CASE("the node timeout is capped by the remaining validity") {
  Rig rig(3, {.node_timeout = 10s});
  const auto id = rig.acquire(Rig::request(1s));
  rig.advance(988ms);
  CHECK(rig.failure(id) == Errc::no_quorum);
}

TEST_CASE("one node alone is a plain lock, and two nodes must agree") {
  Rig one(1);
  const auto alone = one.acquire();
  one.answer(0, Granted{3});
  CHECK(one.ended_with<AcquireSucceeded>(alone));

  Rig two(2);
  const auto pair = two.acquire();
  two.answer(0, Granted{3});
  CHECK_FALSE(two.ended(pair));
  two.answer(1, Refused{1s});
  CHECK(two.failure(pair) == Errc::contended);
}

TEST_CASE("of four nodes, two refusals decide and three grants do") {
  Rig refused(4);
  const auto no = refused.acquire();
  refused.answer({0, 1}, Refused{1s});
  CHECK(refused.releases(2) == 1);
  Rig granted(4);
  const auto yes = granted.acquire();
  granted.answer({0, 1}, Granted{3});
  CHECK_FALSE(granted.ended(yes));
  granted.answer(2, Granted{3});
  CHECK(granted.ended_with<AcquireSucceeded>(yes));
  CHECK_FALSE(refused.ended_with<AcquireSucceeded>(no));
}

TEST_CASE("a cancelled attempt releases every node, and a late grant changes nothing") {
  Rig rig(3);
  const auto id = rig.acquire();
  rig.answer(0, Granted{7});
  rig.cancel(id);
  CHECK(rig.failure(id) == Errc::cancelled);
  for (NodeIndex node = 0; node < 3; ++node) CHECK(rig.releases(node) == 1);
  rig.answer(1, Granted{7});  // the acquire, answered after all
  CHECK(rig.oldest_is<ReleaseCommand>(1));
  rig.answer(1, ReleasedHere{});
  CHECK_FALSE(rig.asked(1));
}

TEST_CASE("an acquire whose script is unknown is sent in full, unless its release was written") {
  Rig rig(3);
  const auto id = rig.acquire();
  rig.answer(0, NoScript{});
  REQUIRE(rig.asked(0));
  CHECK(rig.take(0).form == Form::source);
  const Send straggler = rig.take(1);
  rig.cancel(id);
  rig.answer(straggler, NoScript{});
  CHECK(rig.asked_count(1) == 1);
  CHECK(rig.oldest_is<ReleaseCommand>(1));
}

TEST_CASE("every attempt has an owner of its own") {
  Rig rig(1);
  rig.acquire();
  rig.acquire();
  const auto first = rig.take(0);
  const auto second = rig.take(0);
  CHECK(std::get<AcquireCommand>(first.command).owner !=
        std::get<AcquireCommand>(second.command).owner);
}

TEST_CASE("the floor is the median of the nodes' clocks, or one above the last token") {
  Rig rig(3);
  const std::int64_t noon = 1'700'000'000'000'000;
  rig.engine.on_node_clock(rig.now, 0, noon);
  rig.engine.on_node_clock(rig.now, 1, noon + 5);
  rig.engine.on_node_clock(rig.now, 2, noon * 2);  // absurd, and outvoted
  rig.advance(10us);
  const auto id = rig.acquire();
  CHECK(rig.oldest<AcquireCommand>(0).floor == static_cast<Token>(noon + 15));
  rig.answer({0, 1, 2}, Granted{static_cast<Token>(noon + 500)});
  REQUIRE(rig.ended_with<AcquireSucceeded>(id));
  rig.acquire();
  CHECK(rig.oldest<AcquireCommand>(0).floor == static_cast<Token>(noon + 501));
}

TEST_CASE("without the clock floor, tokens are small") {
  Rig rig(1, {.clock_floor = false});
  rig.engine.on_node_clock(rig.now, 0, 1'700'000'000'000'000);
  rig.acquire();
  CHECK(rig.oldest<AcquireCommand>(0).floor == 1);
}

TEST_CASE("stripes are part of the layout on the nodes and never change") {
  CHECK(stripe_of("seat A05") == 47627);
  CHECK(stripe_of("") < stripe_count);
}

TEST_CASE("a key of another type counts as held by somebody else, and says so") {
  Rig rig(1);
  const auto id = rig.acquire();
  rig.answer(0, Refused{.expires_in = std::nullopt, .foreign_type = true});
  CHECK(rig.failure(id) == Errc::contended);
  CHECK(rig.result<Failed>(id).ballots[0].detail ==
        "a key of another type stands where the lock would be");
}
