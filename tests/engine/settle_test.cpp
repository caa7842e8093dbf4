// SPDX-License-Identifier: MIT
// Tokens: when nodes give different ones, the largest is carried to a quorum before it is returned.
// The traces of two attempts that would return the same token are here, from one attempt's side.
#include "engine/rig.hpp"

using namespace redlock::engine::test;

TEST_CASE("a quorum that gave one token settles it in one round trip, whatever others gave") {
  Rig rig(5);
  const auto id = rig.acquire();
  rig.answer({0, 1, 2}, Granted{7});
  CHECK(rig.result<AcquireSucceeded>(id).token == 7);
}

TEST_CASE("the largest of different tokens is returned only when a quorum has it") {
  // A failed attempt bumped node 0. Returning 2 from {0: 2, 1: 1} at once would let another attempt
  // return 2 from {1: 2, 2: 1}.
  Rig rig(3);
  const auto id = rig.acquire();
  rig.answer(0, Granted{2});
  rig.answer(1, Granted{1});
  CHECK_FALSE(rig.ended(id));
  CHECK_FALSE(rig.oldest_is<HoldCommand>(0));
  REQUIRE(rig.oldest_is<HoldCommand>(1));
  CHECK(rig.oldest<HoldCommand>(1).token == 2);
  rig.answer(1, Held{2});
  CHECK(rig.result<AcquireSucceeded>(id).token == 2);
}

TEST_CASE("a held node whose own grant was above the token does not settle it") {
  // X got 1 on node 0, which expired there early, and 2 on node 1. Y took {0: 2, 2: 2} and returned
  // 2. X's straggler on node 2 got 3 after that: X must not return 2 as well.
  Rig rig(3);
  const auto id = rig.acquire();
  rig.answer(0, Granted{1});
  rig.answer(1, Granted{2});
  REQUIRE(rig.oldest<HoldCommand>(0).token == 2);
  rig.answer(2, Granted{3});
  CHECK_FALSE(rig.ended_with<AcquireSucceeded>(id));
  rig.answer(0, Taken{});
  CHECK_FALSE(rig.ended_with<AcquireSucceeded>(id));
  CHECK(rig.ended_with<Failed>(id));
  CHECK(rig.releases(1) == 1);
  CHECK(rig.releases(2) == 1);
}

TEST_CASE("a straggler with a smaller grant helps to settle") {
  Rig rig(5);
  const auto id = rig.acquire();
  rig.answer(0, Granted{9});
  rig.answer(1, Granted{3});
  rig.answer(2, Granted{3});
  rig.answer(1, Free{});  // expired there early
  CHECK_FALSE(rig.ended(id));
  rig.answer(3, Granted{4});
  REQUIRE(rig.oldest_is<HoldCommand>(3));
  rig.answer(3, Held{9});
  CHECK_FALSE(rig.ended(id));
  rig.answer(2, Held{9});
  CHECK(rig.result<AcquireSucceeded>(id).token == 9);
}

TEST_CASE("a straggler that gave the very token settles without another message") {
  Rig rig(3);
  const auto id = rig.acquire();
  rig.answer(0, Granted{9});
  rig.answer(1, Granted{3});
  rig.answer(2, Granted{9});
  CHECK(rig.result<AcquireSucceeded>(id).token == 9);
  CHECK_FALSE(rig.asked(2));
}

TEST_CASE("settling that times out is a failed attempt and releases every node") {
  Rig rig(3);
  const auto id = rig.acquire();
  rig.advance(100ms);
  rig.answer(0, Granted{2});
  rig.answer(1, Granted{1});
  rig.advance(250ms);
  CHECK(rig.failure(id) == Errc::no_quorum);
  for (NodeIndex node = 0; node < 3; ++node) CHECK(rig.releases(node) == 1);
}

TEST_CASE("settling does not make the validity longer") {
  Rig rig(3);
  const auto id = rig.acquire();
  rig.advance(100ms);
  rig.answer(0, Granted{2});
  rig.answer(1, Granted{1});
  rig.advance(100ms);
  rig.answer(1, Held{2});
  CHECK(rig.result<AcquireSucceeded>(id).valid_until == rig.start + 30s - 302ms);
}

TEST_CASE("a settle message whose script is unknown is sent in full") {
  Rig rig(3);
  const auto id = rig.acquire();
  rig.answer(0, Granted{2});
  rig.answer(1, Granted{1});
  rig.answer(1, NoScript{});
  const Send again = rig.take(1);
  CHECK(again.form == Form::source);
  rig.answer(again, Held{2});
  CHECK(rig.ended_with<AcquireSucceeded>(id));
}

