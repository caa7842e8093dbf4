// SPDX-License-Identifier: MIT
// Tokens: when nodes give different ones, the largest is carried to a quorum before it is returned.
// The traces of two attempts that would return the same token are here, from one attempt's side.
#include <doctest/doctest.h>

#include "engine/rig.hpp"

using namespace redlock;
using namespace redlock::engine;
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
