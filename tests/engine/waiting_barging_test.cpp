// SPDX-License-Identifier: MIT
// Calls that wait in no order: which of a client's ask the nodes, when the others move up, and how
// each ends.
#include "engine/line/lines.hpp"
#include "engine/rig.hpp"

using namespace redlock::engine::test;

namespace {

/// A client of one node.
struct Bargers : Rig {
  Bargers() : Rig(1, {.retry_min = 20ms, .retry_max = 60ms, .retry_cap = 60ms}) {}

  /// Answers every acquire with a refusal, whatever it leads to. How many there were.
  std::size_t refuse_all() { return serve({.acquire = Refused{30s}, .release = NotHeld{}}); }
  GrantId grant(RequestId id) {
    answer(0, Granted{++token_});
    return result<AcquireSucceeded>(id).grant;
  }

 private:
  Token token_ = 6;
};

}  // namespace

TEST_CASE("a crowd of calls that barge asks a node no more often than two of them do") {
  Bargers rig;
  for (int i = 0; i < 100; ++i) rig.acquire(Rig::waiting(60s));
  CHECK(rig.asked_count(0) == 2);
  std::size_t asked = rig.refuse_all();
  for (int i = 0; i < 1'000; ++i) {
    rig.advance(1ms);
    asked += rig.refuse_all();
  }
  CHECK(asked >= 2 * (1'000 / 60));
  CHECK(asked <= 2 * (1'000 / 20 + 1));
}

TEST_CASE("calls that barge for another name, or do not wait, ask at once beside a crowd") {
  Bargers rig;
  for (int i = 0; i < 10; ++i) rig.acquire(Rig::waiting(60s));
  auto other = Rig::waiting(60s);
  other.name = std::make_shared<const std::string>("seat B07");
  rig.acquire(std::move(other));
  CHECK(rig.asked_count(0) == 3);
  const auto tried = rig.acquire(Rig::waiting(0s));
  CHECK(rig.asked_count(0) == 4);
  rig.refuse_all();
  CHECK(rig.failure(tried) == Errc::contended);
}

TEST_CASE("of calls in order one, and of calls that barge two, ask for one name") {
  Bargers rig;
  rig.wakes(1);
  const auto in_order = Rig::waiting(60s, true);
  for (int i = 0; i < 5; ++i) {
    rig.acquire(in_order);
    rig.acquire(Rig::waiting(60s));
  }
  REQUIRE(rig.asked_count(0) == 3);
  std::size_t in_line = 0;
  for (int i = 0; i < 3; ++i) {
    in_line += rig.oldest<AcquireCommand>(0).place.line != 0 ? 1 : 0;
    rig.answer(0, Refused{30s});
  }
  CHECK(in_line == 1);
}

TEST_CASE("a call that barges moves up when one before it ends") {
  Bargers rig;
  const auto first = rig.acquire(Rig::waiting(60s));
  rig.acquire(Rig::waiting(60s));
  const auto third = rig.acquire(Rig::waiting(60s));
  REQUIRE(rig.asked_count(0) == 2);
  SUBCASE("with the lock: when the lock is given back, or after a pause") {
    const GrantId grant = rig.grant(first);
    rig.refuse_all();
    SUBCASE("") {
      rig.advance(60ms);
      CHECK(rig.asked_count(0) == 2);
    }
    SUBCASE("") {
      rig.release(grant);
      REQUIRE(rig.oldest_is<ReleaseCommand>(0));
      rig.answer(0, ReleasedHere{});
      REQUIRE(rig.asked_count(0) == 1);  // the second
      rig.drop(rig.grant(2));
      rig.answer(0, ReleasedHere{});
      REQUIRE(rig.asked_count(0) == 1);
      rig.grant(third);
    }
  }
  SUBCASE("without it: at once") {
    rig.refuse_all();
    rig.cancel(first);
    REQUIRE(rig.asked_count(0) == 1);
    rig.grant(third);
  }
}

TEST_CASE("a call that barges and waits behind others ends when its time has come") {
  struct End {
    Errc why;  // cancelled: by a stop request, or with its client
    Duration wait = 60s;
    Instant deadline = never;
  };
  for (const auto& [why, wait, deadline] :
       {End{Errc::timed_out, 100ms}, End{Errc::timed_out, 60s, Rig::start + 100ms},
        End{Errc::cancelled}}) {
    Bargers rig;
    const auto first = rig.acquire(Rig::waiting(60s));
    rig.acquire(Rig::waiting(60s));
    auto what = Rig::waiting(wait);
    what.deadline = deadline;
    const auto third = rig.acquire(what);
    const auto fourth = rig.acquire(Rig::waiting(60s));
    rig.refuse_all();
    rig.advance(10ms);
    CHECK_FALSE(rig.ended(third));
    why == Errc::cancelled ? rig.cancel(third) : rig.advance(90ms);
    CHECK(rig.failure(third) == why);
    rig.refuse_all();
    rig.cancel(first);
    REQUIRE(rig.asked_count(0) >= 1);
    while (!rig.ended(fourth)) rig.answer(0, Granted{7});
  }
}

TEST_CASE("a client passes a lock on among its calls, and lets others come once in a while") {
  Bargers rig;
  Instant released = rig.now;
  int pauses = 0;
  auto waiting = rig.acquire(Rig::waiting(60s));
  GrantId grant = rig.grant(waiting);
  for (int i = 0; i < 200; ++i) {
    waiting = rig.acquire(Rig::waiting(60s));
    rig.refuse_all();
    rig.advance(5ms);
    rig.refuse_all();
    rig.release(grant);
    rig.answer(0, ReleasedHere{});
    if (!rig.asked(0)) {
      CHECK(rig.now - released <= Lines::passing_on + 65ms);
      released = rig.now;
      ++pauses;
      rig.advance(60ms);
    }
    REQUIRE(rig.asked(0));
    grant = rig.grant(waiting);
  }
  CHECK(pauses >= 200 * 5 / 100);
  CHECK(pauses <= rig.since_start() / Lines::passing_on + 1);
}

TEST_CASE("a lock is passed on to the second call if the first one is asking already") {
  Bargers rig;
  const GrantId grant = rig.grant(rig.acquire(Rig::waiting(60s)));
  rig.acquire(Rig::waiting(60s));
  rig.take(0);
  rig.acquire(Rig::waiting(60s));
  rig.refuse_all();
  rig.release(grant);
  rig.answer(0, ReleasedHere{});
  CHECK(rig.oldest_is<AcquireCommand>(0));
}

TEST_CASE("who waits in order has a lock that its client gives back before those who barge") {
  Bargers rig;
  rig.wakes(1);
  const GrantId grant = rig.grant(rig.acquire(Rig::waiting(60s)));
  rig.acquire(Rig::waiting(60s));
  const auto in_order = rig.acquire(Rig::waiting(60s, true));
  rig.refuse_all();
  rig.release(grant);
  rig.answer(0, ReleasedHere{});
  REQUIRE(rig.asked_count(0) == 1);
  CHECK(rig.oldest<AcquireCommand>(0).place.line == in_order);
}
