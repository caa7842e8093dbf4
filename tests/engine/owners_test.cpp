// SPDX-License-Identifier: MIT
// The queue of one owner's calls for one name: who waits for whom, how long, and what is held after
// each of the races between a call and its end, the owner's own releases and the loss of the lease.
#include "engine/rig.hpp"

using namespace redlock::engine::test;

namespace {

constexpr std::uint64_t alice = 1;
constexpr std::uint64_t bob = 2;

/// A rig whose calls are those of owners.
struct OwnersRig : Rig {
  explicit OwnersRig(std::uint32_t nodes = 3, Config config = {}) : Rig(nodes, config) {}

  RequestId take(std::uint64_t owner, Duration wait = {}, Instant deadline = never) {
    AcquireRequest what = waiting(wait);
    what.deadline = deadline;
    return take(owner, what);
  }
  RequestId take(std::uint64_t owner, AcquireRequest what) {
    engine.take(now, ++last, {owner, std::move(what)});
    collect();
    return last;
  }
  RequestId leave(std::uint64_t owner) {
    released = engine.leave(now, ++last, {request().name, owner});
    collect();
    return last;
  }
  /// Answers whatever waits at the nodes, as free ones that keep what they grant do.
  void answer_all(Token token = 7) { serve({.acquire = Granted{token}, .hold = Held{token}}); }
  /// Takes it for the owner, every message answered.
  AcquireSucceeded taken(std::uint64_t owner) {
    const auto id = take(owner);
    answer_all();
    REQUIRE(ended_with<AcquireSucceeded>(id));
    return result<AcquireSucceeded>(id);
  }
  [[nodiscard]] std::uint32_t count_at(NodeIndex node) const {
    return oldest<HoldCommand>(node).count;
  }
  GrantId released = 0;  ///< by the last leave
  RequestId last = 1'000;
};

/// One in which Alice has the name.
struct AliceHas : OwnersRig {
  const AcquireSucceeded lease = taken(alice);
};

}  // namespace

TEST_CASE("an owner takes a name, takes it once more, and leaves it as often") {
  AliceHas rig;
  const auto inner = rig.take(alice);
  CHECK(rig.count_at(0) == 2);
  CHECK(rig.oldest<HoldCommand>(0).owner == rig.lease.owner);
  rig.answer({0, 1}, Held{7});
  CHECK(rig.result<EnterSucceeded>(inner).count == 2);
  CHECK(rig.result<EnterSucceeded>(inner).grant == rig.lease.grant);

  const auto left = rig.leave(alice);
  CHECK(rig.outcome(left) == Released::still_held);
  CHECK(rig.released == 0);
  CHECK(rig.count_at(0) == 1);
  CHECK(rig.releases(0) == 0);
  rig.answer_all();
  const auto last = rig.leave(alice);
  CHECK(rig.released == rig.lease.grant);
  CHECK_FALSE(rig.ended(last));  // until a quorum confirmed
  rig.answer_all();
  CHECK(rig.outcome(last) == Released::released);
  CHECK(rig.outcome(rig.leave(alice)) == Released::already_gone);
}

TEST_CASE("calls for another name, and those of other owners, are not queued behind it") {
  OwnersRig rig;
  rig.take(alice, 10s);
  AcquireRequest other_name = Rig::request();
  other_name.name = std::make_shared<const std::string>("seat B01");
  rig.take(alice, other_name);
  rig.take(bob, 10s);
  CHECK(rig.asked_count(0) == 3);
}

TEST_CASE("a queued call waits up to its own timeout or deadline, whatever the first one does") {
  OwnersRig rig;
  const auto first = rig.take(alice, Duration::max());
  CHECK(rig.failure(rig.take(alice)) == Errc::timed_out);  // which waits for nothing
  const auto waits = rig.take(alice, 20ms);
  const auto has_deadline = rig.take(alice, 10s, rig.now + 30ms);
  const auto patient = rig.take(alice, 10s);
  CHECK(rig.ends_after(20ms, waits));
  CHECK(rig.failure(waits) == Errc::timed_out);
  CHECK_FALSE(rig.ended(has_deadline));
  rig.advance(10ms);
  CHECK(rig.failure(has_deadline) == Errc::timed_out);
  rig.answer_all();
  CHECK(rig.ended_with<AcquireSucceeded>(first));
  CHECK(rig.result<EnterSucceeded>(patient).count == 2);
}

