// SPDX-License-Identifier: MIT
// The floor of the next token: what absurd clocks and counters near their end make of it. What it
// is in peace is in acquire_test.cpp.
#include <doctest/doctest.h>

#include "engine/floor_estimate.hpp"
#include "engine/rig.hpp"

using namespace redlock::engine;
using namespace redlock::engine::test;

TEST_CASE("an absurd clock, the only one known, does not use the tokens up") {
  Rig rig(3);
  rig.engine.on_node_clock(rig.now, 1, std::int64_t{1} << 60);
  rig.acquire();
  CHECK(rig.oldest<AcquireCommand>(0).floor == Token{1} << 52);
}

TEST_CASE("our own clock is the floor until a node's is known, and never again") {
  Rig rig(3);
  rig.engine.on_own_clock(rig.now, 1'700'000'000'000'000);
  rig.acquire();
  CHECK(rig.oldest<AcquireCommand>(0).floor == 1'700'000'000'000'000);
  Rig told(3);
  told.engine.on_node_clock(told.now, 1, 5'000'000);
  told.engine.on_own_clock(told.now, 1'700'000'000'000'000);
  told.acquire();
  CHECK(told.oldest<AcquireCommand>(0).floor == 5'000'000);
}

TEST_CASE("a clock before 1970 is no floor") {
  Rig rig(1);
  rig.engine.on_node_clock(rig.now, 0, -1'700'000'000'000'000);
  rig.acquire();
  CHECK(rig.oldest<AcquireCommand>(0).floor == 1);
}

TEST_CASE("the floor after the last token stays below the limit of tokens") {
  FloorEstimate floors(1, true);
  floors.on_token(3, token_limit - 2);
  CHECK(floors.floor({}, 3) == token_limit - 1);
  floors.on_token(3, token_limit - 1);
  CHECK(floors.floor({}, 3) == token_limit - 1);
}

TEST_CASE("an older token does not lower the floor") {
  FloorEstimate floors(1, true);
  floors.on_token(3, 9);
  floors.on_token(3, 5);
  CHECK(floors.floor({}, 3) == 10);
}
