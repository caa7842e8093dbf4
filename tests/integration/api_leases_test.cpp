// SPDX-License-Identifier: MIT
// The life of a lease: renewed until released, ending by itself, bounded, lost; and what an
// observer is told of it; and asking a quorum whether the lock is still ours, which changes
// nothing. And grants that go from hand to hand: what is late of the first holder finds no way
// back. (Over nodes that restart empty: tests/soak/rolling.cpp.)
#include "integration/api_event_log.hpp"

namespace redlock::testing {
namespace {

TEST_CASE("a lease is renewed again and again, if it is not to end by itself") {
  const auto journal = std::make_shared<EventLog>();
  std::optional<Client> client = start_client(three_nodes(), [&](ClientOptions& options) {
    options.observer = journal;
    // For leases that must not be lost: a busy machine may stand still for seconds.
    options.lease = 6s;
    options.node_timeout = 3s;
  });
  const auto acquire = [&](const std::string& name, AcquireOptions options = {}) {
    options.wait = patience;
    return must(client->lock(name).acquire(options));
  };
  Lease renewed = acquire("renewed");
  const auto first = renewed.valid_until();
  const Lease always = acquire("always", {.lease = 6s, .renewal = Renewal::always});
  const Lease never = acquire("never", {.lease = 3s, .renewal = Renewal::never});
  const Lease bounded = acquire("bounded", {.max_hold = 5s});
  const Lease brief = acquire("brief", {.lease = 2s});
  const auto reason = brief.loss_reason();
  if (brief.valid()) CHECK_FALSE(reason.has_value());

  CHECK(must(get_soon(brief.async_lost())) == LossReason::expired);
  const std::string lost_brief = "lost brief " + std::to_string(brief.token());
  CHECK(journal->soon_has(lost_brief + " expired"));
  CHECK(journal->count("renewed brief") == 0);
  CHECK(soon_free_everywhere(three_nodes(), "brief"));
  CHECK(must(get_soon(never.async_lost())) == LossReason::expired);
  CHECK(journal->count("renewed never") == 0);
  // Two or more renewals later, or one where the machine stood still.
  CHECK(must(get_soon(bounded.async_lost())) == LossReason::expired);
  CHECK(journal->count("renewed bounded") > 0);

  CHECK(journal->soon_has("renewed always", 4));
  REQUIRE(journal->soon_has("renewed renewed", 4));  // longer than the lease
  CHECK(always.valid());
  CHECK(renewed.valid());
  CHECK(renewed.valid_until() > first);
  CHECK_FALSE(renewed.lost().stop_requested());
  CHECK(must(renewed.release()) == Released::released);

  client.reset();
  CHECK(always.loss_reason() == LossReason::closed);
  CHECK(brief.loss_reason() == LossReason::expired);
  CHECK(journal->count(lost_brief + " expired") == 1);
  CHECK(journal->count(lost_brief + " closed") == 0);
}

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
  pause_all(fleet);

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

}  // namespace
}  // namespace redlock::testing
