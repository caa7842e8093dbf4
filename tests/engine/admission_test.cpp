// SPDX-License-Identifier: MIT
// A burst of requests: what nodes could not answer in time waits in the client for room.
#include "engine/acquire/admission.hpp"

#include "engine/rig.hpp"

using namespace redlock::engine::test;

namespace {

/// Three nodes, and so many attempts (or rounds of callers) at once.
Rig narrow(std::uint32_t at_once) {
  return Rig(3, {.attempts_at_once = at_once, .rounds_at_once = at_once});
}

std::vector<RequestId> acquire_many(Rig& rig, int count) {
  std::vector<RequestId> requests;
  for (int i = 0; i < count; ++i) requests.push_back(rig.acquire());
  return requests;
}

}  // namespace

TEST_CASE("attempts beyond the window wait for room, and have it in order") {
  Rig rig = narrow(2);
  const auto requests = acquire_many(rig, 5);
  for (std::size_t decided = 0; decided < 5; ++decided) {
    CHECK(rig.asked_count(0) == std::min<std::size_t>(2, 5 - decided));
    rig.answer({0, 1, 2}, Granted{7});
    CHECK(rig.ended_with<AcquireSucceeded>(requests[decided]));
  }
}

TEST_CASE("the time of an attempt that had to wait counts from its send") {
  Rig rig = narrow(1);
  const auto requests = acquire_many(rig, 3);
  rig.advance(100ms);
  rig.answer({0, 1, 2}, Granted{7});
  rig.advance(249ms);
  CHECK_FALSE(rig.ended(requests[1]));
  rig.answer({0, 1, 2}, Granted{8});
  const auto& second = rig.result<AcquireSucceeded>(requests[1]);
  CHECK(second.valid_until == rig.start + 100ms + 30s - 302ms);
  rig.advance(250ms);
  CHECK(rig.failure(requests[2]) == Errc::no_quorum);
}

TEST_CASE("a failed attempt makes room, and so does one that is cancelled") {
  Rig rig = narrow(1);
  const auto requests = acquire_many(rig, 3);
  rig.answer({0, 1}, Refused{});
  CHECK(rig.failure(requests[0]) == Errc::contended);
  rig.take(2);
  REQUIRE(rig.oldest_is<AcquireCommand>(0));
  rig.cancel(requests[1]);
  rig.take(0);  // the cancelled acquire
  CHECK(rig.oldest_is<ReleaseCommand>(0));
  rig.take(0);
  CHECK(rig.oldest_is<AcquireCommand>(0));
}

TEST_CASE("what waits for room is ended by its deadline and by its caller, and sends nothing") {
  Rig rig = narrow(1);
  rig.acquire();
  auto what = Rig::request();
  what.deadline = rig.now + 100ms;
  const auto until = rig.acquire(what);
  const auto cancelled = rig.acquire();
  const auto last = rig.acquire();
  rig.cancel(cancelled);
  CHECK(rig.failure(cancelled) == Errc::cancelled);
  rig.advance(100ms);
  CHECK(rig.failure(until) == Errc::timed_out);
  CHECK(rig.asked_count(0) == 1);
  rig.answer({0, 1, 2}, Granted{7});
  CHECK(rig.asked_count(0) == 1);
  rig.answer({0, 1, 2}, Granted{8});
  CHECK(rig.ended_with<AcquireSucceeded>(last));
}

TEST_CASE("whoever waits for locks has one attempt at the least, and ends in time after that") {
  Rig rig = narrow(1);
  rig.acquire();
  const auto waiting = rig.acquire(Rig::waiting(50ms));
  rig.advance(100ms);
  rig.answer({0, 1, 2}, Granted{7});
  CHECK_FALSE(rig.ended(waiting));
  rig.answer({0, 1, 2}, Refused{});
  CHECK(rig.failure(waiting) == Errc::timed_out);
}

TEST_CASE("a call that waits for room after its first attempt ends with its waiting time") {
  for (const bool gave_votes_back : {false, true}) {
    CAPTURE(gave_votes_back);
    Rig rig = narrow(1);
    const auto waiting = rig.acquire(Rig::waiting(200ms, gave_votes_back));
    rig.answer(0, gave_votes_back ? Reply{Granted{7}} : Reply{Refused{}});
    rig.answer({1, 2}, Refused{});
    rig.advance(1ms);
    rig.acquire();  // takes the room while the first pauses
    CHECK(rig.ends_after(199ms, waiting));
    CHECK(rig.failure(waiting) == Errc::timed_out);
  }
}

TEST_CASE("renewals, releases and repetitions wait for no room") {
  Rig rig = narrow(1);
  const auto lease = rig.lease_on_all(Rig::renewed());
  const auto other = rig.lease_on_all();
  rig.acquire();
  rig.take_each();
  rig.acquire();
  rig.release(other.grant);
  CHECK(rig.oldest_is<ReleaseCommand>(0));
  rig.answer({0, 1, 2}, ReleasedHere{});
  rig.extend(lease.grant, 30s);
  rig.extend(lease.grant, 30s);
  CHECK(rig.asked_count(0) == 1);
  rig.take_each();
  rig.pause(10s);
  rig.advance(0ns);
  bool renewed = false;
  while (rig.asked(0)) renewed |= std::holds_alternative<HoldCommand>(rig.take(0).command);
  CHECK(renewed);
}

