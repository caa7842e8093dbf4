// SPDX-License-Identifier: MIT
// Lease::async_lost(): what ends it, with which result, and where the program then continues. That
// it comes while the loop is held up is in api_loss_test.cpp, the child of a fork in
// api_lifetime_test.cpp.
#include "integration/api_coroutines.hpp"
#include "integration/api_fixture.hpp"

namespace redlock::testing {
namespace {

FireAndForget await_loss(const Lease& lease, std::promise<Result<LossReason>>& done) {
  done.set_value(co_await lease.async_lost());
}

bool is_awaited(const std::future<Result<LossReason>>& loss) {
  return loss.wait_for(0s) == std::future_status::timeout;
}

TEST_CASE("a loss is awaited: its reason comes while the lease is still valid") {
  const Client client = start_client(three_nodes());
  within_a_lease([&] {
    const Lease lease = must(client.lock("awaited").acquire({.lease = 1s, .wait = patience}));
    std::promise<Result<LossReason>> done;
    await_loss(lease, done);
    CHECK(must(get_soon(done)) == LossReason::expired);
    CHECK(lease.loss_reason() == LossReason::expired);
    // Known at once from now on.
    auto late = lease.async_lost().as_future();
    REQUIRE_FALSE(is_awaited(late));
    CHECK(must(late.get()) == LossReason::expired);
    return lease.valid();
  });
}

TEST_CASE("who awaits a loss is told when the lease is given back, in whichever way") {
  const Client client = start_client(three_nodes());
  RedLock lock = client.lock("given back");
  const std::vector<std::function<void(Lease&)>> ways{
      [](Lease& lease) { must(lease.release()); },
      [](Lease& lease) { must(get_soon(lease.async_release())); },
      [](Lease& lease) { lease = Lease(); },
      [&](Lease& lease) { lease = must(client.lock("next").acquire({.wait = patience})); },
      [&](Lease& lease) { must(lock.release(lease.detach())); },
      [](Lease& lease) { std::thread([dropped = std::move(lease)] {}).join(); }};
  for (std::size_t way = 0; way < ways.size(); ++way) {
    CAPTURE(way);
    Lease lease = must(lock.acquire({.wait = patience}));
    auto first = lease.async_lost().as_future();
    auto second = lease.async_lost().as_future();
    Lease moved = std::move(lease);
    CHECK(is_awaited(first));
    ways[way](moved);
    CHECK(code_of(get_soon(first)) == Errc::lost);
    CHECK(code_of(get_soon(second)) == Errc::lost);
    CHECK(soon_free_everywhere(three_nodes(), "given back"));
    moved = Lease();
    CHECK(code_of(get_soon(moved.async_lost())) == Errc::lost);
  }
  CHECK(soon_free_everywhere(three_nodes(), "next"));
}

TEST_CASE("awaiting a loss is ended by its stop_token, the lease stays; and by its client") {
  std::optional<Client> client = start_client(three_nodes());
  const Lease lease = must(client->lock("cancelled").acquire({.wait = patience}));
  std::stop_source stop;
  auto stopped = lease.async_lost(stop.get_token()).as_future();
  auto other = lease.async_lost().as_future();
  stop.request_stop();
  CHECK(code_of(get_soon(stopped)) == Errc::cancelled);
  CHECK(code_of(get_soon(lease.async_lost(stop.get_token()))) == Errc::cancelled);
  CHECK(is_awaited(other));
  CHECK(lease.valid());
  CHECK_FALSE(lease.lost().stop_requested());

  client.reset();
  REQUIRE_FALSE(is_awaited(other));
  CHECK(must(other.get()) == LossReason::closed);
  CHECK(must(get_soon(lease.async_lost())) == LossReason::closed);
}

TEST_CASE("a loss, a release and a cancellation are continued where resume_on says") {
  std::atomic<int> resumed{0};
  std::optional<Client> client = start_client(three_nodes(), [&](ClientOptions& options) {
    options.resume_on = [&](Continuation it) {
      ++resumed;
      it();
    };
  });
  Lease released = must(client->lock("on 1").acquire({.wait = patience}));
  const Lease closed = must(client->lock("on 2").acquire({.wait = patience}));
  auto first = released.async_lost().as_future();
  auto second = closed.async_lost().as_future();
  std::stop_source stop;
  stop.request_stop();
  CHECK(code_of(get_soon(closed.async_lost(stop.get_token()))) == Errc::cancelled);
  CHECK(resumed == 1);
  must(released.release());
  CHECK(code_of(get_soon(first)) == Errc::lost);
  CHECK(resumed == 2);
  client.reset();
  CHECK(must(get_soon(second)) == LossReason::closed);
  CHECK(resumed == 3);
}

TEST_CASE("whatever ends the awaiting of a loss first, it has one result") {
  for (int turn = 0; turn < 40; ++turn) {
    std::optional<Client> client = start_client(three_nodes());
    Lease lease = must(client->lock("raced").acquire({.wait = patience}));
    std::vector<std::stop_source> stops(20);
    std::atomic<int> results{0};
    std::latch go(3);
    {
      std::jthread starting([&] {
        go.arrive_and_wait();
        for (auto& stop : stops) {
          lease.async_lost(stop.get_token()).start([&](const Result<LossReason>&) { ++results; });
        }
      });
      std::jthread stopping([&] {
        go.arrive_and_wait();
        for (auto& stop : stops) stop.request_stop();
      });
      go.arrive_and_wait();
      if (turn % 2 == 0) client.reset();
    }
    if (turn % 3 == 0) lease = Lease();
    CHECK(eventually([&] { return results == 20; }));
    client.reset();
    CHECK(results == 20);
  }
}

}  // namespace
}  // namespace redlock::testing
