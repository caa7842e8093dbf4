// SPDX-License-Identifier: MIT
// Fences further ahead than a quorum's fences and clocks can be: the damage of one node stays on
// that node, and what a quorum of nodes has reached is carried to the rest. And the floor of the
// next token, also of absurd clocks and of counters near their end.
#include "engine/acquire/floor_estimate.hpp"
#include "engine/rig.hpp"

using namespace redlock::engine::test;

namespace {

constexpr Token damaged = token_limit / 4 * 3 - 2;

/// Acquires, with these answers of nodes 0, 1, ... in this order.
RequestId answered(Rig& rig, std::initializer_list<Token> tokens) {
  const auto id = rig.acquire();
  NodeIndex node = 0;
  for (const Token token : tokens) rig.answer(node++, Granted{token});
  return id;
}

}  // namespace

TEST_CASE("a damaged fence is neither carried to the other nodes nor learnt as a floor") {
  for (const Token fence :
       {7 + fence_lead + 1, floor_limit - 1, floor_limit + 1, damaged, token_limit - 1}) {
    Rig rig(3, {.clock_floor = false});
    const auto id = answered(rig, {fence, 7, 7});
    CHECK(rig.token_of(id) == 7);
    const Ballot& vote = rig.attempts.back().ballots.at(0);
    CHECK(vote.vote == Vote::unavailable);
    CHECK(vote.cause == Cause::server_error);
    CHECK(vote.detail == "its fence counter is damaged (" + std::to_string(fence) + ")");
    CHECK(rig.all_answered());  // no settling
    rig.acquire();
    CHECK(rig.oldest<AcquireCommand>(1).floor == 8);
    rig.release(rig.grant_of(id));
    CHECK(rig.releases(0) == 1);  // it has granted, all the same
  }
}

TEST_CASE("nobody waits for a damaged fence, nor is the vote lost by it while others can vote") {
  Rig rig(5, {.clock_floor = false});
  const auto id = answered(rig, {damaged, 7, damaged, 7});
  CHECK_FALSE(rig.ended(id));
  rig.answer(4, Granted{7});
  CHECK(rig.token_of(id) == 7);
}

TEST_CASE("with too few other nodes a damaged fence is no quorum, and named as such") {
  Rig rig(3, {.clock_floor = false});
  const auto id = answered(rig, {damaged, 7});
  CHECK_FALSE(rig.ended(id));  // node 2 may be there as well
  SUBCASE("at once") {
    rig.answer(2, down);
    CHECK(rig.ballot(id, 2).cause == Cause::connection_failed);
  }
  SUBCASE("when the time is over") {
    rig.advance(250ms);
    CHECK(rig.ballot(id, 2).cause == Cause::timed_out);
  }
  REQUIRE(rig.failure(id) == Errc::no_quorum);
  CHECK(rig.ballot(id, 0).detail.find("damaged") != std::string::npos);
  CHECK(rig.releases(0) == 1);
  CHECK(rig.releases(1) == 1);
}

TEST_CASE("what a quorum has reached is believed, and carried to a node that lags") {
  Rig rig(3, {.clock_floor = false});
  const auto id = answered(rig, {floor_limit + 9, 7, floor_limit + 4});
  for (const NodeIndex node : {1U, 2U}) {
    REQUIRE(rig.oldest_is<HoldCommand>(node));
    CHECK(rig.oldest<HoldCommand>(node).token == floor_limit + 9);
  }
  rig.answer(1, Held{floor_limit + 9});
  CHECK(rig.token_of(id) == floor_limit + 9);
  CHECK(rig.attempts.back().ballots.at(2).vote == Vote::granted);
}

TEST_CASE("a second damage is measured by how far a quorum has come, wherever that is") {
  for (const Token reached : {floor_limit - 9, floor_limit + 9}) {
    Rig rig(5, {.clock_floor = false});
    const auto id = answered(rig, {token_limit - 3, reached, 7, reached, reached});
    CHECK(rig.token_of(id) == reached);
    CHECK(rig.attempts.back().ballots.at(0).vote == Vote::unavailable);
  }
}

TEST_CASE("a lead that clocks explain is believed of a single node") {
  const Token clock = 1'700'000'000'000'000;
  for (const bool clock_floor : {true, false}) {
    Rig rig(3, {.clock_floor = clock_floor});
    rig.engine.on_own_clock(rig.now, clock);
    const auto id = answered(rig, {clock + fence_lead, 7});
    REQUIRE(rig.oldest_is<HoldCommand>(1));
    rig.answer(1, Held{clock + fence_lead});
    CHECK(rig.token_of(id) == clock + fence_lead);
    rig.answer(2, Granted{7});

    Rig other(3, {.clock_floor = clock_floor});
    other.engine.on_own_clock(other.now, clock);
    CHECK(other.token_of(answered(other, {clock + fence_lead + 1, 7, 7})) == 7);
  }
}

TEST_CASE("tokens go on to their end on two nodes, where every vote is needed") {
  Rig rig(2, {.clock_floor = false});
  const auto id = answered(rig, {token_limit - 2, token_limit - 2});
  CHECK(rig.token_of(id) == token_limit - 2);
}

TEST_CASE("a straggler beyond the others settles nothing, and one below them is lifted") {
  Rig rig(5, {.clock_floor = false});
  const auto id = answered(rig, {9, 7, 7});
  rig.answer(3, Granted{damaged});
  CHECK_FALSE(rig.asked(3));
  rig.answer({1, 2}, Held{9});
  CHECK(rig.token_of(id) == 9);

  Rig far(5, {.clock_floor = false});
  const auto second = answered(far, {damaged, damaged - 1, damaged - 1});
  far.answer(3, Granted{7});
  REQUIRE(far.oldest_is<HoldCommand>(3));
  far.answer({1, 3}, Held{damaged});
  CHECK(far.token_of(second) == damaged);
}

TEST_CASE("no floor is beyond what acquire takes: neither of an attempt nor of a heal") {
  Rig rig(3, {.clock_floor = false});
  rig.lease_on_all(Rig::renewed(), damaged);
  rig.forgets(2, damaged);
  REQUIRE(rig.oldest_is<AcquireCommand>(2));
  CHECK(rig.oldest<AcquireCommand>(2).floor == floor_limit);
  rig.acquire();
  CHECK(rig.oldest<AcquireCommand>(0).floor == floor_limit);
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

TEST_CASE("a node that kept a client waiting has read its clock in the end, for the floor") {
  Rig rig(1);
  // Asked 20 ms ago, of which 4 ms were the way.
  rig.engine.on_node_clock(rig.now, 0, 1'700'000'000'010'000, 10ms, 4ms);
  rig.acquire();
  CHECK(rig.oldest<AcquireCommand>(0).floor == 1'700'000'000'002'000);
}

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

TEST_CASE("a lead that an earlier token of this client explains is believed of a single node") {
  Rig rig(3, {.clock_floor = false});
  CHECK(rig.token_of(answered(rig, {damaged, damaged, damaged})) == damaged);
  const auto id = answered(rig, {damaged + 1, floor_limit});
  rig.answer(2, down);
  REQUIRE(rig.oldest_is<HoldCommand>(1));
  rig.answer(1, Held{damaged + 1});
  CHECK(rig.token_of(id) == damaged + 1);
}
