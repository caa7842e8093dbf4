// SPDX-License-Identifier: MIT
// Nodes whose clocks jump under a client that runs. The servers are real, with a wall clock that
// the test can set. (Of one node whose clock jumps: tests/monitoring.)
#include "fencing/clock_shim.hpp"
#include "integration/api_event_log.hpp"

namespace redlock::testing {
namespace {

TEST_CASE("if all nodes go ahead of us it is our clock that stood still, and leases are lost") {
  // One clock for all nodes: a client that read two of them between two steps would not know what
  // to think.
  const TemporaryDirectory place;
  const Fleet nodes = fleet_with_clocks(place, {.nodes = 3}, place.path().string());
  const auto log = std::make_shared<EventLog>();
  ClientOptions options = options_for(nodes.uris());
  options.lease = options.max_lease = 3s;
  options.observer = log;
  const Client client = start_client(std::move(options));
  RedLock lock = client.lock("a");
  warm_up(client, nodes);  // a node's clock is read when it is connected
  const auto lease = lock.acquire({.renewal = Renewal::always, .wait = patience});
  REQUIRE(lease.has_value());
  set_clock_ahead(place.path(), 1h);
  for (const auto& uri : nodes.uris()) {
    CHECK(eventually([&] {
      return log->count("clock moved " + uri + " 60") +
             log->count("our clock moved " + uri + " 60");
    }));
  }
  CHECK(log->soon_has("our clock moved "));
  // Told behind the clocks, on the client's thread.
  CHECK(eventually([&] { return lease->lost().stop_requested(); }));
  CHECK_FALSE(lease->valid());
  // No node is to blame, which would not be asked for its vote.
  const Lease held = must(lock.acquire({.wait = patience}));
  const auto refused = client.lock("a").acquire();
  REQUIRE_FALSE(refused.has_value());
  CHECK(std::ranges::count(refused.error().votes, Cause::clock_moved, &NodeVote::cause) == 0);
}

}  // namespace
}  // namespace redlock::testing