TEST_CASE("rounds that extend or enter wait for room; one whose lease has gone is told so") {
  Rig rig = narrow(1);
  const auto one = rig.lease_on_all();
  const auto two = rig.lease_on_all();
  const auto first = rig.extend(one.grant, 30s);
  const auto second = rig.extend(two.grant, 30s);
  const auto third = rig.enter(one.grant);
  const auto fourth = rig.extend(two.grant, 30s);
  CHECK(rig.asked_count(0) == 1);
  rig.advance(200ms);
  rig.answer({0, 1, 2}, Held{7});
  CHECK(rig.ended_with<ExtendSucceeded>(first));
  rig.advance(200ms);
  CHECK_FALSE(rig.ended(second));
  rig.drop(two.grant);
  CHECK(rig.failure(second) == Errc::lost);
  for (NodeIndex node = 0; node < 3; ++node) {
    rig.take(node);  // the extension's
    rig.answer(node, ReleasedHere{});
    rig.answer(node, Held{7});
  }
  CHECK(rig.ended_with<EnterSucceeded>(third));
  CHECK(rig.failure(fourth) == Errc::lost);
}

constexpr Instant start = Rig::start;

TEST_CASE("a window is halved by attempts that take long, once for all that began before") {
  Admission admission(128, 250ms);
  for (int i = 0; i < 100; ++i) admission.ended(start + 250ms, start, false);
  CHECK(admission.window() == 64);
  for (int i = 0; i < 100; ++i) admission.ended(start + 500ms, start + 251ms, false);
  CHECK(admission.window() == 32);
  for (int turn = 0; turn < 10; ++turn) {
    const Instant began = start + std::chrono::seconds(1 + turn);
    admission.ended(began + 250ms, began, false);
  }
  CHECK(admission.window() == 16);
}

TEST_CASE("the time for which a call waited for others narrows no window") {
  Rig rig = narrow(64);
  rig.wakes(3);
  const auto id = rig.acquire(Rig::waiting(60s, true));
  rig.answer({0, 1, 2}, Refused{.expires_in = 30s, .foreign_type = false, .place = 0});
  rig.advance(900ms);
  rig.wake(0, id);
  rig.answer({0, 1, 2}, Granted{7});
  REQUIRE(rig.ended_with<AcquireSucceeded>(id));
  acquire_many(rig, 100);
  CHECK(rig.asked_count(0) == 64);
}

TEST_CASE("a window grows while attempts are quick and others wait, up to a bound") {
  Admission admission(128, 250ms);
  for (int i = 0; i < 800; ++i) admission.ended(start + 2ms, start, true);
  CHECK(admission.window() == 128);
  admission.wait(1);
  for (int i = 0; i < 800; ++i) admission.ended(start + 2ms, start, true);
  CHECK(admission.window() == 228);
  for (int i = 0; i < 80'000; ++i) admission.ended(start + 2ms, start, true);
  CHECK(admission.window() == 1'024);
}

TEST_CASE("a client that closes begins none of the attempts that waited") {
  Rig rig = narrow(2);
  const auto requests = acquire_many(rig, 10);
  for (const RequestId request : requests) rig.cancel(request, Errc::closed);
  for (const RequestId request : requests) CHECK(rig.failure(request) == Errc::closed);
  CHECK(rig.asked_count(0) == 4);  // two acquires, and their releases
}

TEST_CASE("a lease that is detached gives its place to the round that waits") {
  Rig rig = narrow(1);
  const auto one = rig.lease_on_all();
  const auto two = rig.lease_on_all();
  rig.extend(one.grant, 30s);
  rig.take_each();
  rig.extend(two.grant, 30s);
  CHECK_FALSE(rig.asked(0));
  rig.detach(one.grant);
  CHECK(rig.oldest_is<HoldCommand>(0));
}

TEST_CASE("nodes that moved far away are no reason to let only a few attempts run for ever") {
  Admission admission(128, 250ms);
  Instant now = start;
  const auto attempt = [&](std::chrono::milliseconds took) {
    admission.wait(1);
    admission.ended(now + took, now, true);
    now += std::chrono::seconds(1);
  };
  for (int i = 0; i < 1'000; ++i) {
    admission.ended(now + 200ms, now, true);  // always far away
    now += std::chrono::seconds(1);
  }
  CHECK(admission.window() == 128);
  attempt(1ms);
  for (int i = 0; i < 10; ++i) attempt(200ms);
  CHECK(admission.window() == 16);
  for (int i = 0; i < 2'000; ++i) attempt(200ms);
  CHECK(admission.window() > 128);
}
