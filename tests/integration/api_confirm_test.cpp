// SPDX-License-Identifier: MIT
// Asking a quorum whether the lock is still ours: what it says, and that it changes nothing.
#include <doctest/doctest.h>
#include <optional>
#include <string>

#include "integration/api_fixture.hpp"

namespace redlock::testing {
namespace {

void delete_on(const Fleet& fleet, std::initializer_list<std::size_t> nodes) {
  for (const std::size_t node : nodes) fleet.run(node, {"DEL", "redlock:lock:{asked}"});
}

}  // namespace

TEST_CASE("a lock is confirmed by a quorum in every form, and is as valid as before") {
  Fleet fleet({.nodes = 5});
  const Client client = start_client(fleet);
  Lease lease = must(client.lock("asked").acquire({.lease = 40s}));
  REQUIRE(eventually([&] { return nodes_with_lock(fleet, "asked") == 5; }));
  fleet.pause(0);
  fleet.pause(1);
  const auto before = lease.valid_until();
  CHECK(must(lease.confirm()) == before);

  std::promise<Result<BootClock::time_point>> promised;
  lease.confirm([&](auto until) { promised.set_value(std::move(until)); });
  auto called = promised.get_future();
  CHECK(must(get_soon(called)) == before);
  auto later = lease.confirm_future();
  CHECK(must(get_soon(later)) == before);
  CHECK(lease.valid_until() == before);
  CHECK_FALSE(lease.lost().stop_requested());
}

TEST_CASE("a lock that somebody took away is not confirmed, and its lease is over") {
  const Fleet fleet({.nodes = 5});
  const Client client = start_client(fleet);
  Lease lease = must(client.lock("asked").acquire({.lease = 40s}));
  REQUIRE(eventually([&] { return nodes_with_lock(fleet, "asked") == 5; }));
  delete_on(fleet, {0, 1});
  CHECK(must(lease.confirm()) == lease.valid_until());
  delete_on(fleet, {2, 3, 4});
  // The reason is there by the time of the answer.
  std::promise<std::optional<LossReason>> promised;
  lease.confirm([&](auto until) {
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

TEST_CASE("an empty lease is not confirmed") {
  Lease lease;
  CHECK(code_of(lease.confirm()) == Errc::lost);
}

}  // namespace redlock::testing
