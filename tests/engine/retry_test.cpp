// SPDX-License-Identifier: MIT
// Waiting: attempts with random pauses until the lock is granted or the time given is over.
#include "engine/rig.hpp"

using namespace redlock::engine::test;

namespace {

AcquireRequest waiting(Duration wait) {
  auto what = Rig::request();
  what.wait = wait;
  return what;
}

/// Lets every node refuse whatever acquire waits at it, and confirm whatever release.
void refuse_all(Rig& rig, NodeIndex nodes,
                std::optional<std::chrono::milliseconds> expires_in = 30s) {
  for (NodeIndex node = 0; node < nodes; ++node) {
    while (rig.asked(node)) {
      if (rig.oldest_is<AcquireCommand>(node)) {
        rig.answer(node, Refused{expires_in});
      } else {
        rig.answer(node, NotHeld{});
      }
    }
  }
}

}  // namespace

TEST_CASE("a waiting caller tries again after a random pause, and gets the lock when it is free") {
  Rig rig(3);
  const auto id = rig.acquire(waiting(10s));
  const auto first_owner = rig.oldest<AcquireCommand>(0).owner;
  refuse_all(rig, 3);
  CHECK_FALSE(rig.ended(id));
  rig.advance(49ms);
  CHECK_FALSE(rig.asked(0));
  rig.advance(102ms);
  REQUIRE(rig.oldest_is<AcquireCommand>(0));
  CHECK(rig.oldest<AcquireCommand>(0).owner != first_owner);
  rig.answer({0, 1}, Granted{7});
  CHECK(rig.ended_with<AcquireSucceeded>(id));
}

TEST_CASE("pauses double up to the cap") {
  Rig rig(1);
  rig.acquire(waiting(Duration::max()));
  Duration longest{};
  for (int attempt = 0; attempt < 20; ++attempt) {
    refuse_all(rig, 1);
    const Instant before = rig.now;
    while (!rig.asked(0)) rig.advance(1ms);
    longest = std::max(longest, rig.now - before);
    CHECK(rig.now - before <= 501ms);
  }
  CHECK(longest >= 250ms);
}

TEST_CASE("a pause never passes the time at which a node said it would be free") {
  Rig rig(1);
  rig.acquire(waiting(10s));
  refuse_all(rig, 1, 20ms);
  rig.advance(21ms);
  CHECK(rig.asked(0));
}

TEST_CASE("a waiting time that ends while others hold the lock is timed_out") {
  Rig rig(3);
  const auto id = rig.acquire(waiting(1s));
  while (!rig.ended(id)) {
    refuse_all(rig, 3);
    rig.advance(1ms);
  }
  CHECK(rig.failure(id) == Errc::timed_out);
  CHECK(rig.since_start() >= 1s);
  CHECK(rig.since_start() <= 1001ms);
  CHECK(rig.attempts.size() > 3);
  CHECK(rig.result<Failed>(id).ballots.at(0).vote == Vote::refused);
}

TEST_CASE("a waiting time that ends without a quorum is no_quorum") {
  Rig rig(3);
  const auto id = rig.acquire(waiting(1s));
  while (!rig.ended(id)) {
    for (NodeIndex node = 0; node < 3; ++node) {
      while (rig.asked(node)) rig.answer(node, down);
    }
    rig.advance(1ms);
  }
  CHECK(rig.failure(id) == Errc::no_quorum);
}

TEST_CASE("a deadline ends an attempt under way and releases every node") {
  Rig rig(3);
  auto what = waiting(10s);
  what.deadline = rig.now + 100ms;
  const auto id = rig.acquire(what);
  rig.advance(99ms);
  CHECK_FALSE(rig.ended(id));
  rig.advance(1ms);
  CHECK(rig.failure(id) == Errc::timed_out);
  for (NodeIndex node = 0; node < 3; ++node) CHECK(rig.releases(node) == 1);
}

