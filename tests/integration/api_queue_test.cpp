// SPDX-License-Identifier: MIT
// Waiting on nodes that are well: which waiter has the lock next, what waiters learn, when a call
// gives up, and what it leaves behind then.
#include "integration/api_event_log.hpp"
#include "integration/api_queue_fixture.hpp"
#include "support/proxy.hpp"

namespace redlock::testing {
namespace {

TEST_CASE_FIXTURE(
    Waiters, "those who wait have the lock in the order in which they came, of whichever client") {
  CHECK(served_in_order([&] {
    Lease held = must(holder.lock("in order").acquire({.wait = forever}));
    SixWaiters waiters(fleet, "in order", options_for(fleet.uris()));
    must(held.release());
    auto order = waiters.order();
    CHECK(eventually([&] { return queue_keys(fleet, "in order") == 0; }));
    return order;
  }));
}

TEST_CASE_FIXTURE(
    Waiters, "an observer is told of the place, once of the attempt that waits, and of the lock") {
  const Client first = start_client(fleet);
  const auto log = std::make_shared<EventLog>();
  const Client second = start_observed(fleet, log);
  Lease held = must(holder.lock("told").acquire());
  wait_as(1, first, grants, "told");
  REQUIRE(queue_becomes(fleet, "told", 1));
  auto waiting = second.lock("told").async_acquire({.wait = forever}).as_future();
  REQUIRE(log->soon_has("waiting told 1"));
  const auto token_before = held.token();
  must(held.release());
  Lease lease = must(get_soon(waiting));
  CHECK(lease.token() > token_before);
  const auto token = std::to_string(lease.token());
  must(lease.release());
  CHECK(log->soon_has("released told " + token));
  const auto lines = log->lines();
  CHECK(std::ranges::count(lines.begin(), std::ranges::find(lines, "waiting told 1"),
                           "attempt told contended") == 0);
  CHECK(log->count("attempt told contended") >= 1);  // of each attempt that waits
  CHECK(log->count("attempt told granted") == 1);
  CHECK(log->count("acquired told " + token) == 1);
  CHECK(log->count("released told " + token) == 1);
}

TEST_CASE_FIXTURE(Waiters, "a call that does not wait overtakes nobody who does") {
  const Client waiter = start_client(fleet);
  // A waiter that is kept from running for as long as a turn lasts loses it: so not in every round.
  // A call that heeded no line would overtake it in all of them.
  const auto served_first = [&](int round) {
    Lease held = must(holder.lock("try").acquire({.wait = forever}));
    wait_as(round, waiter, grants, "try");
    REQUIRE(queue_becomes(fleet, "try", 1));
    // The attempt stands right behind the release on each connection.
    auto releasing = held.async_release().as_future();
    const auto tried = holder.lock("try").acquire();
    const bool overtaken = tried && grants.count() == static_cast<std::size_t>(round);
    must(get_soon(releasing));
    if (!overtaken) grants.await(static_cast<std::size_t>(round) + 1);
    // Otherwise it is given back here, and the waiter is next.
    return !overtaken;
  };
  constexpr int enough = 6;
  constexpr int most_rounds = 200;
  int rounds = 0;
  int in_order = 0;
  for (; in_order < enough && rounds < most_rounds; ++rounds) {
    in_order += served_first(rounds) ? 1 : 0;
  }
  CHECK(grants.await(static_cast<std::size_t>(rounds)).size() == static_cast<std::size_t>(rounds));
  CHECK(in_order == enough);
}

TEST_CASE_FIXTURE(Waiters, "beside those who wait in order, one who barges has it too") {
  const Client orderly = start_client(fleet);
  const Client barging = start_client(fleet);
  Lease held = must(holder.lock("mixed").acquire());
  for (int i = 0; i < 4; ++i) wait_as(i, orderly, grants, "mixed");
  REQUIRE(queue_becomes(fleet, "mixed", 1));
  const AcquireOptions out_of_turn{.wait = forever, .ordering = Ordering::barging};
  wait_as(10, barging, grants, "mixed", out_of_turn);
  wait_as(11, barging, grants, "mixed", out_of_turn);
  must(held.release());
  CHECK(grants.await_sorted(6) == "0 1 2 3 10 11");
}

TEST_CASE_FIXTURE(Waiters,
                  "fifty calls of one client that barge ask as often as two, and are all served") {
  ClientOptions options = options_for(fleet.uris());
  options.ordering = Ordering::barging;
  options.retry_min = 20ms;
  options.retry_max = options.retry_cap = 60ms;
  const Client client = start_client(options);
  Lease held = must(holder.lock("barging crowd").acquire({.renewal = Renewal::never}));
  const int at_first = calls_of(fleet, 0, "evalsha");
  for (int i = 0; i < 50; ++i) wait_as(i, client, grants, "barging crowd");
  // Counted when they ask by turns: as they start, more than two may.
  REQUIRE(eventually([&] { return calls_of(fleet, 0, "evalsha") - at_first >= 4; }));
  const auto start = BootClock::now();
  const int before = calls_of(fleet, 0, "evalsha");
  // Slowness makes them fewer, and the time longer.
  constexpr int polls = 20;
  REQUIRE(eventually([&] { return calls_of(fleet, 0, "evalsha") - before >= polls; }));
  const int asked = calls_of(fleet, 0, "evalsha") - before;
  const auto passed = BootClock::now() - start;
  CHECK(asked <= 2 * (passed / 20ms + 1) + 2);
  must(held.release());
  CHECK(grants.await(50).size() == 50);
  CHECK(soon_free_everywhere(fleet, "barging crowd"));
}

TEST_CASE_FIXTURE(Waiters,
                  "two hundred calls of one client are all served, by one entry at a node") {
  const Client client = start_client(fleet);
  Lease held = must(holder.lock("many").acquire());
  constexpr std::size_t many = 200;
  for (std::size_t i = 0; i < many; ++i) wait_as(static_cast<int>(i), client, grants, "many");
  REQUIRE(queue_becomes(fleet, "many", 1));
  must(held.release());
  std::size_t most = 0;
  while (grants.count() < many) {
    for (std::size_t node = 0; node < fleet.size(); ++node) {
      most = std::max(most, entries_on(fleet, node, "many"));
    }
  }
  CHECK(most == 1);
  // A few may have been late for their turn; in no order it would be every second one.
  const auto order = grants.await(many);
  std::size_t out_of_turn = 0;
  for (std::size_t i = 1; i < many; ++i) out_of_turn += order[i] < order[i - 1] ? 1 : 0;
  CHECK(out_of_turn < many / 10);
  CHECK(soon_free_everywhere(fleet, "many"));
  CHECK(eventually([&] { return queue_keys(fleet, "many") == 0; }));
}

TEST_CASE_FIXTURE(Waiters, "a call that waited and ends leaves no entry behind") {
  const Client waiter = start_client(fleet);
  const Lease held = must(holder.lock("left").acquire());
  std::stop_source stop;
  AcquireOptions options{.wait = forever};
  Errc expected = Errc::timed_out;
  SUBCASE("by the end of its waiting time") {
    options.wait = 500ms;
  }
  SUBCASE("by its deadline") {
    options.deadline = BootClock::now() + 500ms;
  }
  SUBCASE("by a stop request") {
    expected = Errc::cancelled;
  }
  auto waiting = waiter.lock("left").async_acquire(options, stop.get_token()).as_future();
  if (expected == Errc::cancelled) {
    REQUIRE(queue_becomes(fleet, "left", 1));
    stop.request_stop();
  }
  CHECK(code_of(get_soon(waiting)) == expected);
  // Each node answers this behind what it was sent before.
  REQUIRE(Admin(waiter).inspect("left").has_value());
  CHECK(queue_keys(fleet, "left") == 0);
  CHECK(held.valid());
}

TEST_CASE_FIXTURE(Waiters, "a time that ends is timed_out, with the votes of the last attempt") {
  const Client waiter = start_client(fleet);
  const Lease held = must(holder.lock("in vain").acquire());
  auto wait = 1s;
  auto result = waiter.lock("in vain").acquire({.wait = wait});
  // As long as a slow machine needs for the nodes' answers.
  while (!contains(result.error().message, "refused") && wait < patience) {
    wait *= 2;
    result = waiter.lock("in vain").acquire({.wait = wait});
  }
  CHECK(code_of(result) == Errc::timed_out);
  CHECK(result.error().votes.size() == 3);
}

TEST_CASE_FIXTURE(Waiters, "a stop request ends a wait from the loop thread, and no lease") {
  const Client waiter = start_client(fleet);
  RedLock lock = waiter.lock("stopped");
  std::stop_source stop;
  {
    const Lease held = must(holder.lock("stopped").acquire());
    auto waiting = lock.async_acquire({.wait = forever}, stop.get_token()).as_future();
    waiter.lock("stopped").async_acquire().start([&](const auto&) { stop.request_stop(); });
    CHECK(code_of(get_soon(waiting)) == Errc::cancelled);
  }
  std::stop_source late;
  const Lease lease = must(lock.acquire({.wait = patience}, late.get_token()));
  late.request_stop();
  must(waiter.lock("another").acquire());  // the client was here since
  CHECK(lease.valid());
}

TEST_CASE_FIXTURE(Waiters, "a client that ends leaves no entry of its calls behind") {
  std::optional<Client> waiter = start_client(fleet);
  const Lease held = must(holder.lock("ends").acquire());
  auto waiting = waiter->lock("ends").async_acquire({.wait = forever}).as_future();
  REQUIRE(queue_becomes(fleet, "ends", 1));
  let_queue_stay(fleet, "ends");
  waiter.reset();
  CHECK(code_of(get_soon(waiting)) == Errc::closed);
  CHECK(eventually([&] { return queue_keys(fleet, "ends") == 0; }));
  CHECK(held.valid());
}

TEST_CASE("a grant that comes too late for the validity asked for is given back") {
  const Fleet& fleet = three_nodes();
  const Proxies proxies = proxies_of(fleet);
  const Client client = start_client(options_for(uris_of(proxies)));
  warm_up(client, fleet);
  for (const auto& proxy : proxies) proxy->delay(60ms);
  // 120 ms of 1 s are gone when the answers come; 988 ms less that are less than 900 ms. Whether
  // the attempt waits for answers that are of no use any more is its own affair.
  const Errc code = code_of(client.lock("late").acquire({.lease = 1s, .min_validity = 900ms}));
  CHECK((code == Errc::too_late || code == Errc::no_quorum));
  CHECK(soon_free_everywhere(fleet, "late"));
}

}  // namespace
}  // namespace redlock::testing
