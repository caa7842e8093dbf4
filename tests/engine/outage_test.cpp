// SPDX-License-Identifier: MIT
// A node that is down for days, or answers everything with an error, while a program goes on
// handing leases over: what is remembered of that, and what is sent because of it, has an end.
#include "engine/rig.hpp"

using namespace redlock::engine::test;

TEST_CASE(
    "nothing is owed for ever to a node that was down while a grant of elsewhere was released") {
  for (const bool taken_up : {false, true}) {
    CAPTURE(taken_up);
    Rig rig(3);
    if (taken_up) {
      const GrantId grant = rig.take_up();
      rig.answer(2, down);
      rig.release(grant);
    } else {
      rig.release_elsewhere({{5, 6}});
    }
    rig.answer({0, 1}, ReleasedHere{});
    rig.answer(2, down);
    rig.advance(10min);
    rig.node_up(2);
    CHECK_FALSE(rig.asked(2));
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
    rig.answer(2, down);
    rig.advance(10min);
    rig.node_up(2);
    CHECK(rig.asked(2) == unknown);
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
    rig.answer(2, down);
    rig.advance(10min);
    rig.node_up(2);
    CHECK(rig.asked(2) == sent);
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
