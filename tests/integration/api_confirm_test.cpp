// SPDX-License-Identifier: MIT
// Asking a quorum whether the lock is still ours: what it says, and that it changes nothing.
#include "integration/api_fixture.hpp"

namespace redlock::testing {
namespace {

/// As if somebody had removed the lock by hand and another client had taken it. (Where it is merely
/// gone the client is given it again, perhaps before the last node has answered.)
void take_away_on(const Fleet& fleet, std::initializer_list<std::size_t> nodes) {
  for (const std::size_t node : nodes) {
    fleet.run(node, {"EVAL",
                     "redis.call('DEL', KEYS[1]) redis.call('HSET', KEYS[1], 'rival', 1) "
                     "return redis.call('PEXPIRE', KEYS[1], 60000)",
                     "1", "redlock:lock:{asked}"});
  }
}

}  // namespace

TEST_CASE("a lock is confirmed by a quorum, and is as valid as before") {
  Fleet fleet({.nodes = 5});
  const Client client = start_client(fleet);
  Lease lease = must(client.lock("asked").acquire({.lease = 40s}));
  REQUIRE(eventually([&] { return nodes_with_lock(fleet, "asked") == 5; }));
  fleet.pause(0);
  fleet.pause(1);
  const auto before = lease.valid_until();
  CHECK(must(lease.confirm()) == before);
  CHECK(lease.valid_until() == before);
  CHECK_FALSE(lease.lost().stop_requested());
}

TEST_CASE("a lock that somebody took away is not confirmed, and its lease is over") {
  const Fleet fleet({.nodes = 5});
  const Client client = start_client(fleet);
  Lease lease = must(client.lock("asked").acquire({.lease = 40s}));
  REQUIRE(eventually([&] { return nodes_with_lock(fleet, "asked") == 5; }));
  take_away_on(fleet, {0, 1});
  CHECK(must(lease.confirm()) == lease.valid_until());
  take_away_on(fleet, {2, 3, 4});
  // The reason is there by the time of the answer.
  std::promise<std::optional<LossReason>> promised;
  lease.async_confirm().start([&](auto until) {
    CHECK(code_of(until) == Errc::lost);
    promised.set_value(lease.loss_reason());
  });
  auto reason = promised.get_future();
  CHECK(get_soon(reason) == LossReason::taken);
  CHECK_FALSE(lease.valid());
  CHECK(code_of(lease.confirm()) == Errc::lost);
}

TEST_CASE("without a quorum nothing is confirmed, and the lease lives on") {
  Fleet fleet({.nodes = 3});
  ClientOptions options = options_for(fleet.uris());
  options.node_timeout = 500ms;
  const Client client = start_client(options);
  Lease lease = must(client.lock("asked").acquire({.lease = 50s, .wait = patience}));
  const auto before = lease.valid_until();
  fleet.pause(1);
  fleet.pause(2);
  CHECK(code_of(lease.confirm()) == Errc::no_quorum);
  CHECK(lease.valid());
  CHECK(lease.valid_until() == before);
  fleet.resume(1);
  fleet.resume(2);
  CHECK(eventually([&] { return lease.confirm().has_value(); }));
}

TEST_CASE("a question that the lease's own end cuts short says so, and was cancelled by nobody") {
  Fleet fleet({.nodes = 3});
  const Client client = start_client(fleet);
  Lease released = must(client.lock("asked").acquire({.lease = 40s}));
  Lease detached = must(client.lock("detached").acquire({.lease = 40s}));
  for (std::size_t node = 0; node < 3; ++node) fleet.pause(node);

  auto cut_by_release = released.async_confirm().as_future();
  auto release = released.async_release().as_future();
  CHECK(code_of(get_soon(cut_by_release)) == Errc::lost);
  auto cut_by_detach = detached.async_extend(50s).as_future();
  static_cast<void>(detached.detach());
  const auto answer = get_soon(cut_by_detach);
  CHECK(code_of(answer) == Errc::lost);
  CHECK(contains(answer.error().message, "stays taken until it expires"));
  for (std::size_t node = 0; node < 2; ++node) fleet.resume(node);
  must(get_soon(release));
}

TEST_CASE("a client that ends answers closed to questions about its leases") {
  Fleet fleet({.nodes = 3});
  std::optional<Client> client = start_client(fleet);
  Lease lease = must(client->lock("outlived").acquire({.lease = 40s, .wait = patience}));
  for (std::size_t node = 0; node < 3; ++node) fleet.pause(node);
  auto asked = lease.async_confirm().as_future();
  auto ending = std::async(std::launch::async, [&] { client.reset(); });
  CHECK(code_of(get_soon(asked)) == Errc::closed);
  // The release of the lease need not wait for the node timeout.
  for (std::size_t node = 0; node < 3; ++node) fleet.resume(node);
  get_soon(ending);
}

TEST_CASE("an empty lease is not confirmed") {
  Lease lease;
  CHECK(code_of(lease.confirm()) == Errc::lost);
}

}  // namespace redlock::testing