TEST_CASE("what a queued call waited is taken off the time that it may go on trying") {
  OwnersRig rig;
  const auto first = rig.take(alice, 10s);
  const auto second = rig.take(alice, 300ms);
  rig.advance(200ms);
  rig.cancel(first);
  SUBCASE("and it gets it") {
    rig.answer_all();  // releases of the first, the second's attempt
    CHECK(rig.ended_with<AcquireSucceeded>(second));
  }
  SUBCASE("and it does not") {
    while (rig.since_start() < 500ms && !rig.ended(second)) {
      rig.serve({.acquire = Refused{30s}, .release = NotHeld{}});
      rig.advance(1ms);
    }
    CHECK(rig.failure(second) == Errc::timed_out);
    CHECK(rig.since_start() <= 301ms);
  }
}

TEST_CASE("a call whose time was over when its turn came is not begun") {
  OwnersRig rig;
  const auto first = rig.take(alice, 10s);
  const auto second = rig.take(alice, 20ms);
  rig.pause(1s);  // nobody runs, and the answers come first
  rig.answer({0, 1}, Granted{7});
  CHECK(rig.ended_with<AcquireSucceeded>(first));
  CHECK(rig.failure(second) == Errc::timed_out);
  CHECK_FALSE(rig.oldest_is<HoldCommand>(0));
}

TEST_CASE("if the first call is cancelled or fails, the next one acquires") {
  OwnersRig rig;
  const auto first = rig.take(alice, 10s);
  const auto second = rig.take(alice, 10s);
  const auto third = rig.take(alice, 10s);
  rig.cancel(first);
  CHECK(rig.failure(first) == Errc::cancelled);
  CHECK(rig.releases(0) == 1);  // what the first may have got, sent before the second's acquire
  CHECK(rig.asked_count(0) == 3);
  rig.cancel(third);  // while it is queued
  CHECK(rig.failure(third) == Errc::cancelled);
  rig.answer_all();
  CHECK(rig.ended_with<AcquireSucceeded>(second));
  rig.answer_all();
  rig.cancel(second);  // it has ended
  CHECK(rig.ended_with<AcquireSucceeded>(second));
}

TEST_CASE("an entry that is given up is answered at once, and leaves what it gets") {
  AliceHas rig;
  const auto given_up = rig.take(alice, 10s);
  const auto next = rig.take(alice, 10s);
  rig.cancel(given_up);
  CHECK(rig.failure(given_up) == Errc::cancelled);
  CHECK(rig.asked_count(0) == 1);  // the next one waits for the end of the round
  rig.answer({0, 1, 2}, Held{7});
  CHECK_FALSE(rig.ended(next));
  CHECK(rig.count_at(0) == 1);  // it is left again
  rig.answer_all();
  CHECK(rig.result<EnterSucceeded>(next).count == 2);
  CHECK(rig.outcome(rig.leave(alice)) == Released::still_held);
  rig.answer_all();
  rig.leave(alice);
  CHECK(rig.released != 0);
}

TEST_CASE("an entry that is given up and fails leaves nothing, and the next one has its turn") {
  AliceHas rig;
  const auto given_up = rig.take(alice, 10s, rig.now + 20ms);
  const auto next = rig.take(alice, 10s);
  rig.advance(20ms);
  CHECK(rig.failure(given_up) == Errc::timed_out);
  rig.answer({0, 1, 2}, down);
  rig.answer_all();
  CHECK(rig.result<EnterSucceeded>(next).count == 2);
}

TEST_CASE("an entry without a quorum is tried again after pauses like those of an acquisition") {
  AliceHas rig;
  const auto once = rig.take(alice);
  rig.answer({0, 1, 2}, down);
  CHECK(rig.failure(once) == Errc::no_quorum);
  rig.answer_all();  // the count that holds

  const auto keen = rig.take(alice, 10s);
  Duration longest{};
  for (int attempt = 0; attempt < 8; ++attempt) {
    rig.answer({0, 1, 2}, down);
    rig.answer_all();
    const Duration pause = rig.pause_of(0);
    CHECK(rig.count_at(0) == 2);
    CHECK(pause >= 49ms);
    CHECK(pause <= 501ms);
    longest = std::max(longest, pause);
  }
  CHECK(longest > 150ms);
  rig.answer_all();
  CHECK(rig.result<EnterSucceeded>(keen).count == 2);
}

