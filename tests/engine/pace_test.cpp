// SPDX-License-Identifier: MIT
// Many leases: renewals fall on common moments, so that they travel together, and a crowd that is
// due at once is spread out without losing anybody.
#include "engine/rig.hpp"

using namespace redlock::engine::test;

namespace {

/// Answers everything for so long: how many at most were asked for at one moment.
std::size_t most_at_once(Rig& rig, std::chrono::milliseconds time) {
  std::size_t most = 0;
  for (; time > 0ms; time -= 10ms) {
    rig.advance(10ms);
    most = std::max(most, rig.asked_count(0));
    rig.answer_all(Held{7});
  }
  return most;
}

}  // namespace

TEST_CASE("leases granted a little apart are renewed at the same moment") {
  Rig rig(3);
  rig.lease_on_all(Rig::renewed());
  rig.advance(4ms);
  rig.lease_on_all(Rig::renewed());
  rig.advance(10s - 4ms);
  CHECK(rig.asked_count(0) == 2);
}

TEST_CASE("of a crowd that is due at once a hundred are renewed, the rest is spread") {
  for (const int leases : {350, 4'000}) {
    Rig rig(3);
    rig.renewed_leases(leases);
    rig.advance(10s);
    CHECK(rig.asked_count(0) == 100);
    rig.answer_all(Held{7});
    const int moments = 32;  // in a thirtieth of the lease
    CHECK(most_at_once(rig, 1s) == (leases - 100 + moments - 1) / moments);
    CHECK(rig.renewals.size() == leases);
    // The next time they come as they were spread.
    rig.advance(9s);
    CHECK(rig.asked_count(0) >= 100);
    CHECK(rig.asked_count(0) <= 122);
  }
}

TEST_CASE("among very many leases three thousandths at once are no crowd") {
  Rig rig(1);
  for (int i = 0; i < 34'000; ++i) rig.lease_on_all(Rig::request());
  rig.renewed_leases(200);
  rig.advance(10s);
  CHECK(rig.asked_count(0) == 102);
}

TEST_CASE("a lease that cannot wait is not postponed") {
  Rig rig(3);
  const auto grants = rig.renewed_leases(250);
  // The loop did not run for so long that little is left.
  rig.pause(20s);
  rig.advance(0ns);
  CHECK(rig.asked_count(0) == 250);
  CHECK(rig.lost.empty());
}

TEST_CASE("a lease that was released while it was postponed is not renewed") {
  Rig rig(3);
  const auto grants = rig.renewed_leases(150);
  rig.advance(10s);
  rig.answer_all(Held{7});
  for (const GrantId grant : grants) rig.drop(grant);
  rig.advance(1s);
  for (; rig.asked(0); rig.answer({0, 1, 2}, ReleasedHere{})) {
    CHECK(rig.oldest_is<ReleaseCommand>(0));
  }
}

TEST_CASE("of a crowd that is due at once none is lost while the nodes answer") {
  for (const auto lease : {300ms, 1'000ms, 30'000ms}) {
    CAPTURE(lease.count());
    Rig rig(3);
    rig.renewed_leases(1'000, lease);
    CHECK(most_at_once(rig, 2 * lease) >= 100);
    CHECK(rig.lost.empty());
  }
}
