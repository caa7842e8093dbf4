// SPDX-License-Identifier: MIT
// Waiting: attempts with random pauses until the lock is granted or the time given is over.
#include "engine/rig.hpp"

using namespace redlock::engine::test;

namespace {

/// Lets every node refuse whatever acquire waits at it, and confirm whatever release.
void refuse_all(Rig& rig, const Reply& refusal = Refused{30s}) {
  rig.serve({.acquire = refusal, .release = NotHeld{}});
}

}  // namespace

TEST_CASE("a waiting caller tries again after a random pause, and gets the lock when it is free") {
  for (const Reply& refusal :
       {Reply{Refused{30s}}, Reply{Refused{std::chrono::milliseconds::max()}},
        Reply{AlreadyOurs{}}}) {
    Rig rig(3);
    const auto id = rig.acquire(Rig::waiting(10s));
    const auto first_owner = rig.oldest<AcquireCommand>(0).owner;
    refuse_all(rig, refusal);
    CHECK_FALSE(rig.ended(id));
    rig.advance(49ms);
    CHECK_FALSE(rig.asked(0));
    rig.advance(102ms);
    REQUIRE(rig.oldest_is<AcquireCommand>(0));
    CHECK(rig.oldest<AcquireCommand>(0).owner != first_owner);
    rig.answer({0, 1}, Granted{7});
    CHECK(rig.ended_with<AcquireSucceeded>(id));
  }
}

TEST_CASE("pauses double up to the cap") {
  Rig rig(1);
  rig.acquire(Rig::waiting(Duration::max()));
  Duration longest{};
  for (int attempt = 0; attempt < 20; ++attempt) {
    refuse_all(rig);
    const Duration pause = rig.pause_of(0);
    longest = std::max(longest, pause);
    CHECK(pause <= 501ms);
  }
  CHECK(longest >= 250ms);
}

TEST_CASE("a waiting time that ends while others hold the lock is timed_out, else no_quorum") {
  for (const bool held : {true, false}) {
    Rig rig(3);
    const auto id = rig.acquire(Rig::waiting(1s));
    while (!rig.ended(id)) {
      if (held) refuse_all(rig);
      rig.answer_all(down);
      rig.advance(1ms);
    }
    CHECK(rig.failure(id) == (held ? Errc::timed_out : Errc::no_quorum));
    CHECK(rig.since_start() >= 1s);
    CHECK(rig.since_start() <= 1001ms);
    CHECK(rig.attempts.size() > 3);
    CHECK(rig.ballot(id, 0).vote == (held ? Vote::refused : Vote::unavailable));
  }
}

TEST_CASE("of a waiting time that is nearly over half is left for the last attempt") {
  Rig rig(3);
  rig.acquire(Rig::waiting(60ms));
  refuse_all(rig);
  CHECK(rig.only_after(30ms, [&] { return rig.asked(0); }));
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
  const auto id = rig.attempt({wrong}, Rig::waiting(Duration::max()));
  CHECK_FALSE(rig.ended(id));
  rig.answer(1, wrong);
  CHECK(rig.failure(id) == Errc::no_quorum);
  CHECK(rig.ballot(id, 1).cause == Cause::authentication);
}

TEST_CASE("cancelling while pausing ends the call and starts nothing more") {
  Rig rig(3);
  const auto id = rig.acquire(Rig::waiting(Duration::max()));
  refuse_all(rig);
  rig.cancel(id);
  CHECK(rig.failure(id) == Errc::cancelled);
  rig.advance(10s);
  CHECK_FALSE(rig.asked(0));
  rig.cancel(id);  // ended already
}

TEST_CASE("the node that will be free first sets the pause, whatever the others say") {
  constexpr auto centuries = std::chrono::milliseconds::max();
  for (const auto& [zero, one] : {std::pair{20ms, centuries}, std::pair{centuries, 20ms}}) {
    Rig rig(3);
    rig.attempt({Refused{zero}, Refused{one}}, Rig::waiting(10s));
    rig.advance(21ms);
    CHECK(rig.oldest_is<AcquireCommand>(0));
  }
}
