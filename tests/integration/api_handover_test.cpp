// SPDX-License-Identifier: MIT
// Grants that go from hand to hand: what is late of the first holder finds no way back.
#include "integration/api_fixture.hpp"
#include "support/proxy.hpp"

namespace redlock::testing {
namespace {

TEST_CASE("a grant is taken up and extended by another client, and lost if a third releases it") {
  const Client first = start_client(three_nodes());
  const Client second = start_client(three_nodes());
  Lease lease = must(first.lock("handed over").acquire());
  const std::uint64_t token = lease.token();
  const Grant grant = lease.detach();
  CHECK_FALSE(lease);
  CHECK(grant.token == token);
  CHECK(code_of(first.lock("handed over").acquire()) == Errc::contended);

  Grant wrong = grant;
  ++wrong.token;
  const auto refused = second.lock("handed over").attach(wrong);
  CHECK(code_of(refused) == Errc::invalid_argument);
  CHECK(contains(refused.error().message,
                 "the token " + std::to_string(wrong.token) + " was never given for it"));
  CHECK(contains(refused.error().message, "is below the token"));
  Lease taken_up = must(second.lock("handed over").attach(grant, {.lease = 20s}));
  CHECK(taken_up.owner() == grant.owner);
  const auto before = taken_up.valid_until();
  CHECK(must(taken_up.extend(40s)) > before);
  CHECK(must(taken_up.extend(1s)) > before);  // never shortened

  CHECK(must(first.lock("handed over").release(grant)) == Released::released);
  CHECK(code_of(taken_up.extend(20s)) == Errc::lost);
  CHECK(code_of(second.lock("handed over").attach(grant)) == Errc::lost);
  CHECK(taken_up.loss_reason() == LossReason::forced);  // for good: by its grant, from elsewhere
  CHECK(taken_up.lost().stop_requested());
  CHECK_FALSE(taken_up.valid());
  CHECK(must(taken_up.release()) == Released::already_gone);
}

TEST_CASE("what was on its way when a lease was detached does not revive it after its release") {
  const Fleet fleet({.nodes = 3});
  Proxy proxy(fleet.port(2));
  const Client first = start_client(options_for({fleet.uri(0), fleet.uri(1), proxy.uri()}));
  const Client second = start_client(fleet);
  warm_up(first, fleet);
  for (const bool takes_it_up : {true, false}) {
    CAPTURE(takes_it_up);
    proxy.hold_requests();
    Lease lease = must(first.lock("a").acquire());
    REQUIRE_FALSE(is_locked_on(fleet, 2, "a"));
    const Grant grant = lease.detach();
    RedLock lock = second.lock("a");
    CHECK(must(takes_it_up ? must(lock.attach(grant)).release() : lock.release(grant)) ==
          Released::released);
    // A release is told by a quorum, and one that came to the last node behind a late acquire would
    // only free it again.
    REQUIRE(soon_free_everywhere(fleet, "a"));
    for (std::size_t node = 0; node < 3; ++node) {
      REQUIRE(eventually([&] {
        return fleet.run(node, {"EXISTS", "redlock:forced:{a}:" + grant.owner}) == "1";
      }));
    }
    proxy.pass();
    // Behind it on the same connection.
    must(lock_everywhere(first, fleet, "b").release());
    CHECK_FALSE(is_locked_on(fleet, 2, "a"));
  }
}

}  // namespace
}  // namespace redlock::testing
