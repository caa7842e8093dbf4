// SPDX-License-Identifier: MIT
// The floor of the next token: what absurd clocks and counters near their end make of it. What it
// is in peace is in acquire_test.cpp.
#include "engine/acquire/floor_estimate.hpp"
#include "engine/rig.hpp"

using namespace redlock::engine::test;

TEST_CASE("the only clock there is, if it counts, is the floor, within the bounds of a token") {
  struct Clock {
    bool counts;
    std::int64_t unix_us;
    Token floor;
  };
  for (const Clock& clock :
       {Clock{true, std::int64_t{1} << 60, Token{1} << 52},  // absurd, and uses no tokens up
        Clock{true, -1'700'000'000'000'000, 1},              // before 1970
        Clock{false, 1'700'000'000'000'000, 1}}) {
    Rig rig(1, {.clock_floor = clock.counts});
    rig.engine.on_node_clock(rig.now, 0, clock.unix_us);
    rig.acquire();
    CHECK(rig.oldest<AcquireCommand>(0).floor == clock.floor);
  }
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

TEST_CASE("the floor after a token stays far below the limit, and older ones do not lower it") {
  FloorEstimate floors(1, true);
  floors.on_token(3, 9);
  floors.on_token(3, 5);
  CHECK(floors.floor({}, 3) == 10);
  for (const Token token : {floor_limit - 1, floor_limit, token_limit - 1}) {
    floors.on_token(3, token);
    CHECK(floors.floor({}, 3) == floor_limit);
  }
}