TEST_CASE("an entry that finds no quorum in its time says so; one that cannot is not repeated") {
  AliceHas rig;
  const auto keen = rig.take(alice, 400ms);
  while (!rig.ended(keen)) {
    rig.serve({.acquire = down, .hold = down});
    rig.advance(1ms);
  }
  CHECK(rig.failure(keen) == Errc::no_quorum);
  CHECK(rig.since_start() == 400ms);  // nothing was begun at the very end
  rig.answer_all();

  const auto denied = rig.take(alice, 10s);
  rig.answer({0, 1}, Unavailable{Cause::permission, Delivery::refused, "NOPERM"});
  CHECK(rig.failure(denied) == Errc::no_quorum);
}

TEST_CASE("a call that pauses ends when it is cancelled, and at its deadline") {
  AliceHas rig;
  const auto stopped = rig.take(alice, 10s);
  rig.answer({0, 1, 2}, down);
  rig.answer_all();
  rig.cancel(stopped);
  CHECK(rig.failure(stopped) == Errc::cancelled);
  const auto late = rig.take(alice, 10s, rig.now + 40ms);
  rig.answer({0, 1, 2}, down);
  rig.answer_all();
  rig.advance(40ms);
  CHECK(rig.failure(late) == Errc::no_quorum);
}

TEST_CASE("an owner that gives back what is being entered has the call acquire anew") {
  AliceHas rig;
  const auto inner = rig.take(alice, 10s);
  REQUIRE(rig.count_at(0) == 2);
  const auto left = rig.leave(alice);
  CHECK(rig.released == rig.lease.grant);
  CHECK_FALSE(rig.ended(inner));
  // The release is sent before the acquire that follows it.
  rig.answer(0, Held{7});
  CHECK(rig.releases(0) == 1);
  CHECK(rig.asked_count(0) == 2);
  rig.answer(0, ReleasedHere{});
  CHECK(rig.oldest<AcquireCommand>(0).owner != rig.lease.owner);
  rig.answer_all(8);
  CHECK(rig.outcome(left) == Released::released);
  CHECK(rig.result<AcquireSucceeded>(inner).token == 8);
  rig.leave(alice);
  CHECK(rig.released == rig.result<AcquireSucceeded>(inner).grant);
}

TEST_CASE("a lost lease is not entered until everything is left, and the queue goes on") {
  AliceHas rig;
  const auto second = rig.take(alice, 10s);
  rig.answer_all();
  REQUIRE(rig.ended_with<EnterSucceeded>(second));
  const auto first_to_know = rig.take(alice, 10s);
  const auto queued = rig.take(alice, 10s);
  rig.answer({0, 1, 2}, Free{});
  CHECK(rig.failure(first_to_know) == Errc::lost);
  CHECK(rig.failure(queued) == Errc::lost);
  CHECK(rig.lost.size() == 1);
  CHECK(rig.outcome(rig.leave(alice)) == Released::already_gone);
  const auto not_yet = rig.take(alice, 10s);
  CHECK(rig.failure(not_yet) == Errc::lost);
  rig.leave(alice);
  CHECK(rig.released != 0);
  const auto anew = rig.take(alice, 10s);
  rig.answer_all(8);
  CHECK(rig.result<AcquireSucceeded>(anew).token == 8);
}

TEST_CASE("a client that closes ends every call of an owner, and begins none") {
  OwnersRig rig;
  const auto acquiring = rig.take(alice, 10s);
  const auto queued = rig.take(alice, 10s);
  rig.cancel(acquiring, Errc::closed);
  CHECK(rig.failure(acquiring) == Errc::closed);
  CHECK(rig.releases(0) == 1);
  CHECK(rig.asked_count(0) == 2);  // the acquire and its release, and no other acquire
  rig.cancel(queued, Errc::closed);
  CHECK(rig.failure(queued) == Errc::closed);
  CHECK(rig.asked_count(0) == 2);
  CHECK(rig.engine.deadline() > rig.now);

  AliceHas holding;
  const auto entering = holding.take(alice, 10s);
  const auto waiting = holding.take(alice, 10s);
  for (const auto call : {waiting, entering}) {
    holding.cancel(call, Errc::closed);
    CHECK(holding.failure(call) == Errc::closed);
  }
  const auto released = holding.release(holding.lease.grant);
  holding.answer_all();
  CHECK(holding.outcome(released) == Released::released);
  CHECK_FALSE(holding.asked(0));
}