TEST_CASE("a node whose fence did not rise has settled nothing") {
  Rig rig(3);
  const auto id = rig.acquire();
  rig.answer(0, Granted{2});
  rig.answer(1, Granted{1});
  rig.answer(2, down);
  rig.answer(1, Held{1});
  CHECK(rig.failure(id) == Errc::no_quorum);
  CHECK(rig.result<Failed>(id).ballots[1].vote == Vote::unavailable);
  for (const NodeIndex node : {0U, 1U}) CHECK(rig.releases(node) == 1);
}

TEST_CASE("settling has a node timeout of its own") {
  Rig rig(3);
  const auto id = rig.acquire();
  rig.advance(100ms);
  rig.answer(0, Granted{2});
  rig.answer(1, Granted{1});
  rig.advance(250ms - 1ns);
  CHECK_FALSE(rig.ended(id));
  rig.advance(1ns);
  CHECK(rig.failure(id) == Errc::no_quorum);
}

TEST_CASE("the node timeout of settling is capped by the validity less the least that is wanted") {
  Rig rig(3);
  auto what = Rig::request(300ms);  // trusted for 295 ms
  what.min_validity = 50ms;
  const auto id = rig.acquire(what);
  rig.advance(100ms);
  rig.answer(0, Granted{2});
  rig.answer(1, Granted{1});
  REQUIRE(rig.oldest_is<HoldCommand>(1));
  rig.advance(145ms - 1ns);
  CHECK_FALSE(rig.ended(id));
  rig.advance(1ns);
  CHECK(rig.failure(id) == Errc::no_quorum);
  for (NodeIndex node = 0; node < 3; ++node) CHECK(rig.releases(node) == 1);
}

TEST_CASE("a settle message that finds another owner is a refusal") {
  Rig rig(3);
  const auto id = rig.acquire();
  rig.answer(0, Granted{2});
  rig.answer(1, Granted{1});
  rig.answer(2, down);
  rig.answer(1, Taken{});
  CHECK(rig.failure(id) == Errc::contended);
  CHECK(rig.releases(0) == 1);
  CHECK(rig.releases(1) == 0);
}

TEST_CASE("a quorum that granted but could not settle is no_quorum: nobody else was seen") {
  Rig rig(3);
  const auto id = rig.acquire();
  rig.answer(0, Granted{2});
  rig.answer(1, Granted{1});
  rig.answer(2, Granted{3});  // above the token, so it cannot help
  CHECK_FALSE(rig.ended(id));
  rig.advance(250ms);
  CHECK(rig.failure(id) == Errc::no_quorum);
  for (NodeIndex node = 0; node < 3; ++node) CHECK(rig.releases(node) == 1);
}

TEST_CASE("a quorum that comes too late is not settled first") {
  Rig rig(3, {.node_timeout = 10s});
  const auto id = rig.acquire(Rig::request(1s));
  rig.pause(988ms);  // the validity of one second
  rig.answer(0, Granted{2});
  rig.answer(1, Granted{1});
  CHECK(rig.failure(id) == Errc::too_late);
  for (const NodeIndex node : {0U, 1U}) {
    CHECK(rig.asked_count(node) == 1);
    CHECK(rig.releases(node) == 1);
  }
}

TEST_CASE("one damaged fence is not believed: the others win with their token") {
  Rig rig(3);
  const auto id = rig.acquire();
  rig.answer(0, Granted{token_limit - 1});
  rig.answer({1, 2}, Granted{7});
  REQUIRE(rig.ended_with<AcquireSucceeded>(id));
  CHECK(rig.result<AcquireSucceeded>(id).token == 7);
  const Ballot& damaged = rig.attempts.back().ballots.at(0);
  CHECK(damaged.vote == Vote::unavailable);
  CHECK(damaged.cause == Cause::server_error);
  rig.release(rig.result<AcquireSucceeded>(id).grant);
  CHECK(rig.releases(0) == 1);  // it has granted, all the same
}

TEST_CASE("a failed attempt releases the node whose fence is damaged") {
  Rig rig(3);
  const auto id = rig.acquire();
  rig.answer(0, Granted{token_limit - 1});
  rig.answer({1, 2}, Refused{9s});
  CHECK(rig.failure(id) == Errc::contended);
  CHECK(rig.releases(0) == 1);
}

TEST_CASE("the largest token that clocks can give is believed") {
  Rig rig(1);
  const auto id = rig.acquire();
  rig.answer(0, Granted{token_limit / 2});
  CHECK(rig.result<AcquireSucceeded>(id).token == token_limit / 2);
}

TEST_CASE("an answer that belongs to another command settles nothing, and nobody waits for more") {
  Rig rig(3);
  const auto id = rig.acquire();
  rig.answer(0, Granted{7});
  rig.answer(1, Granted{5});
  rig.answer(2, down);
  rig.answer(1, ReleasedHere{});
  CHECK(rig.failure(id) == Errc::no_quorum);
  CHECK(rig.result<Failed>(id).ballots[1].cause == Cause::protocol_error);
}