TEST_CASE("a deadline that is over sends nothing") {
  Rig rig(3);
  auto what = Rig::request();
  what.deadline = rig.now;
  const auto id = rig.acquire(what);
  CHECK(rig.failure(id) == Errc::timed_out);
  CHECK_FALSE(rig.asked(0));
}

TEST_CASE("waiting ends at once when no waiting can help: a wrong password on a quorum's worth") {
  const Unavailable wrong{Cause::authentication, Delivery::not_sent, "WRONGPASS"};
  Rig rig(3);
  const auto id = rig.acquire(waiting(Duration::max()));
  rig.answer(0, wrong);
  CHECK_FALSE(rig.ended(id));
  rig.answer(1, wrong);
  CHECK(rig.failure(id) == Errc::no_quorum);
  CHECK(rig.result<Failed>(id).ballots[1].cause == Cause::authentication);
}

TEST_CASE("cancelling while pausing ends the call and starts nothing more") {
  Rig rig(3);
  const auto id = rig.acquire(waiting(Duration::max()));
  refuse_all(rig, 3);
  rig.cancel(id);
  CHECK(rig.failure(id) == Errc::cancelled);
  rig.advance(10s);
  CHECK_FALSE(rig.asked(0));
  rig.cancel(id);  // ended already
}

TEST_CASE("an attempt that was granted too late is tried again while there is time to wait") {
  Rig rig(3, {.node_timeout = 10s});
  auto what = Rig::request(1s);
  what.wait = 10s;
  const auto id = rig.acquire(what);
  rig.pause(988ms);
  rig.answer({0, 1}, Granted{7});
  REQUIRE(rig.attempts.size() == 1);
  CHECK(rig.attempts[0].failure == Errc::too_late);
  CHECK_FALSE(rig.ended(id));
  refuse_all(rig, 3);
  rig.advance(151ms);
  REQUIRE(rig.oldest_is<AcquireCommand>(0));
  rig.answer({0, 1}, Granted{7});
  CHECK(rig.ended_with<AcquireSucceeded>(id));
}

TEST_CASE("a waiting time that ends lets the attempt under way be decided") {
  for (const bool free : {true, false}) {
    Rig rig(3);
    const auto id = rig.acquire(waiting(5ms));
    rig.advance(20ms);
    REQUIRE_FALSE(rig.ended(id));
    if (free) {
      rig.answer({0, 1}, Granted{7});
      CHECK(rig.ended_with<AcquireSucceeded>(id));
    } else {
      rig.answer({0, 1}, Refused{9s});
      CHECK(rig.failure(id) == Errc::timed_out);  // and there is no other attempt
    }
  }
}

TEST_CASE("a deadline does not let the attempt under way be decided") {
  Rig rig(3);
  auto what = waiting(5ms);
  what.deadline = rig.now + 5ms;
  const auto id = rig.acquire(what);
  rig.advance(5ms);
  CHECK(rig.failure(id) == Errc::timed_out);
  rig.answer({0, 1}, Granted{7});
  for (NodeIndex node = 0; node < 3; ++node) CHECK(rig.releases(node) == 1);
}

TEST_CASE("a lock that is said to be free in centuries is asked for as usual") {
  Rig rig(1);
  rig.acquire(waiting(10s));
  refuse_all(rig, 1, std::chrono::milliseconds::max());
  rig.advance(49ms);
  CHECK_FALSE(rig.asked(0));
  rig.advance(102ms);
  CHECK(rig.asked(0));
}

TEST_CASE("the node that will be free first sets the pause, whatever the others say") {
  constexpr auto centuries = std::chrono::milliseconds::max();
  for (const auto& [zero, one] : {std::pair{20ms, centuries}, std::pair{centuries, 20ms}}) {
    Rig rig(3);
    rig.acquire(waiting(10s));
    rig.answer(0, Refused{zero});
    rig.answer(1, Refused{one});
    rig.advance(21ms);
    CHECK(rig.oldest_is<AcquireCommand>(0));
  }
}
