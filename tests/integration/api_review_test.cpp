// SPDX-License-Identifier: MIT
// What a review believes to be defects of the api; each test fails before its fix.
#include <atomic>
#include <doctest/doctest.h>
#include <future>
#include <optional>
#include <string>
#include <thread>

#include <redlock/admin.hpp>

#include "integration/api_fixture.hpp"
#include "support/text.hpp"

namespace redlock::testing {
namespace {

using cluster::Persistence;

struct LossCount final : Observer {
  std::atomic<int> lost{0};
  void on_lost(std::string_view, std::uint64_t, LossReason) override { ++lost; }
};

TEST_CASE("review: the reason of a loss is kept when the client goes, and is told once") {
  const auto losses = std::make_shared<LossCount>();
  ClientOptions options = options_for(three_nodes().uris());
  options.observer = losses;
  std::optional<Client> client(start_client(options));
  const Lease lease = must(client->lock("kept").acquire({.lease = 500ms, .wait = patience}));
  REQUIRE(eventually([&] { return losses->lost == 1; }));
  CHECK(lease.loss_reason() == LossReason::expired);
  client.reset();
  CHECK(lease.loss_reason() == LossReason::expired);
  CHECK_FALSE(lease.valid());
  CHECK(losses->lost == 1);
}

TEST_CASE("review: a client may go while its timer is due") {
  for (int turn = 0; turn < 3000; ++turn) {
    ClientOptions options = options_for({"redis://127.0.0.1:1"});
    options.retry_min = options.retry_max = options.retry_cap = 1ms;
    std::optional<Client> client(start_client(options));
    const Owner owner = Owner::create();
    RedLock lock = client->lock("x", owner);
    std::atomic<int> answers{0};
    for (int i = 0; i < 2; ++i) {
      lock.try_lock({.wait = 1h}, [&](const auto&) { ++answers; });
    }
    std::this_thread::sleep_for(std::chrono::microseconds(500 + turn % 1000));
    client.reset();
    CHECK(answers == 2);
  }
}

TEST_CASE("review: what the guard has given up is not renewed for ever") {
  const Fleet fleet({.nodes = 1});
  const Client client = start_client(fleet);
  warm_up(client, fleet);
  Lease lease = must(client.lock("given up").acquire({.lease = 2s, .renewal = Renewal::always}));
  const std::stop_token lost = lease.lost();
  std::this_thread::sleep_for(1s);  // past its first renewal
  std::promise<void> over;
  std::promise<Errc> extended;
  // In one turn of the loop: an answer whose callback does not return, and behind it a new
  // validity.
  client.submit(AcquireRequest{.name = "first"}, [&](const auto&) {
    client.submit(AcquireRequest{.name = "second"}, [&](const auto&) {
      CHECK(eventually([&] { return lost.stop_requested(); }));
      over.set_value();
    });
    lease.extend(
        2s, [&](const auto& answer) { extended.set_value(answer ? Errc{} : answer.error().code); });
  });
  auto end = over.get_future();
  get_soon(end);
  auto answer = extended.get_future();
  CHECK(get_soon(answer) == Errc::lost);
  CHECK(lease.loss_reason() == LossReason::nodes_unavailable);
  // A lease that the loop itself loses ends on the nodes within its length.
  CHECK(client.lock("given up").acquire({.wait = 8s}).has_value());
}

ClientOptions with_care(const Fleet& fleet) {
  ClientOptions options = options_for(fleet.uris());
  options.quarantine = Quarantine::on;
  return options;
}

void replicate(const Fleet& fleet, std::size_t node, std::uint16_t port) {
  fleet.run(node, {"REPLICAOF", "127.0.0.1", std::to_string(port)});
  REQUIRE(eventually([&] {
    return contains(fleet.run(node, {"INFO", "replication"}), "master_link_status:up");
  }));
}

TEST_CASE("review: a node promoted a second time waits again") {
  const Fleet fleet({.nodes = 1, .persistence = Persistence::always, .adopted = true});
  const Fleet spare({.nodes = 1, .persistence = Persistence::always});
  replicate(spare, 0, fleet.port(0));
  spare.run(0, {"REPLICAOF", "NO", "ONE"});
  replicate(fleet, 0, spare.port(0));
  fleet.run(0, {"REPLICAOF", "NO", "ONE"});
  {
    const Client client = start_client(with_care(fleet));
    REQUIRE(must(Admin(client).adopt())[0].adoption == Adoption::already_there);  // vouched for
    CHECK(client.lock("a").acquire({.wait = patience}).has_value());
  }
  // The spare takes over, grants, and the node comes back without its newest locks.
  replicate(spare, 0, fleet.port(0));
  spare.run(0, {"REPLICAOF", "NO", "ONE"});
  replicate(fleet, 0, spare.port(0));
  fleet.run(0, {"REPLICAOF", "NO", "ONE"});
  const Client later = start_client(with_care(fleet));
  const auto lease = later.lock("a").acquire();
  CHECK_FALSE(lease.has_value());
}

}  // namespace
}  // namespace redlock::testing
