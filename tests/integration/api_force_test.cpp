// SPDX-License-Identifier: MIT
// Admin::force_release against real nodes: who loses the lock, how that holder learns of it, and
// that nobody else is touched.
#include "api_fixture.hpp"

namespace redlock::testing {
namespace {

/// Held on every node, so that whatever is found was not a straggler.
Lease everywhere(const Client& client, const Fleet& fleet, const std::string& name) {
  Lease lease = must(client.lock(name).acquire({.lease = 50s}));
  REQUIRE(eventually([&] { return nodes_with_lock(fleet, name) == fleet.size(); }));
  return lease;
}

TEST_CASE("a forced holder is told so when it asks, and the next has a larger token") {
  const Fleet fleet({.nodes = 3});
  const Client holder = start_client(fleet);
  const Client other = start_client(fleet);
  Lease lease = everywhere(holder, fleet, "a");

  const auto forced = must(Admin(other).force_release("a"));
  CHECK(forced.outcome == Forced::released);
  CHECK(forced.name == "a");
  CHECK(forced.owner == lease.owner());
  CHECK(forced.quorum == 2);
  CHECK(forced.removed >= 1);
  CHECK(forced.confirmed >= 2);
  REQUIRE(forced.nodes.size() == 3);
  for (std::size_t node = 0; node < 3; ++node) {
    CHECK(forced.nodes[node].node == fleet.uri(node));
    CHECK(forced.nodes[node].what == ForcedHere::removed);
  }

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

TEST_CASE("a forced holder whose lease is renewed is told by its watchdog") {
  const Fleet fleet({.nodes = 3});
  const Client client = start_client(fleet);
  const Lease lease = must(client.lock("a").acquire({.lease = 15s, .renewal = Renewal::always}));
  CHECK(must(Admin(client).force_release("a")).outcome == Forced::released);
  CHECK(eventually([&] { return lease.lost().stop_requested(); }));
  CHECK(lease.loss_reason() == LossReason::forced);
}

TEST_CASE("a grant that was forced out cannot be taken up again") {
  const Fleet fleet({.nodes = 3});
  const Client client = start_client(fleet);
  const Grant grant = everywhere(client, fleet, "a").detach();
  CHECK(must(Admin(client).force_release("a")).outcome == Forced::released);
  const auto attached = client.lock("a").attach(grant);
  REQUIRE(code_of(attached) == Errc::lost);
  CHECK(attached.error().message.find("by force") != std::string::npos);
}

TEST_CASE("where nobody holds it nothing is released") {
  const Client client = start_client(three_nodes());
  const auto forced = must(Admin(client).force_release("nobody's"));
  CHECK(forced.outcome == Forced::nothing_held);
  CHECK(forced.owner.empty());
  CHECK(forced.confirmed == 0);
  CHECK(code_of(Admin(client).force_release("{}")) == Errc::invalid_argument);
}

TEST_CASE("the rest of an attempt on a minority is left to end by itself") {
  const Fleet fleet({.nodes = 3});
  const Client client = start_client(fleet);
  const std::string lock = "redlock:lock:{a}";
  fleet.run(0, {"HSET", lock, std::string(32, 'e'), "1"});
  CHECK(must(Admin(client).force_release("a")).outcome == Forced::nothing_held);
  CHECK(is_locked_on(fleet, 0, "a"));
}

TEST_CASE("what redlock does not hold it does not force") {
  const Fleet fleet({.nodes = 1});
  const Client client = start_client(fleet);
  fleet.run(0, {"HSET", "redlock:lock:{a}", "somebody", "1"});
  CHECK(code_of(Admin(client).force_release("a")) == Errc::invalid_argument);
  CHECK(is_locked_on(fleet, 0, "a"));
}

TEST_CASE("without a quorum it is not known what came of it, and the votes say why") {
  Fleet fleet({.nodes = 3});
  auto options = options_for(fleet.uris());
  const Client client = start_client(options);
  const Lease lease = everywhere(client, fleet, "a");
  fleet.kill(1);
  fleet.kill(2);
  const auto forced = must(Admin(client).force_release("a"));
  CHECK(forced.outcome == Forced::unknown);
  CHECK(forced.owner == lease.owner());
  CHECK(forced.removed == 1);
  CHECK(forced.confirmed == 1);
  CHECK(forced.nodes[0].what == ForcedHere::removed);
  CHECK(forced.nodes[1].what == ForcedHere::unreachable);
  CHECK(forced.nodes[1].trouble.cause != Cause::none);
}

TEST_CASE("with a minority of the nodes dead a lock can be forced") {
  Fleet fleet({.nodes = 3});
  const Client client = start_client(fleet);
  const Lease lease = everywhere(client, fleet, "a");
  fleet.kill(2);
  const auto forced = must(Admin(client).force_release("a"));
  CHECK(forced.outcome == Forced::released);
  CHECK(forced.removed == 2);
}

TEST_CASE("a force waits for all nodes, and says of each what became of the lock there") {
  Fleet fleet({.nodes = 5});
  const Client holder = start_client(fleet);
  auto options = options_for(fleet.uris());
  options.node_timeout = 2s;
  const Client client = start_client(options);
  warm_up(client, fleet);
  const Lease lease = everywhere(holder, fleet, "a");
  REQUIRE(fleet.run(0, {"DEL", "redlock:lock:{a}"}) == "1");
  fleet.pause(4);

  const auto forced = must(Admin(client).force_release("a"));
  CHECK(forced.outcome == Forced::released);
  REQUIRE(forced.nodes.size() == 5);
  CHECK(forced.nodes[0].what == ForcedHere::not_held);
  for (std::size_t node = 1; node < 4; ++node) {
    CHECK(forced.nodes[node].what == ForcedHere::removed);
  }
  CHECK(forced.nodes[4].what == ForcedHere::unreachable);
  CHECK(forced.nodes[4].trouble.cause == Cause::timed_out);
  CHECK(forced.removed == 3);
  CHECK(forced.confirmed == 4);
  fleet.resume(4);
}

TEST_CASE("what remembers a forced owner is no lock, and ends by itself") {
  const Fleet fleet({.nodes = 3});
  const Client client = start_client(fleet);
  const Lease lease = everywhere(client, fleet, "a");
  REQUIRE(must(Admin(client).force_release("a")).outcome == Forced::released);
  REQUIRE(soon_free_everywhere(fleet, "a"));
  CHECK(must(Admin(client).list()).locks.empty());
  CHECK(must(Admin(client).list("*forced*")).locks.empty());
  CHECK(must(Admin(client).inspect("a")).verdict == Verdict::free);
  // max_lease, 60 s, 1 % of it, 2 ms, and a second.
  const auto left = std::stoll(fleet.run(0, {"PTTL", "redlock:forced:{a}:" + lease.owner()}));
  CHECK(left > 0);
  CHECK(left <= 61'602);
}

}  // namespace
}  // namespace redlock::testing
