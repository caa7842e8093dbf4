// SPDX-License-Identifier: MIT
// Tokens: when nodes give different ones, the largest is carried to a quorum before it is returned.
// The traces of two attempts that would return the same token are here, from one attempt's side.
#include "engine/rig.hpp"

using namespace redlock::engine::test;

namespace {

/// Node 0 has given 2, node 1 has given 1 and is asked to rise; node 2 has not answered.
RequestId settling(Rig& rig) {
  const RequestId id = rig.attempt({Granted{2}, Granted{1}});
  CHECK_FALSE(rig.ended(id));
  CHECK_FALSE(rig.oldest_is<HoldCommand>(0));
  REQUIRE(rig.oldest_is<HoldCommand>(1));
  CHECK(rig.oldest<HoldCommand>(1).token == 2);
  return id;
}

}  // namespace

TEST_CASE("the largest of different tokens is returned only when a quorum has it") {
  // A failed attempt bumped node 0. Returning 2 from {0: 2, 1: 1} at once would let another attempt
  // return 2 from {1: 2, 2: 1}.
  Rig rig(3);
  const auto id = settling(rig);
  bool in_full = false;
  SUBCASE("as it is asked") {}
  SUBCASE("in full, where the script is unknown") {
    rig.answer(1, NoScript{});
    in_full = true;
  }
  rig.advance(200ms);
  const Send settles = rig.take(1);
  CHECK((settles.form == Form::source) == in_full);
  rig.answer(settles, Held{2});
  CHECK(rig.token_of(id) == 2);
  // Which makes the validity no longer.
  CHECK(rig.result<AcquireSucceeded>(id).valid_until == rig.start + 30s - 302ms);
}

TEST_CASE("a held node whose own grant was above the token does not settle it") {
  // X got 1 on node 0, which expired there early, and 2 on node 1. Y took {0: 2, 2: 2} and returned
  // 2. X's straggler on node 2 got 3 after that: X must not return 2 as well.
  Rig rig(3);
  const auto id = rig.attempt({Granted{1}, Granted{2}});
  REQUIRE(rig.oldest<HoldCommand>(0).token == 2);
  rig.answer(2, Granted{3});
  CHECK_FALSE(rig.ended(id));
  SUBCASE("and where it was given the lock was taken since") {
    rig.answer(0, Taken{});
    CHECK(rig.ended_with<Failed>(id));
    CHECK(rig.releases(1) == 1);
    CHECK(rig.releases(2) == 1);
  }
  SUBCASE("nobody else was seen: no_quorum") {
    rig.advance(250ms);
    CHECK(rig.failure(id) == Errc::no_quorum);
    CHECK(rig.all_have_releases(1));
  }
}

TEST_CASE("a straggler with a smaller grant helps to settle") {
  Rig rig(5);
  const auto id = rig.attempt({Granted{9}, Granted{3}, Granted{3}});
  rig.answer(1, Free{});  // expired there early
  CHECK_FALSE(rig.ended(id));
  rig.answer(3, Granted{4});
  REQUIRE(rig.oldest_is<HoldCommand>(3));
  rig.answer(3, Held{9});
  CHECK_FALSE(rig.ended(id));
  rig.answer(2, Held{9});
  CHECK(rig.token_of(id) == 9);

  // One that gave the very token does without another message.
  Rig same(3);
  CHECK(same.token_of(same.attempt({Granted{9}, Granted{3}, Granted{9}})) == 9);
  CHECK_FALSE(same.asked(2));
}

TEST_CASE("a grant that ended before it was settled adds nothing to the validity") {
  Rig rig(5);
  const auto id = rig.acquire();
  rig.answer(0, Granted{5});
  rig.advance(10ms);
  for (const NodeIndex node : {1U, 2U, 3U}) rig.answer(node, NoScript{});
  // What these grant counts from now on.
  rig.answer(1, Granted{5});
  rig.answer(2, Granted{4});
  REQUIRE(rig.oldest_is<HoldCommand>(2));
  rig.answer(2, Free{});
  CHECK_FALSE(rig.ended(id));
  rig.answer(3, Granted{5});
  CHECK(rig.result<AcquireSucceeded>(id).valid_until == rig.start + 30s - 302ms);
}

TEST_CASE("settling has a node timeout of its own, and releases every node when it is over") {
  Rig rig(3);
  const auto id = rig.acquire();
  rig.advance(100ms);
  rig.answer(0, Granted{2});
  rig.answer(1, Granted{1});
  REQUIRE(rig.oldest_is<HoldCommand>(1));
  CHECK(rig.ends_after(250ms, id));
  CHECK(rig.failure(id) == Errc::no_quorum);
  CHECK(rig.ballot(id, 0).vote == Vote::granted);
  CHECK(rig.ballot(id, 1).cause == Cause::timed_out);
  CHECK(rig.all_have_releases(1));
}

TEST_CASE("a token that is settled too late wins nothing, whoever notices first") {
  Rig rig(3);
  auto what = Rig::request(300ms);  // trusted for 295 ms
  what.min_validity = 150ms;
  const auto id = rig.acquire(what);
  rig.answer(0, Granted{2});
  rig.answer(1, Granted{1});
  REQUIRE(rig.oldest_is<HoldCommand>(1));
  SUBCASE("a timer") {
    CHECK(rig.ends_after(145ms, id));
  }
  SUBCASE("the answer") {
    rig.pause(145ms);
    rig.answer(1, Held{2});
  }
  CHECK(rig.failure(id) == Errc::too_late);
  CHECK(rig.all_have_releases(1));
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

TEST_CASE("later grants lengthen the time to settle with the validity") {
  Rig rig(3);
  rig.wakes(3);
  auto what = Rig::waiting(60s, true);
  what.lease = 300ms;  // trusted for 295 ms
  what.min_validity = 150ms;
  const auto id = rig.acquire(what);
  rig.advance(30ms);
  rig.answer(0, Granted{9});
  rig.answer({1, 2}, Refused{30s});
  rig.advance(30ms);
  rig.wake(1, id);
  rig.advance(10ms);
  rig.answer(1, Granted{1});  // until 145 ms, by node 0
  rig.answer(2, Granted{1});  // until 205 ms, by nodes that were asked at 60 ms
  rig.advance(134ms);
  REQUIRE(rig.attempts.empty());
  rig.advance(1ms);
  REQUIRE(rig.attempts.size() == 1);
  CHECK(rig.attempts[0].failure == Errc::too_late);
}

TEST_CASE("a node whose fence did not rise has settled nothing, nor one that says anything else") {
  struct Answer {
    Reply reply;
    Errc failure;
    Vote vote;
    Cause cause;
  };
  for (const Answer& answer :
       {Answer{Held{1}, Errc::no_quorum, Vote::unavailable, Cause::server_error},
        Answer{Taken{}, Errc::contended, Vote::refused, Cause::none},
        // This belongs to another command.
        Answer{ReleasedHere{}, Errc::no_quorum, Vote::unavailable, Cause::protocol_error}}) {
    Rig rig(3);
    const auto id = settling(rig);
    rig.answer(2, down);
    rig.answer(1, answer.reply);
    CHECK(rig.failure(id) == answer.failure);
    CHECK(rig.ballot(id, 1).vote == answer.vote);
    CHECK(rig.ballot(id, 1).cause == answer.cause);
    CHECK(rig.releases(0) == 1);
    CHECK(rig.releases(1) == (answer.vote == Vote::refused ? 0 : 1));
  }
}
