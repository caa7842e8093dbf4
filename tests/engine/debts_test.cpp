// SPDX-License-Identifier: MIT
// What is owed to a node: the releases that it has not confirmed, which of its answers clear them,
// and for how long they are kept.
#include "engine/rig.hpp"

using namespace redlock::engine::test;

namespace {

struct Case {
  const char* what;
  Reply reply;
  bool clears;
};

/// Answers to an acquire whose release has been written already.
const Case answers[] = {
    {"unknown", broken, false},
    {"granted", Granted{7}, false},
    {"refused", Refused{9s}, true},
    {"NOSCRIPT", NoScript{}, true},
    {"never sent", down, true},
    {"an error", Unavailable{Cause::loading, Delivery::refused, "LOADING"}, true},
};

/// An attempt that was cancelled, and of which node 2 may have anything.
void cancelled_attempt(Rig& rig) {
  rig.cancel(rig.acquire());
}

/// The release, which is what node 2 is asked now, was executed or not, and it comes back later.
void back_after(Rig& rig, Duration time) {
  rig.answer(2, broken);
  rig.advance(time);
  rig.node_up(2);
}

/// Node 2 answers the release so, and comes back long after the lease. Whether it is released then.
bool released_long_after(Rig& rig, const Reply& reply = broken) {
  rig.answer(2, reply);
  rig.advance(10min);
  CHECK_FALSE(rig.asked(2));
  CHECK(rig.engine.deadline() == never);
  rig.node_up(2);
  return rig.asked(2);
}

/// That many leases were released, so long after one another, and node 2 has answered each release
/// with this.
void owe(Rig& rig, int leases, const std::optional<Reply>& answer, Duration apart = {}) {
  for (int i = 0; i < leases; ++i) {
    rig.release(rig.lease_on_all().grant);
    rig.answer({0, 1}, ReleasedHere{});
    while (answer && rig.asked(2)) rig.answer(2, *answer);
    rig.advance(apart);
  }
}

/// How often the engine wants to be called while this much time passes.
int wake_ups(Rig& rig, Duration span) {
  const Instant end = rig.now + span;
  int count = 0;
  while (rig.engine.deadline() <= end) {
    rig.advance(std::max(rig.engine.deadline() - rig.now, Duration::zero()));
    ++count;
    REQUIRE(count < 10'000);
  }
  rig.advance(end - rig.now);
  return count;
}

}  // namespace

TEST_CASE("only an answer that says so shows that an acquire, or a heal, left nothing to release") {
  for (const bool heals : {false, true}) {
    for (const Case& answer : answers) {
      CAPTURE(answer.what);
      Rig rig(3);
      Send straggler;
      if (heals) {
        const GrantId grant = rig.lease_on_all(Rig::renewed()).grant;
        straggler = rig.heal_of(2);
        rig.release(grant);
      } else {
        const auto id = rig.acquire();
        straggler = rig.take(2);
        rig.cancel(id);
      }
      rig.answer(straggler, answer.reply);
      back_after(rig, 0s);
      CHECK(rig.releases(2) == (answer.clears ? 0 : 1));
    }
  }
}

TEST_CASE("many debts are repeated a part at a time, the next one as an answer comes") {
  Rig rig(3);
  owe(rig, 1'000, broken);
  rig.node_up(2);
  const std::size_t at_once = rig.releases(2);
  CHECK(at_once >= 100);
  CHECK(at_once <= 300);
  // Behind no more than these stands what is asked meanwhile.
  rig.acquire();
  CHECK(rig.asked_count(2) == at_once + 1);
  std::size_t repeated = 0;
  for (; rig.asked(2); ++repeated) {
    if (!rig.oldest_is<ReleaseCommand>(2)) {
      rig.answer(2, Granted{7});
      --repeated;
      continue;
    }
    const bool is_new = rig.releases(2) < at_once;
    CHECK((!is_new || repeated + rig.releases(2) == 1'000));
    rig.answer(2, repeated % 3 == 0 ? Reply{ReleasedHere{}} : Reply{NotHeld{}});
  }
  CHECK(repeated == 1'000);
  CHECK(rig.engine.releases_under_way() == 0);
}

TEST_CASE("a release of now is sent at once beside debts that wait, and end with their lease") {
  Rig rig(3);
  owe(rig, 1'000, broken);
  rig.node_up(2);
  const std::size_t at_once = rig.releases(2);
  rig.release(rig.lease_on({0, 1}).grant);
  CHECK(rig.releases(2) == at_once + 1);
  rig.advance(31s);
  std::size_t repeated = 0;
  for (; rig.asked(2); ++repeated) rig.answer(2, NotHeld{});
  CHECK(repeated == at_once + 2);  // with the acquire and the release of now
}

TEST_CASE("debts whose turn had not come are repeated on the connection after the next") {
  Rig rig(3);
  for (int i = 0; i < 1'000; ++i) cancelled_attempt(rig);
  while (rig.asked(2)) rig.answer(2, broken);
  rig.advance(10min);  // they may come late all the same
  rig.node_up(2);
  const std::size_t at_once = rig.releases(2);
  while (rig.asked(2)) rig.answer(2, broken);
  rig.advance(10min);
  std::size_t repeated = at_once;
  for (rig.node_up(2); rig.asked(2); ++repeated) rig.answer(2, ReleasedHere{});
  CHECK(repeated == 1'000);
}

TEST_CASE("releases that a node refuses are asked again a part at a time, too") {
  Rig rig(3);
  owe(rig, 1'000, Unavailable{Cause::server_error, Delivery::refused, "ERR"});
  rig.advance(500ms);
  CHECK(rig.releases(2) <= 300);
  std::size_t repeated = 0;
  for (; rig.asked(2); ++repeated) rig.answer(2, NotHeld{});
  CHECK(repeated == 1'000);
}

TEST_CASE("a release that is refused is asked again once, behind those that wait") {
  Rig rig(3);
  owe(rig, 1'000, broken);
  rig.node_up(2);
  const std::size_t refused = rig.releases(2);
  for (std::size_t i = 0; i < 2 * refused; ++i) {  // in a shared call, then alone
    rig.answer(2, Unavailable{Cause::server_error, Delivery::refused, "ERR"});
  }
  rig.advance(2s);
  std::size_t others = 0;
  for (; rig.asked(2); ++others) rig.answer(2, NotHeld{});
  CHECK(others == 1'000 - refused);
  rig.advance(500ms);
  CHECK(rig.releases(2) == refused);
}

TEST_CASE("a release that is under way is not repeated, nor one that was confirmed") {
  LeaseRig rig;
  rig.release(rig.grant);
  rig.node_up(2);
  CHECK(rig.releases(2) == 1);
  CHECK(rig.engine.releases_under_way() == 3);
  rig.answer({0, 1, 2}, ReleasedHere{});
  rig.node_up(2);
  CHECK_FALSE(rig.asked(2));
  CHECK(rig.engine.releases_under_way() == 0);
}

TEST_CASE("a release is owed for the longest lease that was asked for") {
  for (const auto& extended : {60s, 1s}) {
    LeaseRig rig;
    rig.extend(rig.grant, extended);
    rig.answer(2, broken);  // it may have lengthened the lease all the same
    rig.release(rig.grant);
    const auto longest = std::max<Duration>(extended, 30s);
    back_after(rig, longest - 15s);
    CHECK(rig.releases(2) == 1);
    back_after(rig, longest - 1s);  // it may have been lengthened as late as that
    CHECK(rig.releases(2) == 1);
    back_after(rig, 1s);
    CHECK_FALSE(rig.asked(2));
  }
}

TEST_CASE("a debt stays while a hold may come late, and lengthen what it finds") {
  for (const bool late : {false, true}) {
    CAPTURE(late);
    const Reply reply = late ? Reply{broken} : Reply{Held{7}};
    RenewedRig own;
    own.advance(10s);
    own.answer(2, reply);
    own.answer({0, 1}, Held{7});
    own.release(own.grant);
    CHECK(released_long_after(own) == late);

    Rig taken_up(3);
    const GrantId grant = taken_up.take_up();
    taken_up.answer(2, reply);
    taken_up.release(grant);
    CHECK(released_long_after(taken_up) == late);
  }
}

TEST_CASE("a hold that was not sent leaves what is known of the one before") {
  for (const bool unknown : {false, true}) {
    CAPTURE(unknown);
    LeaseRig rig;
    rig.extend(rig.grant, 30s);
    rig.answer(2, unknown ? Reply{broken} : Reply{Held{7}});
    rig.answer({0, 1}, Held{7});
    rig.extend(rig.grant, 30s);
    rig.answer({0, 1}, Held{7});
    rig.answer(2, down);
    rig.release(rig.grant);
    CHECK(released_long_after(rig, down) == unknown);
  }
}

TEST_CASE("a hold that turns out not to have been sent after the release is not waited for") {
  for (const bool sent : {false, true}) {
    CAPTURE(sent);
    LeaseRig rig;
    rig.extend(rig.grant, 30s);
    rig.answer({0, 1}, Held{7});
    const Send hold = rig.take(2);  // waits for the connection
    rig.release(rig.grant);
    rig.answer(hold, sent ? broken : down);
    CHECK(released_long_after(rig, down) == sent);
  }
}

TEST_CASE("nothing is owed for ever to a node that was sent nothing of a grant of elsewhere") {
  Rig taken_up(3);
  const GrantId grant = taken_up.take_up();
  taken_up.answer(2, down);
  taken_up.release(grant);
  taken_up.answer({0, 1}, ReleasedHere{});
  CHECK_FALSE(released_long_after(taken_up, down));

  Rig rig(3);
  rig.release_elsewhere({{5, 6}});
  rig.answer({0, 1}, ReleasedHere{});
  CHECK_FALSE(released_long_after(rig, down));
}

TEST_CASE("a settling hold that may come late keeps the debt of its attempt") {
  Rig rig(3);
  const auto id = rig.attempt({Granted{2}, Granted{1}, Refused{9s}});
  rig.answer(1, broken);
  CHECK(rig.failure(id).has_value());
  rig.answer(1, broken);
  rig.advance(10min);
  rig.node_up(1);
  CHECK(rig.releases(1) == 1);
}

TEST_CASE("the release of what was never answered is kept until the node is up, once") {
  // A node that hung for longer than the lease may execute it when it comes back.
  for (const bool heals : {false, true}) {
    for (const Reply& then : {Reply{ReleasedHere{}}, Reply{broken}}) {
      Rig rig(3);
      if (heals) {
        const GrantId grant = rig.lease_on_all(Rig::renewed()).grant;
        rig.forgets(2);
        rig.release(grant);
      } else {
        cancelled_attempt(rig);
      }
      rig.answer(2, broken);
      rig.answer(2, broken);
      rig.answer({0, 1}, broken);
      rig.advance(10min);
      CHECK_FALSE(rig.asked(2));
      if (!heals) CHECK(rig.engine.deadline() == never);
      rig.node_up(2);
      REQUIRE(rig.releases(2) == 1);
      rig.answer(2, then);
      rig.advance(10min);
      rig.node_up(2);
      CHECK_FALSE(rig.asked(2));
    }
  }
}

TEST_CASE("a grant that comes after the release lasts from then on, and so does what is owed") {
  // A node that hung executes the acquire late, and is gone before it executes the release.
  Rig rig(3);
  cancelled_attempt(rig);
  rig.advance(25s);
  rig.answer(2, Granted{7});
  back_after(rig, 10s);
  CHECK(rig.releases(2) == 1);
  back_after(rig, 20s);
  CHECK_FALSE(rig.asked(2));
}

TEST_CASE("many debts to a dead node wake nobody more than twice a second") {
  Rig rig(3);
  owe(rig, 500, broken, 3ms);
  CHECK(wake_ups(rig, 60s) <= 120);
  CHECK(rig.engine.deadline() == never);
}

TEST_CASE("releases that fail after their lease has ended wake nobody more often, either") {
  Rig rig(3);
  owe(rig, 500, std::nullopt);
  rig.advance(31s);
  int count = 0;
  for (int i = 0; i < 500; ++i) {
    rig.answer(2, broken);
    count += wake_ups(rig, 2ms);
  }
  CHECK(count <= 2);
}

TEST_CASE("a release that a node answered with any error of its own is asked again") {
  for (const Unavailable& error : {Unavailable{Cause::server_error, Delivery::unknown, "ERR"},
                                   Unavailable{Cause::permission, Delivery::unknown, "ERR"},
                                   Unavailable{Cause::busy, Delivery::refused, "BUSY"}}) {
    LeaseRig rig;
    rig.release(rig.grant);
    // The script may have run, but it was the node that answered: no new connection will come.
    rig.answer(2, error);
    if (error.delivery == Delivery::unknown) {
      // Perhaps it was another release of the same call that it could not do.
      REQUIRE(rig.releases(2) == 1);
      CHECK(rig.oldest<ReleaseCommand>(2).alone);
      rig.answer(2, error);
    }
    CHECK_FALSE(rig.asked(2));
    rig.advance(500ms);
    REQUIRE(rig.releases(2) == 1);
    rig.answer(2, ReleasedHere{});
    rig.advance(60s);
    CHECK_FALSE(rig.asked(2));
  }
}

TEST_CASE("a heal that left nothing settles no release of a grant that was taken up") {
  // Whoever detached it may have an acquire on its way, and the release may not have been executed.
  for (const Reply& of_release : {Reply{NoScript{}}, Reply{broken}}) {
    Rig rig(3);
    const auto id = rig.attach({{5, 6}}, 7, 30s);
    rig.answer(2, Free{});
    rig.answer({0, 1}, Held{7});
    const Send heal = rig.take(2);
    rig.release(rig.grant_of(id));
    rig.answer(heal, Refused{});
    rig.answer(2, of_release);
    rig.node_up(2);
    CHECK(rig.oldest_is<ForceCommand>(2));
  }
}

TEST_CASE("a release that a node always refuses is repeated for a lease, and not for ever") {
  const Unavailable error{Cause::server_error, Delivery::unknown, "ERR"};
  for (const bool elsewhere : {false, true}) {
    CAPTURE(elsewhere);
    Rig rig(3);
    if (elsewhere) {
      rig.release_elsewhere({{5, 6}});
    } else {
      rig.cancel(rig.acquire());
      rig.answer(2, error);  // the acquire, of which something may be there
    }
    int repeated = 0;
    for (Duration passed{}; passed < 5min; passed += 500ms) {
      for (; rig.asked(2); ++repeated) rig.answer(2, error);
      rig.advance(500ms);
    }
    CHECK(repeated > 50);
    CHECK(repeated < 250);
    CHECK(rig.engine.deadline() == never);
  }
}
