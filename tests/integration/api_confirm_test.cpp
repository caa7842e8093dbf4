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

TEST_CASE("a quorum that is there confirms a lock or says that it is lost, without one nobody") {
  Fleet fleet({.nodes = 5});
  const Client client =
      start_client(fleet, [](ClientOptions& options) { options.node_timeout = 2s; });
  Lease lease = lock_everywhere(client, fleet, "asked", {.lease = 59s, .wait = patience});
  const auto before = lease.valid_until();
  fleet.pause(0);
  fleet.pause(1);
  CHECK(must(lease.confirm()) == before);
  fleet.pause(2);
  CHECK(code_of(lease.confirm()) == Errc::no_quorum);
  CHECK(lease.valid());
  CHECK(lease.valid_until() == before);
  CHECK_FALSE(lease.lost().stop_requested());

  for (const std::size_t node : {0U, 1U, 2U}) fleet.resume(node);
  CHECK(eventually([&] { return lease.confirm().has_value(); }));
  take_away_on(fleet, {0, 1});
  CHECK(eventually([&] { return lease.confirm() == lease.valid_until(); }));
  take_away_on(fleet, {2, 3, 4});
  // The reason is there by the time of the answer.
  std::promise<std::optional<LossReason>> reason;
  lease.async_confirm().start([&](auto until) {
    CHECK(code_of(until) == Errc::lost);
    reason.set_value(lease.loss_reason());
  });
  CHECK(get_soon(reason) == LossReason::taken);
  CHECK_FALSE(lease.valid());
  CHECK(code_of(lease.confirm()) == Errc::lost);
}

TEST_CASE("a question that the end of its lease or client cuts short says so") {
  Fleet fleet({.nodes = 3});
  std::optional<Client> client = start_client(fleet);
  Lease released = must(client->lock("asked").acquire({.lease = 40s}));
  Lease detached = must(client->lock("detached").acquire({.lease = 40s}));
  Lease outlived = must(client->lock("outlived").acquire({.lease = 40s}));
  for (std::size_t node = 0; node < 3; ++node) fleet.pause(node);

  auto cut_by_release = released.async_confirm().as_future();
  auto release = released.async_release().as_future();
  CHECK(code_of(get_soon(cut_by_release)) == Errc::lost);
  auto cut_by_detach = detached.async_extend(50s).as_future();
  static_cast<void>(detached.detach());
  const auto answer = get_soon(cut_by_detach);
  CHECK(code_of(answer) == Errc::lost);
  CHECK(contains(answer.error().message, "stays taken until it expires"));

  auto cut_by_close = outlived.async_confirm().as_future();
  auto ending = std::async(std::launch::async, [&] { client.reset(); });
  CHECK(code_of(get_soon(cut_by_close)) == Errc::closed);
  // The releases need not wait for the node timeout.
  for (std::size_t node = 0; node < 3; ++node) fleet.resume(node);
  get_soon(ending);
  get_soon(release);
}

}  // namespace
}  // namespace redlock::testing
