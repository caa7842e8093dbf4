// SPDX-License-Identifier: MIT
// Admin::force_release against real nodes: who loses the lock, how that holder learns of it, and
// that nobody else is touched. That a watchdog tells of it is in cli_force_test.cpp.
#include "api_fixture.hpp"

namespace redlock::testing {
namespace {

TEST_CASE("a forced holder is told so when it asks, and the next has a larger token") {
  const Fleet fleet({.nodes = 3});
  const Client holder = start_client(fleet);
  const Client other = start_client(fleet);
  Lease lease = lock_everywhere(holder, fleet, "a", {.lease = 50s});

  const auto forced = must(Admin(other).force_release("a"));
  CHECK(forced.outcome == Forced::released);
  CHECK(forced.name == "a");
  CHECK(forced.owner == lease.owner());
  CHECK(forced.quorum == 2);

  const Lease next = must(other.lock("a").acquire({.wait = patience}));
  CHECK(next.token() > lease.token());
  CHECK_FALSE(lease.loss_reason());
  CHECK(code_of(lease.confirm()) == Errc::lost);
  REQUIRE(lease.lost().stop_requested());
  CHECK(lease.loss_reason() == LossReason::forced);
  CHECK(lease.remaining() == 0ns);
  CHECK(std::string(to_string(*lease.loss_reason())) == "forced");
  CHECK(must(lease.release()) == Released::already_gone);
  CHECK(next.valid());
  CHECK(must(Admin(other).inspect("a")).owner == next.owner());
}

TEST_CASE("what is not held by redlock on a quorum of nodes is not forced") {
  const Fleet fleet({.nodes = 3});
  const Client client = start_client(fleet);
  const auto forced = must(Admin(client).force_release("nobody's"));
  CHECK(forced.outcome == Forced::nothing_held);
  CHECK(forced.owner.empty());
  CHECK(forced.confirmed == 0);
  CHECK(code_of(Admin(client).force_release("{}")) == Errc::invalid_argument);

  // The rest of an attempt on a minority is left to end by itself.
  fleet.run(0, {"HSET", "redlock:lock:{rest}", std::string(32, 'e'), "1"});
  CHECK(must(Admin(client).force_release("rest")).outcome == Forced::nothing_held);
  CHECK(nodes_with_lock(fleet, "rest") == 1);

  for (const std::size_t node : {0U, 1U}) {
    fleet.run(node, {"HSET", "redlock:lock:{foreign}", "somebody", "1"});
  }
  CHECK(code_of(Admin(client).force_release("foreign")) == Errc::invalid_argument);
  CHECK(nodes_with_lock(fleet, "foreign") == 2);
}

TEST_CASE("a force says of each node what became of the lock there; of a quorum if it is known") {
  Fleet fleet({.nodes = 3});
  const Client client = start_client(fleet);
  const Lease first = lock_everywhere(client, fleet, "a", {.lease = 50s});
  const Lease second = lock_everywhere(client, fleet, "b", {.lease = 50s});
  REQUIRE(fleet.run(0, {"DEL", "redlock:lock:{a}"}) == "1");
  fleet.kill(2);
  const auto forced = must(Admin(client).force_release("a"));
  CHECK(forced.outcome == Forced::released);
  CHECK(forced.removed == 1);
  CHECK(forced.confirmed == 2);
  CHECK(forced.nodes[0].what == ForcedHere::not_held);
  CHECK(forced.nodes[1].what == ForcedHere::removed);
  CHECK(forced.nodes[2].what == ForcedHere::unreachable);

  fleet.kill(1);
  const auto unknown = must(Admin(client).force_release("b"));
  CHECK(unknown.outcome == Forced::unknown);
  CHECK(unknown.owner == second.owner());
  CHECK(unknown.removed == 1);
  CHECK(unknown.confirmed == 1);
  CHECK(unknown.nodes[0].what == ForcedHere::removed);
  CHECK(unknown.nodes[1].what == ForcedHere::unreachable);
  CHECK(unknown.nodes[1].trouble.cause != Cause::none);
}

TEST_CASE("what remembers a forced owner is no lock, keeps its grant out, and ends by itself") {
  const Fleet fleet({.nodes = 3});
  const Client client = start_client(fleet);
  const Grant grant = lock_everywhere(client, fleet, "a").detach();
  REQUIRE(must(Admin(client).force_release("a")).outcome == Forced::released);
  REQUIRE(soon_free_everywhere(fleet, "a"));
  const auto attached = client.lock("a").attach(grant);
  REQUIRE(code_of(attached) == Errc::lost);
  CHECK(contains(attached.error().message, "by force"));
  CHECK(must(Admin(client).list()).locks.empty());
  CHECK(must(Admin(client).list("*forced*")).locks.empty());
  CHECK(must(Admin(client).inspect("a")).verdict == Verdict::free);
  // max_lease, 60 s, 1 % of it, 2 ms, and a second.
  const auto left = std::stoll(fleet.run(0, {"PTTL", "redlock:forced:{a}:" + grant.owner}));
  CHECK(left > 0);
  CHECK(left <= 61'602);
}

}  // namespace
}  // namespace redlock::testing
