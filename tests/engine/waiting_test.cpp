// SPDX-License-Identifier: MIT
// Waiting in order: what a call that waits asks of which node, and when; what it gives back, and
// when its client leaves the nodes' lines.
#include "engine/acquire/acquisition.hpp"
#include "engine/line/lines.hpp"
#include "engine/line/wake_allowance.hpp"
#include "engine/rig.hpp"

using namespace redlock::engine::test;

namespace {

AcquireRequest in_order(Duration wait) {
  return Rig::waiting(wait, true);
}

/// Granted after 8 ms it is too late.
AcquireRequest short_lease() {
  auto what = in_order(60s);
  what.lease = 10ms;
  return what;
}

/// A client of five nodes, all of which wake its waiters.
struct Crowd : Rig {
  explicit Crowd(Config config = {}) : Rig(5, config) { wakes(5); }

  void refuse(std::initializer_list<NodeIndex> nodes, std::chrono::milliseconds expires_in = 30s,
              std::uint32_t place = 0) {
    answer(nodes, Refused{.expires_in = expires_in, .foreign_type = false, .place = place});
  }
  [[nodiscard]] std::size_t asked_in_all() const {
    std::size_t sum = 0;
    for (NodeIndex node = 0; node < 5; ++node) sum += asked_count(node);
    return sum;
  }
  /// Whether it asks them all, at the end of that time and not much before.
  [[nodiscard]] bool asks_all_after(Duration by, Duration before) {
    return only_after(
               by, [&] { return asked_in_all() > 0; }, before) &&
           asked_in_all() == 5;
  }
  /// What every node was asked until now is answered, acquires by this.
  void answer_acquires(const Reply& reply) {
    for (NodeIndex node = 0; node < 5; ++node) answer_acquires(node, reply);
  }
  void answer_acquires(NodeIndex node, const Reply& reply) {
    for (auto left = asked_count(node); left > 0; --left) {
      const Reply other = oldest_is<LeaveCommand>(node) ? Reply(LineLeft{}) : Reply(NotHeld{});
      answer(node, oldest_is<AcquireCommand>(node) ? reply : other);
    }
  }
  /// The oldest message of the node takes this line out of the node's, and is answered.
  bool left(NodeIndex node, std::uint64_t line) {
    if (!oldest_is<LeaveCommand>(node)) return false;
    const auto leave = oldest<LeaveCommand>(node);
    answer(node, LineLeft{});
    return leave.line == line;
  }
};

constexpr std::initializer_list<NodeIndex> all{0, 1, 2, 3, 4};

/// One in which a call waits, for a minute. No node has answered it.
struct Waiter : Crowd {
  const RequestId id = acquire(in_order(60s));
  const AcquireCommand first = oldest<AcquireCommand>(0);
};

/// The same with another call of the client. All nodes have refused the first, and one has told it
/// that its turn has come.
struct Pair : Waiter {
  Pair() {
    refuse(all);
    wake(2, id);
  }
  const RequestId second = acquire(in_order(60s));
};

}  // namespace

TEST_CASE("a call that waits stays with its attempt while others have the lock") {
  Waiter rig;
  CHECK(rig.first.in_order);
  CHECK(rig.first.place.line == rig.id);
  CHECK(rig.first.place.waited == 0ns);
  rig.refuse(all);
  CHECK_FALSE(rig.ended(rig.id));
  rig.advance(900ms);
  CHECK(rig.asked_in_all() == 0);
  SUBCASE("it asks again, with its place, before nodes forget it") {
    rig.advance(110ms);
    CHECK(rig.asked_in_all() == 5);
    CHECK(rig.oldest<AcquireCommand>(0).owner == rig.first.owner);
    CHECK(rig.oldest<AcquireCommand>(0).place.line == rig.id);
    CHECK(rig.oldest<AcquireCommand>(0).place.waited > 1s);
    CHECK(rig.oldest<AcquireCommand>(0).place.waited <= rig.since_start());
  }
  SUBCASE("the first node that says that its turn has come makes it ask them all") {
    rig.wake(2, rig.id);
    CHECK(rig.asked_in_all() == 5);
    rig.wake(2, rig.id);  // said twice
    rig.wake(3, rig.id);
    CHECK(rig.asked_in_all() == 5);
  }
  SUBCASE("votes gather node by node") {
    rig.wake(2, rig.id);
    rig.answer(2, Granted{7});
    rig.refuse({0, 1, 3, 4});  // the release has not come there yet
    for (const NodeIndex node : {0U, 4U}) {
      CHECK_FALSE(rig.ended(rig.id));
      rig.wake(node, rig.id);
      rig.answer(node, Granted{7});
    }
    CHECK(rig.result<AcquireSucceeded>(rig.id).owner == rig.first.owner);
  }
}

