// SPDX-License-Identifier: MIT
// The floor of the next token: what absurd clocks and counters near their end make of it. What it
// is in peace is in acquire_test.cpp.
#include "engine/acquire/floor_estimate.hpp"
#include "engine/rig.hpp"

using namespace redlock::engine::test;

TEST_CASE("an absurd clock, the only one there is, does not use the tokens up") {
  Rig rig(1);
  rig.engine.on_node_clock(rig.now, 0, std::int64_t{1} << 60);
  rig.acquire();
  CHECK(rig.oldest<AcquireCommand>(0).floor == Token{1} << 52);
}

TEST_CASE("our own clock is the floor until a quorum of the nodes' is known, and never again") {
  Rig rig(3);
  rig.engine.on_own_clock(rig.now, 1'700'000'000'000'000);
  rig.acquire();
  CHECK(rig.oldest<AcquireCommand>(0).floor == 1'700'000'000'000'000);
  Rig told(3);
  told.engine.on_node_clock(told.now, 1, 5'000'000);
  told.engine.on_node_clock(told.now, 0, 6'000'000);
  told.engine.on_own_clock(told.now, 1'700'000'000'000'000);
  told.acquire();
  CHECK(told.oldest<AcquireCommand>(0).floor == 5'000'000);
}

TEST_CASE("one clock of several is no floor: it may be absurd") {
  Rig rig(5);
  for (const NodeIndex node : {3U, 1U, 3U}) {
    rig.engine.on_node_clock(rig.now, node, std::int64_t{1} << 60);
  }
  rig.acquire();
  CHECK(rig.oldest<AcquireCommand>(0).floor == 1);
  rig.engine.on_own_clock(rig.now, 5'000'000);
  rig.acquire();
  rig.take(0);
  CHECK(rig.oldest<AcquireCommand>(0).floor == 5'000'000);
  rig.engine.on_node_clock(rig.now, 0, 6'000'000);  // the third of five
  rig.acquire();
  rig.take(0);
  CHECK(rig.oldest<AcquireCommand>(0).floor == floor_limit);
}

TEST_CASE("a clock before 1970 is no floor") {
  Rig rig(1);
  rig.engine.on_node_clock(rig.now, 0, -1'700'000'000'000'000);
  rig.acquire();
  CHECK(rig.oldest<AcquireCommand>(0).floor == 1);
}

TEST_CASE("the floor after the last token stays far below the limit of tokens") {
  FloorEstimate floors(1, true);
  for (const Token token : {floor_limit - 1, floor_limit, token_limit - 1}) {
    floors.on_token(3, token);
    CHECK(floors.floor({}, 3) == floor_limit);
  }
}

TEST_CASE("an older token does not lower the floor") {
  FloorEstimate floors(1, true);
  floors.on_token(3, 9);
  floors.on_token(3, 5);
  CHECK(floors.floor({}, 3) == 10);
}
