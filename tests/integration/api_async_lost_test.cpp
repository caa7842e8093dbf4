// SPDX-License-Identifier: MIT
// Lease::async_lost(): what ends it, with which result, and where the program then continues.
#include "integration/api_coroutines.hpp"
#include "integration/api_fixture.hpp"

namespace redlock::testing {
namespace {

FireAndForget await_loss(const Lease& lease, std::stop_token stop,
                         std::promise<Result<LossReason>>& done) {
  done.set_value(co_await lease.async_lost(std::move(stop)));
}

TEST_CASE("a loss is awaited: its reason comes while the lease is still valid") {
  const Client client = start_client(three_nodes());
  within_a_lease([&] {
    const Lease lease = must(client.lock("awaited").acquire({.lease = 1s, .wait = patience}));
    std::promise<Result<LossReason>> done;
    await_loss(lease, {}, done);
    auto future = done.get_future();
    CHECK(must(get_soon(future)) == LossReason::expired);
    CHECK(lease.loss_reason() == LossReason::expired);
    // Known at once from now on.
    auto late = lease.async_lost().as_future();
    REQUIRE(late.wait_for(0s) == std::future_status::ready);
    CHECK(must(late.get()) == LossReason::expired);
    return lease.valid();
  });
}

TEST_CASE("who awaits a loss is told when the lease is given back, in whichever way") {
  const Client client = start_client(three_nodes());
  for (const int way : {0, 1, 2, 3, 4}) {
    RedLock lock = client.lock("given back");
    Lease lease = must(lock.acquire({.wait = patience}));
    auto first = lease.async_lost().as_future();
    auto second = lease.async_lost().as_future();
    Lease moved = std::move(lease);
    CHECK(first.wait_for(0s) == std::future_status::timeout);
    switch (way) {
      case 0:
        must(moved.release());
        break;
      case 1:
        must(moved.async_release().as_future().get());
        break;
      case 2:
        moved = Lease();
        break;
      case 3:
        must(lock.release(moved.detach()));
        break;
      default:
        std::thread([dropped = std::move(moved)] {}).join();
    }
    CHECK(code_of(get_soon(first)) == Errc::lost);
    CHECK(code_of(get_soon(second)) == Errc::lost);
    auto of_empty = moved.async_lost().as_future();
    CHECK(code_of(of_empty.get()) == Errc::lost);
    CHECK(soon_free_everywhere(three_nodes(), "given back"));
  }
}

TEST_CASE("an operation that awaits a loss does not begin before its start, nor keep the lease") {
  const Client client = start_client(three_nodes());
  Lease lease = must(client.lock("prepared").acquire({.wait = patience}));
  auto operation = lease.async_lost();
  auto dropped = lease.async_lost();
  lease = Lease();
  CHECK(soon_free_everywhere(three_nodes(), "prepared"));
  auto result = std::move(operation).as_future();
  CHECK(code_of(result.get()) == Errc::lost);
}

TEST_CASE("awaiting a loss is cancelled by its stop_token alone, and the lease stays") {
  const Client client = start_client(three_nodes());
  const Lease lease = must(client.lock("cancelled").acquire({.wait = patience}));
  std::stop_source stop;
  auto stopped = lease.async_lost(stop.get_token()).as_future();
  auto other = lease.async_lost().as_future();
  stop.request_stop();
  CHECK(code_of(get_soon(stopped)) == Errc::cancelled);
  auto late = lease.async_lost(stop.get_token()).as_future();
  CHECK(code_of(late.get()) == Errc::cancelled);
  CHECK(other.wait_for(0s) == std::future_status::timeout);
  CHECK(lease.valid());
  CHECK_FALSE(lease.lost().stop_requested());
}

TEST_CASE("the end of the client is a loss for who awaits one") {
  std::optional<Client> client = start_client(three_nodes());
  const Lease lease = must(client->lock("closed").acquire({.wait = patience}));
  auto lost = lease.async_lost().as_future();
  client.reset();
  REQUIRE(lost.wait_for(0s) == std::future_status::ready);
  CHECK(must(lost.get()) == LossReason::closed);
  auto late = lease.async_lost().as_future();
  CHECK(must(late.get()) == LossReason::closed);
}

TEST_CASE("an awaited loss comes although the loop thread is held up") {
  const Client client = start_client(three_nodes());
  within_a_lease([&] {
    const Lease lease = must(client.lock("held up").acquire({.lease = 1s, .wait = patience}));
    std::promise<Errc> inside;
    lease.async_lost().start([&](const Result<LossReason>&) {
      inside.set_value(code_of(client.lock("inside").acquire()));
    });
    std::promise<bool> in_time;
    client.lock("first").async_acquire().start([&](const auto&) {
      auto told = inside.get_future();
      in_time.set_value(told.wait_for(patience) == std::future_status::ready &&
                        told.get() == Errc::would_deadlock);
    });
    auto future = in_time.get_future();
    CHECK(get_soon(future));
    return true;
  });
}

TEST_CASE("a loss, a release and a cancellation are continued where resume_on says") {
  ClientOptions options = options_for(three_nodes().uris());
  std::atomic<int> resumed{0};
  options.resume_on = [&](Continuation it) {
    ++resumed;
    it();
  };
  std::optional<Client> client = start_client(options);
  Lease released = must(client->lock("on 1").acquire({.wait = patience}));
  const Lease closed = must(client->lock("on 2").acquire({.wait = patience}));
  auto first = released.async_lost().as_future();
  auto second = closed.async_lost().as_future();
  std::stop_source stop;
  stop.request_stop();
  auto third = closed.async_lost(stop.get_token()).as_future();
  CHECK(code_of(get_soon(third)) == Errc::cancelled);
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
    std::atomic<bool> go{false};
    {
      std::jthread starting([&] {
        while (!go) std::this_thread::yield();
        for (auto& stop : stops) {
          lease.async_lost(stop.get_token()).start([&](const Result<LossReason>&) { ++results; });
        }
      });
      std::jthread stopping([&] {
        while (!go) std::this_thread::yield();
        for (auto& stop : stops) stop.request_stop();
      });
      go = true;
      if (turn % 2 == 0) client.reset();
    }
    if (turn % 3 == 0) lease = Lease();
    CHECK(eventually([&] { return results == 20; }));
    client.reset();
    CHECK(results == 20);
  }
}

TEST_CASE("in the child of a fork the loss of a lease is not awaited") {
  const Client client = start_client(three_nodes());
  Lease lease = must(client.lock("forked").acquire({.wait = patience}));
  std::stop_source stop;
  std::atomic<int> results{0};
  lease.async_lost(stop.get_token()).start([&](const Result<LossReason>&) { ++results; });
  const pid_t child = ::fork();
  if (child == 0) {
    const auto refused = lease.async_lost().as_future().get();
    if (refused || refused.error().code != Errc::closed) ::_exit(1);
    stop.request_stop();
    lease = Lease();
    ::_exit(results == 0 ? 0 : 2);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(results == 0);
  stop.request_stop();
  CHECK(eventually([&] { return results == 1; }));
}

}  // namespace
}  // namespace redlock::testing