TEST_CASE("a vote counts from when it was asked for, not from when the attempt began") {
  Crowd rig;
  auto what = in_order(60s);
  what.lease = 5s;
  const auto id = rig.acquire(std::move(what));
  for (int second = 0; second < 10; ++second) {
    rig.refuse(all, 10s);
    rig.advance(1'001ms);  // it asks again
  }
  rig.refuse(all, 10s);
  const Instant asked = rig.now;
  for (const NodeIndex node : {0U, 1U, 2U}) rig.wake(node, id);
  rig.advance(10ms);
  rig.answer({0, 1, 2}, Granted{7});
  const auto until = rig.result<AcquireSucceeded>(id).valid_until;
  CHECK(until <= asked + 5s);
  CHECK(until > asked + 4'900ms);
}

TEST_CASE("a turn that comes while a question is under way is asked for once more") {
  Waiter rig;
  rig.wake(3, rig.id);
  CHECK(rig.asked_count(3) == 1);
  SUBCASE("after a refusal, which may not know of it") {
    rig.refuse({3});
    CHECK(rig.asked_count(3) == 1);
    rig.refuse({3});
    CHECK(rig.asked_count(3) == 0);
  }
  SUBCASE("not after a grant") {
    rig.answer(3, Granted{7});
    CHECK(rig.asked_count(3) == 0);
  }
}

TEST_CASE("the runner-up asks when the time of the first is over") {
  Waiter rig;
  rig.refuse(all);
  rig.wake(1, rig.id, 20ms);
  CHECK(rig.asks_all_after(23ms, 4ms));
}

TEST_CASE("nodes are asked when the lease of the holder is over on a quorum of them") {
  Waiter rig;
  for (const NodeIndex node : all) rig.refuse({node}, 100ms * (node + 1));
  CHECK(rig.asks_all_after(302ms, 3ms));
  // Who is behind asks later.
  rig.refuse(all, 300ms, 4);
  CHECK(rig.asks_all_after(382ms, 3ms));
}

TEST_CASE("what cannot become a quorum is given back soon, and the place is kept") {
  Waiter rig;
  rig.advance(1ms);
  rig.answer({0, 1}, Granted{7});
  rig.refuse({2, 3, 4});
  // Refusals from before may be out of date.
  CHECK(rig.asked_in_all() == 0);
  rig.advance(3'900us);
  CHECK(rig.asked_in_all() == 0);
  SUBCASE("a vote that comes until then completes it") {
    rig.wake(4, rig.id);
    rig.answer(4, Granted{7});
    CHECK(rig.ended_with<AcquireSucceeded>(rig.id));
  }
  SUBCASE("after four round trips") {
    rig.advance(200us);
    for (const NodeIndex node : {0U, 1U}) {
      REQUIRE(rig.oldest_is<ReleaseCommand>(node));
      const auto release = rig.oldest<ReleaseCommand>(node);
      CHECK(release.owner == rig.first.owner);
      CHECK(release.place.line == rig.id);
      CHECK(release.place.waited > 4ms);
      rig.answer(node, ReleasedHere{});
    }
    CHECK(rig.asked_in_all() == 0);
    rig.advance(2ms);
    CHECK(rig.asked_in_all() == 5);
    const auto second = rig.oldest<AcquireCommand>(0);
    CHECK(second.owner != rig.first.owner);
    CHECK(second.place.line == rig.id);
    CHECK(second.place.waited > 5ms);
  }
}

TEST_CASE("where a holder lacks some nodes a waiter asks ever more seldom until it is woken") {
  Waiter rig;
  const auto round = [&] {
    rig.answer({0, 1}, Granted{7});
    rig.refuse({2, 3, 4});
    while (rig.asked_in_all() == 0) rig.advance(100us);
    rig.answer({0, 1}, ReleasedHere{});
    REQUIRE(rig.asked_in_all() == 0);
  };
  const auto await_next = [&] {
    int after = 0;
    for (; rig.asked_in_all() == 0; ++after) rig.advance(1ms);
    return after;
  };
  round();
  CHECK(await_next() <= 2);
  for (int i = 0; i < 8; ++i) {
    round();
    await_next();
  }
  round();
  SUBCASE("by itself") {
    CHECK(await_next() >= 15);
  }
  SUBCASE("not by what it has given back itself") {
    rig.wake(0, rig.id);
    rig.wake(1, rig.id);
    CHECK(rig.asked_in_all() == 0);
    CHECK(await_next() >= 15);
  }
  SUBCASE("nor by what it was still to have") {
    await_next();
    rig.take(0);
    rig.answer(1, Granted{7});
    rig.refuse({2, 3, 4});
    while (!rig.asked(1)) rig.advance(100us);
    rig.wake(0, rig.id);
    rig.take_all();
    CHECK(await_next() >= 15);
  }
  SUBCASE("or refused by all") {
    await_next();
    rig.refuse(all);
    rig.wake(0, rig.id);
    round();
    CHECK(await_next() <= 2);
  }
  SUBCASE("by a node that had refused it, and then at once") {
    rig.wake(3, rig.id);
    rig.advance(0us);
    CHECK(rig.asked_in_all() == 5);
    round();
    CHECK(await_next() <= 2);
  }
}

TEST_CASE("no timer is set for votes that gather while they may become a quorum") {
  Waiter rig;
  const Instant before = rig.engine.deadline();
  rig.answer({0, 1}, Granted{7});
  CHECK(rig.engine.deadline() >= before);
  rig.refuse({2, 3});
  CHECK(rig.engine.deadline() >= before);
  rig.refuse({4});
  CHECK(rig.engine.deadline() < before);
}

TEST_CASE("a node's silence is remembered also where the attempt waits on") {
  Waiter rig;
  rig.refuse({0, 1, 2, 3});
  rig.advance(251ms);
  auto what = in_order(60s);
  what.name = std::make_shared<const std::string>("another");
  rig.acquire(std::move(what));
  rig.refuse({0, 1, 2, 3});
  rig.advance(990ms);
  CHECK(rig.asked_count(0) == 0);
  rig.advance(15ms);  // a second after both were refused by all that can be waited for
  CHECK(rig.asked_count(0) == 2);
}

TEST_CASE("a node that has answered is waited for again by the same attempt") {
  Waiter rig;
  rig.refuse({0, 1, 2, 3});
  rig.advance(251ms);
  rig.refuse({4});
  rig.wake(2, rig.id);
  rig.advance(0ns);
  REQUIRE(rig.asked_in_all() == 5);
  rig.answer({0, 1}, Granted{7});
  rig.refuse({2, 3});
  rig.advance(200ms);
  CHECK(rig.releases(0) == 0);
}

TEST_CASE("a node's silence is remembered from one attempt to the next") {
  Waiter rig;
  rig.advance(1ms);
  rig.answer({0, 1}, Granted{7});
  rig.refuse({2});
  rig.answer(3, down);
  rig.advance(200ms);
  CHECK(rig.releases(0) == 0);  // while node 4 is still to answer nothing is given back
  rig.advance(60ms);            // it has not: two of three that vote are not enough
  REQUIRE(rig.releases(0) == 1);
  rig.answer({0, 1}, ReleasedHere{});
  rig.advance(2ms);
  REQUIRE(rig.oldest_is<AcquireCommand>(0));
  CHECK(rig.asked_count(4) == 3);  // two acquires, and the release between them
  SUBCASE("so that two of four are known to be no quorum at once") {
    rig.answer({0, 1}, Granted{8});
    rig.answer({3, 2}, down);
    CHECK(rig.releases(0) > 0);
    CHECK_FALSE(rig.ended(rig.id));
  }
  SUBCASE("until it answers") {
    rig.take(4);
    rig.take(4);
    rig.answer({0, 1}, Granted{8});
    CHECK_FALSE(rig.ended(rig.id));
    rig.answer(4, Granted{8});
    CHECK(rig.ended_with<AcquireSucceeded>(rig.id));
  }
  SUBCASE("and no more by the next when it has answered") {
    rig.refuse({4});
    rig.answer(4, NotHeld{});
    rig.refuse({2, 4});
    rig.answer({0, 1}, Granted{8});
    rig.answer(3, down);
    rig.advance(10ms);
    REQUIRE(rig.releases(0) == 1);
    rig.answer({0, 1}, ReleasedHere{});
    rig.advance(2ms);
    REQUIRE(rig.oldest_is<AcquireCommand>(0));
    rig.answer({0, 1}, Granted{9});
    rig.refuse({2});
    rig.answer(3, down);
    rig.advance(200ms);
    CHECK(rig.releases(0) == 0);
  }
}

TEST_CASE("a node that could not be reached is not waited for while it is connected to again") {
  Waiter rig;
  rig.answer({3, 4}, down);
  rig.refuse({1, 2});
  rig.answer({0}, Granted{7});
  rig.advance(20ms);
  REQUIRE(rig.releases(0) == 1);
  rig.answer({0}, ReleasedHere{});
  rig.advance(30ms);
  REQUIRE(rig.oldest_is<AcquireCommand>(0));
  bool reached = false;
  SUBCASE("but it is asked") {}
  SUBCASE("and it is when it has been reached") {
    reached = true;
    rig.node_up(3);
    rig.node_up(4);
  }
  CHECK(rig.oldest_is<AcquireCommand>(3));
  rig.refuse({1, 2});
  rig.answer({0}, Granted{8});
  rig.advance(100ms);
  CHECK(rig.releases(0) == (reached ? 0 : 1));
  rig.answer({3, 4}, Granted{8});
  CHECK(rig.ended_with<AcquireSucceeded>(rig.id) == reached);
}

TEST_CASE("a split vote does not wait for nodes that could not be reached") {
  Waiter rig;
  SUBCASE("by the same attempt") {
    rig.refuse({0, 1, 2});
    rig.answer({3, 4}, down);
    rig.wake(1, rig.id);
    rig.wake(0, rig.id);
    rig.advance(0ns);
  }
  SUBCASE("by an attempt that won before that was known") {
    rig.answer({0, 1, 2}, Granted{7});
    REQUIRE(rig.ended_with<AcquireSucceeded>(rig.id));
    rig.release(rig.grant_of(rig.id));
    for (const NodeIndex node : all) {
      while (rig.asked_count(node) > 0) rig.answer(node, node < 3 ? Reply(ReleasedHere{}) : down);
    }
    rig.acquire(in_order(60s));
    rig.advance(0ns);
  }
  for (const NodeIndex node : all) REQUIRE(rig.oldest_is<AcquireCommand>(node));
  rig.refuse({1, 2});
  rig.answer({0}, Granted{8});
  rig.advance(100ms);
  CHECK(rig.releases(0) == 1);
}

TEST_CASE("a moment in which no node answered does not keep a call from the lock for good") {
  Waiter rig;
  rig.advance(260ms);  // the process stood still, or the network did
  REQUIRE_FALSE(rig.ended(rig.id));
  SUBCASE("if they answer later") {
    rig.answer_acquires(Refused{30s});
  }
  SUBCASE("if they are reached again") {
    rig.answer_acquires(broken);
    for (NodeIndex node = 0; node < 5; ++node) rig.node_up(node);
  }
  SUBCASE("if what they were asked until then is never answered") {
    rig.take_all();
  }
  rig.advance(70ms);
  REQUIRE(rig.asked_in_all() >= 5);
  rig.answer_acquires(Granted{7});
  CHECK(rig.ended_with<AcquireSucceeded>(rig.id));
}

TEST_CASE("without a quorum that can vote it leaves the lines, and comes back with its place") {
  Waiter rig;
  rig.refuse({0, 1});
  rig.answer({2, 3, 4}, down);
  CHECK(rig.left(0, rig.id));
  CHECK(rig.left(1, rig.id));
  CHECK_FALSE(rig.ended(rig.id));
  CHECK_FALSE(rig.asked(2));  // it has not stood there
  rig.advance(200ms);
  REQUIRE(rig.oldest_is<AcquireCommand>(0));
  CHECK(rig.oldest<AcquireCommand>(0).place.line == rig.id);
  CHECK(rig.oldest<AcquireCommand>(0).place.waited >= 50ms);
}

TEST_CASE("a call whose lease is too short lets the next of its client have its place at once") {
  Crowd rig;
  const auto first = rig.acquire(short_lease());
  rig.advance(1ms);
  const auto second = rig.acquire(in_order(60s));
  rig.advance(7ms);
  rig.answer({0, 1, 2}, Granted{7});  // too late for such a lease
  CHECK_FALSE(rig.ended(first));
  for (const NodeIndex node : {0U, 1U, 2U}) {
    REQUIRE(rig.oldest_is<ReleaseCommand>(node));
    CHECK(rig.oldest<ReleaseCommand>(node).place.line == first);
    CHECK(rig.oldest<ReleaseCommand>(node).place.waited == 7ms);
    CHECK(rig.oldest<ReleaseCommand>(node).place.is_new);
    rig.answer(node, ReleasedHere{});
  }
  rig.advance(0ns);
  rig.answer({3, 4}, Refused{30s});
  rig.answer({3, 4}, NotHeld{});
  for (const NodeIndex node : {3U, 4U}) CHECK(rig.left(node, first));
  for (const NodeIndex node : all) {
    REQUIRE(rig.oldest_is<AcquireCommand>(node));
    CHECK(rig.oldest<AcquireCommand>(node).lease == 30s);
    rig.answer(node, Granted{8});
  }
  CHECK(rig.ended_with<AcquireSucceeded>(second));
}

TEST_CASE("calls of which none can succeed pause, and are in no line meanwhile") {
  Crowd rig;
  const auto first = rig.acquire(short_lease());
  rig.acquire(short_lease());
  for (int call = 0; call < 2; ++call) {
    rig.advance(call == 0 ? 8ms : 18ms);
    for (const NodeIndex node : all) REQUIRE(rig.oldest_is<AcquireCommand>(node));
    rig.answer(all, Granted{7});  // too late for such a lease
    for (const NodeIndex node : all) {
      if (rig.oldest_is<ReleaseCommand>(node)) {
        // The second one is in no line from then on, so that the turn goes to another client.
        CHECK(rig.oldest<ReleaseCommand>(node).place.line == (call == 0 ? first : 0));
        rig.answer(node, ReleasedHere{});
      }
      while (call == 1 && rig.asked(node)) {
        CHECK_FALSE(rig.oldest_is<AcquireCommand>(node));
        if (rig.oldest_is<LeaveCommand>(node)) {
          CHECK(rig.left(node, first));
        } else {
          rig.take(node);
        }
      }
      while (rig.oldest_is<LeaveCommand>(node)) rig.take(node);
    }
    rig.advance(0ns);
  }
  // The releases gave the turn to the place that the client has left since.
  for (const NodeIndex node : all) rig.wake(node, first);
  rig.advance(5ms);
  CHECK(rig.asked_in_all() == 0);

  SUBCASE("a new call does not wait for them") {
    const auto third = rig.acquire(in_order(60s));
    rig.answer(all, Granted{8});
    CHECK(rig.ended_with<AcquireSucceeded>(third));
  }
  SUBCASE("nor does one that comes while one of them asks") {
    rig.pause_of(0);
    const auto third = rig.acquire(in_order(60s));
    rig.advance(8ms);
    rig.answer(all, Granted{7});
    for (const NodeIndex node : all) {
      REQUIRE(rig.oldest_is<ReleaseCommand>(node));
      CHECK(rig.oldest<ReleaseCommand>(node).place.waited == 8ms);
      rig.answer(node, ReleasedHere{});
    }
    rig.advance(0ns);
    rig.answer(all, Granted{8});
    CHECK(rig.ended_with<AcquireSucceeded>(third));
  }
}

TEST_CASE("of the calls whose pauses are over the one that failed first comes next") {
  Crowd rig;
  const auto acquire = [&](std::chrono::milliseconds lease) {
    auto what = short_lease();
    what.lease = lease;
    rig.acquire(what);
  };
  const auto fails_after = [&](Duration time) {
    rig.pause_of(0);
    REQUIRE(rig.oldest_is<AcquireCommand>(0));
    const auto lease = rig.oldest<AcquireCommand>(0).lease;
    rig.advance(time);
    rig.answer_acquires(Granted{7});
    rig.answer_acquires({});
    return lease;
  };
  acquire(10ms);
  CHECK(fails_after(10ms) == 10ms);
  CHECK(fails_after(10ms) == 10ms);  // its next pause is longer than the first ones of the others
  acquire(11ms);
  CHECK(fails_after(10ms) == 11ms);
  acquire(12ms);
  CHECK(fails_after(240ms) == 12ms);
  CHECK(fails_after(10ms) == 10ms);
}

TEST_CASE("a call that came too late is behind all clients' calls that waited when it failed") {
  Crowd rig;
  rig.acquire(short_lease());
  rig.advance(8ms);
  rig.answer(all, Granted{7});
  rig.take_all();
  const Duration pause = rig.pause_of(0);
  REQUIRE(rig.oldest_is<AcquireCommand>(0));
  CHECK(rig.oldest<AcquireCommand>(0).place.waited <= pause);  // and not since its begin
}

TEST_CASE("a client that closes is in no line, however many of its calls wait") {
  Waiter rig;
  const auto second = rig.acquire(in_order(60s));
  rig.refuse(all);
  rig.cancel(rig.id, Errc::closed);
  rig.take_each();  // stands the second call in the place of the first
  rig.cancel(second, Errc::closed);
  for (const NodeIndex node : all) CHECK(rig.left(node, rig.id));
  CHECK(rig.all_answered());
}

TEST_CASE("without a quorum the next call of a client comes when the first one would have") {
  Waiter rig;
  const auto second = rig.acquire(in_order(60s));
  rig.answer_all(down);
  rig.advance(49ms);
  CHECK(rig.asked_in_all() == 0);
  rig.advance(102ms);
  rig.answer(all, Granted{7});
  CHECK(rig.ended_with<AcquireSucceeded>(second));
}

TEST_CASE("a call that gave way and ends leaves no line in which another of its client stands") {
  Crowd rig;
  const auto first = rig.acquire(in_order(600ms));
  const auto second = rig.acquire(in_order(60s));
  rig.advance(251ms);  // nobody answers: the first one gives way
  rig.take_all();
  rig.advance(160ms);
  rig.refuse(all);
  rig.advance(0ms);
  rig.refuse(all);  // it asks once more, as its turns were to be shorter than that takes
  rig.advance(200ms);
  REQUIRE(rig.ended(first));
  CHECK_FALSE(rig.ended(second));
  CHECK(rig.asked_in_all() == 0);
}

TEST_CASE("a turn is asked for that is twice as long as a quorum's answers take") {
  Waiter rig;
  CHECK(rig.oldest<AcquireCommand>(0).place.turn == 20ms);
  rig.advance(1ms);
  rig.refuse({0, 1});
  rig.advance(79ms);
  rig.refuse({2});
  rig.advance(100ms);
  rig.refuse({3, 4});
  rig.wake(0, rig.id);
  CHECK(rig.oldest<AcquireCommand>(0).place.turn == 160ms);
  SUBCASE("at most half a second") {
    for (int i = 0; i < 40; ++i) {
      rig.advance(200ms);
      rig.refuse(all);
      rig.wake(0, rig.id);
    }
    CHECK(rig.oldest<AcquireCommand>(0).place.turn > 350ms);
    CHECK(rig.oldest<AcquireCommand>(0).place.turn <= 500ms);
  }
  SUBCASE("and answers later than the node timeout lengthen it no more than that") {
    const std::vector<Send> asked{rig.take(0), rig.take(1), rig.take(2)};
    rig.advance(2s);
    for (const Send& late : asked) rig.answer(late, Refused{30s});
    rig.take_all();
    rig.pause_of(0);
    REQUIRE(rig.oldest_is<AcquireCommand>(0));
    CHECK(rig.oldest<AcquireCommand>(0).place.turn < 250ms);
  }
  SUBCASE("and as long as that votes gather") {
    rig.answer({0, 1}, Granted{7});
    rig.refuse({2, 3, 4});
    rig.advance(300ms);
    CHECK(rig.releases(0) == 0);
    rig.advance(21ms);
    CHECK(rig.releases(0) == 1);
  }
}

TEST_CASE("the first turn is as long as the way takes, as far as that is known") {
  Crowd rig;
  SUBCASE("from the handshakes") {
    for (NodeIndex node = 0; node < 5; ++node) rig.read_clock(node, 0ms, 30ms);
    rig.acquire(in_order(60s));
  }
  SUBCASE("from the first answers: it asks once more, and once only") {
    rig.acquire(in_order(60s));
    rig.advance(60ms);
    SUBCASE("whichever connections were made meanwhile") {
      rig.engine.on_node_up(rig.now, 0);
      for (NodeIndex node = 0; node < 5; ++node) rig.read_clock(node, 0ms, 30ms);
      rig.engine.on_node_up(rig.now, 1);
      rig.collect();
    }
    SUBCASE("that were there before") {}
    rig.refuse(all);
    rig.advance(0ms);
  }
  REQUIRE(rig.asked_in_all() == 5);
  CHECK(rig.oldest<AcquireCommand>(0).place.turn == 120ms);
  rig.refuse(all);
  rig.advance(900ms);
  CHECK(rig.asked_in_all() == 0);
}

TEST_CASE("it asks once only with the distance known, also where not all can be asked") {
  CarefulRig rig(5);
  rig.wakes(5);
  rig.see({0, 1, 2, 3}, sound);
  rig.acquire(in_order(60s));
  rig.see(4, wiped);
  rig.answer(4, Unavailable{Cause::quarantined, Delivery::not_sent, {}});
  for (const Duration turn : {20ms, 120ms}) {
    REQUIRE(rig.asked_count(0) == 1);
    CHECK(rig.oldest<AcquireCommand>(0).place.turn == turn);
    rig.advance(60ms);
    rig.answer({0, 1, 2, 3}, Refused{30s});
    rig.advance(0ms);
  }
  rig.advance(900ms);
  CHECK(rig.asked_count(0) == 0);
}

TEST_CASE("a waiter keeps its place while it waits for a node that does not answer") {
  Crowd rig({.node_timeout = 5s});
  rig.acquire(in_order(60s));
  rig.refuse({0, 1, 2, 3});
  rig.take(4);
  for (int i = 0; i < 3; ++i) {
    rig.advance(980ms);
    CHECK(rig.asked_in_all() == 0);
    rig.advance(20ms);
    CHECK(rig.asked_in_all() == 4);
    rig.refuse({0, 1, 2, 3});
  }
}

TEST_CASE("a call that ends leaves every line at once") {
  struct End {
    Errc why;
    Duration wait = 60s;
    Instant deadline = never;
  };
  for (const auto& [why, wait, deadline] : {End{Errc::cancelled}, End{Errc::timed_out, 100ms},
                                            End{Errc::timed_out, 60s, Rig::start + 100ms}}) {
    Crowd rig;
    auto what = in_order(wait);
    what.deadline = deadline;
    const auto id = rig.acquire(what);
    rig.refuse(all);
    why == Errc::cancelled ? rig.cancel(id) : rig.advance(101ms);
    CHECK(rig.failure(id) == why);
    for (const NodeIndex node : all) CHECK(rig.left(node, id));
    CHECK(rig.all_answered());
  }
}

TEST_CASE("a call that ends in line ended for the holder, whatever it had failed for before") {
  Crowd rig;
  auto what = in_order(60s);
  what.deadline = Rig::start + 500ms;
  const auto id = rig.acquire(what);
  rig.acquire(in_order(60s));
  rig.answer({0, 1, 2, 3, 4}, down);
  Reply of_two = Refused{30s};
  SUBCASE("by a quorum, of another call of its client") {}
  SUBCASE("that lacks two of the nodes") {
    of_two = Granted{7};
  }
  while (!rig.ended(id)) {
    rig.advance(1ms);
    for (const NodeIndex node : all) rig.answer_acquires(node, node < 2 ? of_two : Refused{30s});
  }
  CHECK(rig.failure(id) == Errc::timed_out);
  CHECK(rig.ballot(id, 4).vote == Vote::refused);
}

TEST_CASE("a deadline that ends a question tells what the attempts before it failed for") {
  Crowd rig({.node_timeout = 10s});
  auto what = in_order(60s);
  what.deadline = Rig::start + 500ms;
  const auto id = rig.acquire(what);
  rig.answer({0, 1, 2, 3, 4}, down);
  rig.pause_of(0);
  CHECK(rig.ends_after(Rig::start + 500ms - rig.now, id));
  CHECK(rig.failure(id) == Errc::no_quorum);
  CHECK(rig.ballot(id, 0).vote == Vote::unavailable);
}

TEST_CASE("a call that ends with a question under way leaves behind it") {
  Waiter rig;
  rig.refuse({0, 1, 2});
  rig.cancel(rig.id);
  REQUIRE(rig.asked_count(3) == 3);  // the acquire, and what takes back whatever it does
  rig.answer(3, Granted{7});
  CHECK(rig.oldest_is<ReleaseCommand>(3));
  rig.answer(3, ReleasedHere{});
  CHECK(rig.left(3, rig.id));
  CHECK(rig.left(0, rig.id));
  CHECK_FALSE(rig.asked(0));
}

TEST_CASE("a waiting time ends with the decision of what is under way") {
  Crowd rig;
  const auto id = rig.acquire(in_order(10ms));
  rig.answer({0, 1}, Granted{7});
  rig.advance(20ms);
  CHECK_FALSE(rig.ended(id));
  SUBCASE("for it, and against it on a node whose line it leaves") {
    rig.refuse({3});
    rig.answer(2, Granted{7});
    REQUIRE(rig.ended_with<AcquireSucceeded>(id));
    CHECK(rig.left(3, id));
    rig.refuse({4});
    CHECK(rig.left(4, id));
    CHECK(rig.asked_in_all() == 0);
  }
  SUBCASE("against it, which gives the votes back and stands it in no line") {
    rig.refuse({2, 3, 4});
    CHECK(rig.failure(id) == Errc::timed_out);
    for (const NodeIndex node : {0U, 1U}) {
      REQUIRE(rig.oldest_is<ReleaseCommand>(node));
      CHECK(rig.oldest<ReleaseCommand>(node).place.line == 0);
    }
  }
  SUBCASE("against it, and another call of the client has its place") {
    const auto second = rig.acquire(in_order(60s));
    rig.refuse({2, 3, 4});
    CHECK(rig.failure(id) == Errc::timed_out);
    REQUIRE(rig.oldest_is<ReleaseCommand>(0));
    CHECK(rig.take(0).tag.kind == Tag::Kind::release);
    REQUIRE(rig.oldest_is<LeaveCommand>(0));
    CHECK(rig.oldest<LeaveCommand>(0).next.line == id);
    rig.cancel(second);
  }
  SUBCASE("by silence") {
    rig.advance(260ms);
    CHECK(rig.failure(id) == Errc::no_quorum);
  }
}

TEST_CASE("a client that has the lock is in no line any more") {
  Waiter rig;
  rig.refuse({0});
  rig.answer({1, 2, 3}, Granted{7});
  REQUIRE(rig.ended_with<AcquireSucceeded>(rig.id));
  CHECK(rig.left(0, rig.id));
  CHECK_FALSE(rig.asked(1));  // its grant took the waiter out
  SUBCASE("a node that refuses late has put it in") {
    rig.refuse({4});
    CHECK(rig.left(4, rig.id));
  }
  SUBCASE("one that has it from before, and cannot answer now") {
    rig.answer(4, Unavailable{Cause::out_of_memory, Delivery::refused, "OOM"});
    CHECK(rig.left(4, rig.id));
  }
  SUBCASE("one that grants late has not") {
    rig.answer(4, Granted{7});
    CHECK_FALSE(rig.asked(4));
  }
}

TEST_CASE("of the calls of a client for one name the first alone stands in the nodes' lines") {
  Waiter rig;
  rig.advance(1ms);
  const auto second = rig.acquire(in_order(60s));
  const auto third = rig.acquire(in_order(50ms));
  CHECK(rig.asked_count(0) == 1);
  CHECK_FALSE(rig.oldest<AcquireCommand>(0).next_waited);  // it was alone
  rig.answer(all, Granted{7});
  REQUIRE(rig.ended_with<AcquireSucceeded>(rig.id));
  // The second one takes part now: with the release, or soon.
  CHECK(rig.asked_count(0) == 0);
  rig.advance(500us);
  SUBCASE("with the release") {
    rig.release(rig.grant_of(rig.id));
    rig.answer(all, ReleasedHere{});
  }
  SUBCASE("soon") {
    rig.advance(500us);
  }
  REQUIRE(rig.asked_count(0) == 1);
  const auto asked = rig.oldest<AcquireCommand>(0);
  CHECK(asked.place.line == rig.id);  // the line is the same
  CHECK(asked.place.waited == rig.since_start() - 1ms);
  CHECK(asked.next_waited == rig.since_start() - 1ms);
  rig.refuse(all);
  rig.advance(60ms);
  REQUIRE(rig.failure(third) == Errc::timed_out);
  // It says what kept those waiting that are before it.
  for (const NodeIndex node : all) CHECK(rig.ballot(third, node).vote == Vote::refused);
  CHECK(rig.asked_in_all() == 0);
  rig.cancel(second);
  CHECK(rig.left(0, rig.id));
}

TEST_CASE("a call that is named as the next has the place in the line from the grant on") {
  Pair rig;
  CHECK(rig.oldest<AcquireCommand>(0).next_waited == 0ns);
  for (const NodeIndex node : {0U, 1U, 2U}) rig.answer(node, Granted{7, 3});
  REQUIRE(rig.ended_with<AcquireSucceeded>(rig.id));
  const GrantId grant = rig.grant_of(rig.id);
  SUBCASE("it asks again before nodes forget it") {
    rig.answer({3, 4}, Granted{7, 3});
    CHECK(rig.asks_all_after(1'001ms, 2ms));
  }
  SUBCASE("others being before it, it waits for its turn when the lock is given back") {
    rig.answer({3, 4}, Granted{7, 3});
    rig.release(grant);
    rig.answer(all, ReleasedHere{});
    CHECK(rig.asked_in_all() == 0);
    rig.wake(1, rig.id);
    rig.advance(0ns);
    CHECK(rig.asked_in_all() == 5);
    rig.answer(all, Granted{8});
    CHECK(rig.ended_with<AcquireSucceeded>(rig.second));
  }
  SUBCASE("a node that grants late has it too") {
    rig.answer(3, Granted{7, 3});
    CHECK_FALSE(rig.asked(3));
  }
  SUBCASE("a turn told by a node that has not answered the call before is not its own") {
    rig.wake(3, rig.id);
    rig.advance(2ms);
    CHECK(rig.asked_in_all() == 2);
    rig.answer(3, Granted{7, 0});
    rig.wake(3, rig.id);
    rig.advance(0ns);
    CHECK(rig.asked_in_all() == 6);
  }
  SUBCASE("a node that refuses late has the call that is over, and is told that it leaves") {
    rig.refuse({3});
    CHECK(rig.left(3, rig.id));
    CHECK_FALSE(rig.asked(3));
  }
  SUBCASE("unless the next call has asked there since") {
    rig.wake(1, rig.id);
    rig.advance(0ns);
    CHECK(rig.asked_count(3) == 2);
    rig.refuse({3});
    CHECK(rig.asked_count(3) == 1);
  }
  SUBCASE("a call that has ended meanwhile leaves the lines") {
    rig.answer({3, 4}, Granted{7, 3});
    rig.cancel(rig.second);
    for (const NodeIndex node : all) CHECK(rig.left(node, rig.id));
  }
}

TEST_CASE("each call of a client is named with the time for which it has waited itself") {
  Waiter rig;
  rig.refuse(all);
  rig.advance(5ms);
  rig.acquire(in_order(60s));
  rig.advance(3ms);
  rig.wake(2, rig.id);
  rig.advance(0ns);
  const auto asked = rig.oldest<AcquireCommand>(0);
  CHECK(asked.place.waited == 8ms);
  CHECK(asked.next_waited == 3ms);
}

TEST_CASE("a call that was named as the next and ends before the grant stands nowhere") {
  Pair rig;
  rig.advance(300us);
  const auto third = rig.acquire(in_order(60s));
  rig.advance(200us);
  rig.cancel(rig.second);
  SUBCASE("and the one behind it has the place, and asks soon") {}
  SUBCASE("as does nobody") {
    rig.cancel(third);
  }
  rig.answer({0, 1, 2, 3}, Granted{7, 0});
  REQUIRE(rig.ended_with<AcquireSucceeded>(rig.id));
  const bool alone = rig.ended(third);
  for (const NodeIndex node : {0U, 1U, 2U, 3U}) {
    const auto next = rig.oldest<LeaveCommand>(node).next;
    CHECK(next.line == (alone ? 0 : rig.id));
    CHECK(next.waited == (alone ? 0us : 200us));
    CHECK(rig.left(node, rig.id));
  }
  rig.answer(4, Granted{7, 0});
  CHECK(rig.left(4, rig.id));
  rig.advance(1ms);
  CHECK(rig.asked_in_all() == (alone ? 0 : 5));
}

TEST_CASE("a call that is named as the next and waits for room has the place of a late grant") {
  Crowd rig({.attempts_at_once = 1});
  const auto first = rig.acquire(in_order(60s));
  rig.refuse(all);
  const auto second = rig.acquire(in_order(60s));
  rig.wake(2, first);
  for (const NodeIndex node : {0U, 1U, 2U}) rig.answer(node, Granted{7, 3});
  REQUIRE(rig.ended_with<AcquireSucceeded>(first));
  auto other = Rig::request();
  other.name = std::make_shared<const std::string>("other");
  rig.acquire(other);
  rig.wake(1, first);
  rig.advance(2ms);
  REQUIRE(rig.asked_count(0) == 1);  // of the other name
  rig.answer(3, Granted{7, 3});
  REQUIRE(rig.asked_count(3) == 1);
  CHECK(rig.oldest_is<AcquireCommand>(3));
  rig.refuse({4});
  rig.take(4);  // the question of the other name
  CHECK(rig.left(4, first));
  rig.cancel(second);
}

TEST_CASE("a late answer leaves no line in which a later question stands the client") {
  Pair rig;
  rig.acquire(in_order(60s));
  rig.answer({0, 1, 2}, Granted{7, 0});
  rig.release(rig.grant_of(rig.id));
  rig.answer({0, 1, 2}, ReleasedHere{});
  rig.answer({0, 1, 2}, Granted{8, 0});
  REQUIRE(rig.ended_with<AcquireSucceeded>(rig.second));
  REQUIRE(rig.asked_count(3) == 3);
  rig.answer(3, Granted{7, 0});  // it names the second call
  rig.answer(3, ReleasedHere{});
  SUBCASE("it is in that line with its place") {
    rig.answer(3, Granted{8, 0});
    CHECK_FALSE(rig.asked(3));
  }
  SUBCASE("unless that is refused, and stood the call that is over there") {
    rig.refuse({3});
    CHECK(rig.left(3, rig.id));
    CHECK_FALSE(rig.asked(3));
  }
}

TEST_CASE("a late answer to the call before leaves a call that pauses in its place") {
  Pair rig;
  rig.answer({0, 1, 2}, Granted{7, 0});
  rig.release(rig.grant_of(rig.id));
  rig.answer({0, 1, 2}, ReleasedHere{});
  rig.answer(0, Granted{8});
  rig.refuse({1, 2, 4});  // the last of these to the first call
  rig.answer(4, ReleasedHere{});
  rig.refuse({4});
  rig.advance(500us);
  REQUIRE(rig.asked_count(3) == 4);  // two questions, and what gives back each
  rig.refuse({3});
  while (rig.asked_count(3) > 1) rig.take(3);
  REQUIRE(rig.oldest_is<LeaveCommand>(3));
  CHECK(rig.oldest<LeaveCommand>(3).next.line == rig.id);
}

TEST_CASE("a call in place of one that ended comes behind the same question") {
  Pair rig;
  const auto third = rig.acquire(in_order(60s));
  rig.answer({0, 1, 2}, Granted{7, 0});
  REQUIRE(rig.ended_with<AcquireSucceeded>(rig.id));
  rig.cancel(rig.second);
  rig.answer(4, Refused{30s});
  while (rig.asked_count(3) > 1) rig.take(3);
  CHECK_FALSE(rig.ended(third));
  REQUIRE(rig.oldest_is<AcquireCommand>(3));
  CHECK(rig.oldest<AcquireCommand>(3).place.is_new);
}

TEST_CASE("a client that gives a lock back asks for its next call in the same breath") {
  Pair rig;
  std::uint32_t before_it = 0;
  SUBCASE("if nobody is before it") {}
  SUBCASE("not if there are others between") {
    before_it = 2;
  }
  rig.answer({0, 1, 2}, Granted{7, before_it});
  REQUIRE(rig.ended_with<AcquireSucceeded>(rig.id));
  rig.release(rig.grant_of(rig.id));
  for (const NodeIndex node : {0U, 1U, 2U}) {
    REQUIRE(rig.oldest_is<ReleaseCommand>(node));
    rig.answer(node, ReleasedHere{});
    CHECK(rig.asked_count(node) == (before_it == 0 ? 1 : 0));
  }
  if (before_it > 0) return;
  // Also on those that have not answered yet, which is not waited for any more. They may stand the
  // client in the line for the call before, and give that call's turn.
  REQUIRE(rig.asked_count(3) == 3);
  CHECK_FALSE(rig.oldest<AcquireCommand>(0).place.is_new);
  rig.take(3);
  rig.take(3);
  CHECK(rig.oldest<AcquireCommand>(3).place.is_new);
  rig.answer({0, 1, 2}, Granted{8});
  CHECK(rig.ended_with<AcquireSucceeded>(rig.second));
}

TEST_CASE("a turn on a node that the client's own lock lacks changes nothing") {
  Pair rig;
  for (const NodeIndex node : {0U, 1U, 2U}) rig.answer(node, Granted{7, 0});
  REQUIRE(rig.ended_with<AcquireSucceeded>(rig.id));
  const GrantId grant = rig.grant_of(rig.id);
  rig.refuse({3, 4});
  REQUIRE(rig.left(3, rig.id));
  REQUIRE(rig.left(4, rig.id));
  rig.wake(4, rig.id);
  rig.wake(3, rig.id, 20ms);
  rig.advance(30ms);
  CHECK(rig.asked_in_all() == 0);
  SUBCASE("its release is what the next call asks behind") {
    rig.release(grant);
    rig.take(0);
    CHECK(rig.asked_in_all() == 7);
  }
  SUBCASE("a node that had granted it says that the lock was taken away") {
    rig.wake(1, rig.id);
    rig.advance(0ns);
    CHECK(rig.asked_in_all() == 5);
  }
  SUBCASE("the lock is lost, and it is asked after all") {
    rig.give_up(grant, LossReason::taken);
    rig.wake(4, rig.id);
    rig.advance(0ns);
    CHECK(rig.asked(4));
  }
}

TEST_CASE("a call that pauses in the line asks behind its client's release if it is the next") {
  Pair rig;
  for (const NodeIndex node : {0U, 1U, 2U}) rig.answer(node, Granted{7, 0});
  const GrantId grant = rig.grant_of(rig.id);
  rig.refuse({3, 4});
  rig.answer_acquires(NotHeld{});
  rig.wake(1, rig.id);
  rig.advance(0ns);
  rig.answer(4, Granted{8});
  rig.refuse({0, 1, 2, 3});
  rig.advance(1ms);
  REQUIRE(rig.oldest_is<ReleaseCommand>(4));  // the vote is given back
  rig.take(4);
  REQUIRE(rig.asked_in_all() == 0);
  rig.release(grant);
  rig.take(0);
  CHECK(rig.oldest_is<AcquireCommand>(0));
}

TEST_CASE("a call that waits in the lines asks behind its client's release if it is the next") {
  Waiter rig;
  rig.answer(all, Granted{7});
  const auto second = rig.acquire(in_order(60s));
  rig.refuse(all, 30s, 3);
  SUBCASE("as the nodes said at first, or the last time") {
    for (const NodeIndex node : {1U, 2U, 3U}) rig.wake(node, second, 20ms);
    rig.advance(25ms);  // it has looked once more, as the runner-up does
    rig.refuse(all, 30s, 0);
    rig.release(rig.grant_of(rig.id));
    CHECK(rig.asked_count(0) == 2);
  }
  SUBCASE("not otherwise") {
    rig.release(rig.grant_of(rig.id));
    CHECK(rig.asked_count(0) == 1);
  }
  SUBCASE("nor once another waiter has its turn before it") {
    for (const NodeIndex node : {1U, 2U, 3U}) rig.wake(node, second, 20ms);
    rig.advance(25ms);
    rig.refuse(all, 30s, 0);
    for (const NodeIndex node : {1U, 2U, 3U}) rig.wake(node, second, 20ms);
    rig.release(rig.grant_of(rig.id));
    CHECK(rig.asked_count(0) == 1);
  }
}

TEST_CASE("a call whose time ends before it could take part ends in time") {
  Waiter rig;
  rig.refuse(all);
  rig.wake(0, rig.id);
  const auto second = rig.acquire(in_order(50ms));
  rig.advance(49'500us);
  rig.answer(all, Granted{7});  // the second would ask a millisecond later
  rig.advance(500us);
  CHECK(rig.failure(second) == Errc::timed_out);
  CHECK(rig.asked_in_all() == 0);
}

TEST_CASE("a question that is asked later names a floor of its own time") {
  Crowd rig;
  for (const NodeIndex node : all) rig.read_clock(node);
  const auto id = rig.acquire(in_order(60s));
  const Token before = rig.oldest<AcquireCommand>(0).floor;
  rig.refuse(all);
  SUBCASE("when its turn has come") {
    rig.advance(500ms);
    rig.wake(0, id);
  }
  SUBCASE("by its own timer") {
    rig.advance(1'010ms);
  }
  REQUIRE(rig.oldest_is<AcquireCommand>(0));
  CHECK(rig.oldest<AcquireCommand>(0).floor >= before + 500'000);  // microseconds
}

TEST_CASE("while votes gather all are asked with one floor, so that they grant one token") {
  Crowd rig;
  for (const NodeIndex node : all) rig.read_clock(node);
  const auto id = rig.acquire(in_order(60s));
  rig.refuse(all);
  rig.wake(0, id);
  const Token floor = rig.oldest<AcquireCommand>(0).floor;
  rig.advance(100us);
  SUBCASE("a node has granted") {
    rig.answer(0, Granted{floor});
  }
  SUBCASE("a node has not answered") {}
  rig.refuse({1});
  rig.advance(100us);
  rig.wake(1, id);
  REQUIRE(rig.oldest_is<AcquireCommand>(1));
  CHECK(rig.oldest<AcquireCommand>(1).floor == floor);
}

TEST_CASE("two nodes tell the second waiter, each as often as the others") {
  Crowd rig({.slots = 7});
  std::array<int, 5> told{};
  for (int cycle = 0; cycle < 35; ++cycle) {
    const auto id = rig.acquire(in_order(60s));
    rig.answer(all, Granted{7});
    rig.release(rig.grant_of(id));
    int now = 0;
    for (const NodeIndex node : all) {
      const int tells = rig.oldest<ReleaseCommand>(node).first_only ? 0 : 1;
      told.at(node) += tells;
      now += tells;
    }
    CHECK(now == 2);
    rig.answer(all, ReleasedHere{});
  }
  CHECK(told == std::array{14, 14, 14, 14, 14});
}

TEST_CASE("two of the nodes that have the lock tell the second waiter") {
  Crowd rig;
  for (int cycle = 0; cycle < 8; ++cycle) {
    const auto id = rig.acquire(in_order(60s));
    rig.answer(0, down);
    rig.answer({1, 2, 3, 4}, Granted{7});
    rig.release(rig.grant_of(id));
    CHECK(rig.left(0, id));
    CHECK_FALSE(rig.asked(0));
    int told = 0;
    for (const NodeIndex node : {1U, 2U, 3U, 4U}) {
      told += rig.oldest<ReleaseCommand>(node).first_only ? 0 : 1;
      rig.answer(node, ReleasedHere{});
    }
    CHECK(told == 2);
  }
}

TEST_CASE("a call that does not wait overtakes nobody, and is in no line") {
  Crowd rig;
  const auto id = rig.acquire(in_order(0s));
  CHECK(rig.oldest<AcquireCommand>(0).in_order);
  CHECK(rig.oldest<AcquireCommand>(0).place.line == 0);
  rig.refuse({0, 1, 2});
  CHECK(rig.failure(id) == Errc::contended);
  for (const NodeIndex node : {0U, 1U, 2U}) CHECK_FALSE(rig.asked(node));
}

TEST_CASE("where too few nodes can wake it a waiter asks every 20 to 60 ms") {
  Crowd rig;
  rig.wakes(2);
  rig.acquire(in_order(60s));
  for (int round = 0; round < 20; ++round) {
    rig.refuse(all);
    CHECK(rig.asks_all_after(62ms, 43ms));
  }
}

TEST_CASE("a call that nobody wakes asks 20 to 60 ms after its client's call before has the lock") {
  Crowd rig;
  rig.wakes(2);
  rig.acquire(in_order(60s));
  rig.acquire(in_order(60s));
  rig.refuse(all);
  rig.advance(62ms);
  rig.answer_acquires(Granted{.token = 7, .next_place = 0});
  CHECK(rig.asks_all_after(62ms, 43ms));
}

TEST_CASE("a waiter that nobody wakes asks again also while its votes gather") {
  Crowd rig;
  rig.wakes(2);
  rig.acquire(in_order(60s));
  rig.advance(20ms);
  rig.answer(0, Granted{7});
  rig.refuse({1, 2, 3, 4});
  CHECK(rig.only_after(
      62ms, [&] { return rig.asked_in_all() == 4; }, 43ms));
  for (const NodeIndex node : {1U, 2U, 3U, 4U}) CHECK(rig.oldest_is<AcquireCommand>(node));
}

TEST_CASE(
    "a waiter that nobody wakes rests between its questions, however far apart nodes answer") {
  Crowd rig;
  rig.wakes(2);
  rig.acquire(in_order(60s));
  std::array<Duration, 5> asked_for{};
  int rests = 0;
  for (int at = 0; at < 2'000; ++at) {
    for (const NodeIndex node : all) {
      if (!rig.asked(node) || (asked_for.at(node) += 1ms) < 90ms + node * 5ms) continue;
      rig.refuse({node});
      asked_for.at(node) = {};
    }
    rests += rig.asked_in_all() == 0 ? 1 : 0;
    rig.advance(1ms);
  }
  CHECK(rests > 200);  // about one part in seven of that time
}

TEST_CASE("a node that is reached again is asked at once") {
  Waiter rig;
  rig.refuse({0});
  SUBCASE("when the others have answered") {
    rig.refuse({1, 2, 3});
    rig.answer(4, down);
    rig.node_up(4);
    CHECK(rig.asked(4));
    CHECK(rig.asked_in_all() == 1);
  }
  SUBCASE("and before, if nothing can come of what it was asked") {
    rig.answer(4, down);
    rig.node_up(4);
    CHECK(rig.asked(4));
  }
  SUBCASE("not before if that may still be carried out") {
    rig.answer(4, broken);
    rig.node_up(4);
    rig.wake(0, rig.id);
    CHECK_FALSE(rig.oldest_is<AcquireCommand>(4));
  }
}

TEST_CASE("after an answer that was lost, or that another process has the lock, a new owner asks") {
  for (const Reply& reply : {Reply{broken}, Reply{AlreadyOurs{}}}) {
    Waiter rig;
    rig.answer(4, reply);
    rig.wake(4, rig.id);
    CHECK_FALSE(rig.oldest_is<AcquireCommand>(4));
    rig.refuse({0, 1, 2, 3});
    // The old one may still be granted.
    const bool lost = std::holds_alternative<Unavailable>(reply);
    REQUIRE(rig.oldest_is<ReleaseCommand>(4) == lost);
    if (lost) CHECK(rig.oldest<ReleaseCommand>(4).owner == rig.first.owner);
    rig.advance(61ms);
    REQUIRE(rig.oldest_is<AcquireCommand>(0));
    CHECK(rig.oldest<AcquireCommand>(0).owner != rig.first.owner);
    CHECK(rig.oldest<AcquireCommand>(0).place.waited >= 20ms);
    CHECK(rig.oldest_is<AcquireCommand>(4) != lost);
  }
}

TEST_CASE("waiters take no room from others") {
  Rig rig(1, {.attempts_at_once = 1});
  rig.wakes(1);
  rig.acquire(in_order(60s));
  auto other = in_order(60s);
  other.name = std::make_shared<const std::string>("seat B07");
  const auto id = rig.acquire(std::move(other));
  CHECK(rig.asked_count(0) == 1);
  rig.answer(0, Refused{30s});
  REQUIRE(rig.asked_count(0) == 1);
  rig.answer(0, Granted{7});
  CHECK(rig.ended_with<AcquireSucceeded>(id));
}

TEST_CASE("a turn of somebody who is unknown, or that comes again, changes nothing") {
  Crowd rig;
  rig.wake(0, 4711);
  const auto id = rig.acquire(in_order(60s));
  rig.answer({0, 1, 2}, Granted{7});
  REQUIRE(rig.ended_with<AcquireSucceeded>(id));
  rig.wake(0, id);
  rig.wake(9 % 5, id, 20ms);
  rig.advance(100ms);
  CHECK_FALSE(rig.asked(0));
}

TEST_CASE("of wake-ups that lead to no lock so many are heeded in a second, of each node") {
  Waiter rig;
  rig.refuse(all);
  const auto heeded = [&](NodeIndex node) {
    rig.wake(node, rig.id);
    const bool asks = rig.asked_in_all() == 5;
    if (asks) rig.refuse(all);
    return asks;
  };
  constexpr std::size_t most = WakeAllowance::for_all + WakeAllowance::for_each_attempt;
  std::size_t in_vain = 0;
  for (std::size_t i = 0; i < 3 * most; ++i) in_vain += heeded(2) ? 1 : 0;
  CHECK(in_vain == most);
  CHECK(heeded(3));
  rig.advance(999ms);
  CHECK_FALSE(heeded(2));
  rig.advance(1ms);
  CHECK(heeded(2));
}

TEST_CASE("wake-ups that lead to locks are heeded however many there are") {
  Crowd rig;
  for (std::size_t i = 0; i < 2 * WakeAllowance::for_all; ++i) {
    const auto id = rig.acquire(in_order(60s));
    rig.refuse(all);
    for (const NodeIndex node : {0U, 1U, 2U}) {
      rig.wake(node, id, 20ms);
      rig.wake(node, id);
    }
    REQUIRE(rig.asked_in_all() == 5);
    rig.answer(all, Granted{7});
    rig.drop(rig.grant_of(id));
    rig.answer_acquires(NotHeld{});
  }
}

TEST_CASE("wake-ups of calls that have not asked yet are heeded however many there are") {
  Crowd rig;
  RequestId first = rig.acquire(in_order(60s));
  const RequestId line = first;
  rig.refuse(all);
  for (std::size_t i = 0; i < 2 * WakeAllowance::for_all; ++i) {
    const auto second = rig.acquire(in_order(60s));
    for (const NodeIndex node : {0U, 1U, 2U}) rig.wake(node, line);
    rig.advance(0ms);
    REQUIRE(rig.asked_in_all() == 5);
    rig.answer_acquires(Granted{.token = 7, .next_place = 1});
    rig.drop(rig.grant_of(first));
    rig.answer_acquires(NotHeld{});
    first = second;
  }
}

TEST_CASE("two thousand waiters whose turns all come at once are all heeded") {
  Crowd rig;
  std::vector<RequestId> waiters;
  for (std::size_t i = 0; i < 2'000; ++i) {
    auto what = in_order(60s);
    what.name = std::make_shared<const std::string>("seat " + std::to_string(i));
    waiters.push_back(rig.acquire(std::move(what)));
    rig.refuse(all);
  }
  for (const RequestId id : waiters) {
    rig.wake(0, id);
    REQUIRE(rig.asked_in_all() == 5);
    rig.refuse(all);
  }
}
