// SPDX-License-Identifier: MIT
// What a call costs its thread in memory: a blocking one nothing, because the call lies on its
// stack; an operation one allocation, which is the call. Every operator new of this program is
// counted, for each thread by itself. Callers that drive the loop allocate what the loop needs,
// so the clients here have an observer, with which no caller does.
#include "integration/api_fixture.hpp"
#include "support/counted_new.hpp"

namespace redlock::testing {
namespace {

Client start_observed(const Fleet& fleet) {
  ClientOptions options = options_for(fleet.uris());
  options.observer = std::make_shared<Observer>();
  return start_client(std::move(options));
}

TEST_CASE("blocking acquire, extend and release allocate nothing on the calling thread") {
  const Fleet fleet({.nodes = 3});
  const Client client = start_observed(fleet);
  RedLock lock = client.lock("lean");
  must(must(lock.acquire()).release());

  const std::size_t before = allocations;
  Result<Lease> lease = lock.acquire();
  const auto extended = lease->extend(20s);
  const auto released = lease->release();
  const std::size_t during = allocations - before;
  CHECK(extended.has_value());
  CHECK(released == Released::released);
  CHECK(during == 0);
}

TEST_CASE(
    "lock and unlock allocate nothing on the calling thread; leaving an inner level, one task") {
  const Fleet fleet({.nodes = 3});
  const Client client = start_observed(fleet);
  RedLock lock = client.lock("guarded");
  lock.lock();
  lock.unlock();

  const std::size_t before = allocations;
  lock.lock();
  lock.lock();
  const std::size_t locked = allocations - before;
  lock.unlock();
  const std::size_t inner_left = allocations - before;
  lock.unlock();
  const std::size_t all_left = allocations - before;
  CHECK(locked == 0);
  CHECK(inner_left == 1);
  CHECK(all_left == 1);
}

TEST_CASE("an operation with a callback is one allocation on the thread that starts it") {
  const Fleet fleet({.nodes = 3});
  const Client client = start_observed(fleet);
  RedLock lock = client.lock("one", Owner::create());
  must(must(lock.acquire()).release());
  std::promise<Result<Lease>> got;
  std::promise<Result<BootClock::time_point>> extended;
  std::promise<Result<Released>> released;
  auto lease = got.get_future();
  auto until = extended.get_future();
  auto end = released.get_future();

  const auto counted = [](const auto& start) {
    const std::size_t before = allocations;
    start();
    return allocations - before;
  };
  CHECK(counted([&] {
          lock.async_acquire().start(
              [&](Result<Lease> result) { got.set_value(std::move(result)); });
        }) == 1);
  Lease held = must(get_soon(lease));
  CHECK(counted([&] {
          held.async_extend(40s).start([&](auto result) { extended.set_value(std::move(result)); });
        }) == 1);
  must(get_soon(until));
  CHECK(counted([&] {
          held.async_release().start([&](auto result) { released.set_value(std::move(result)); });
        }) == 1);
  CHECK(must(get_soon(end)) == Released::released);

  std::promise<Result<std::size_t>> taken;
  std::promise<Result<Released>> left;
  auto count = taken.get_future();
  auto level = left.get_future();
  CHECK(counted([&] {
          lock.async_try_lock({.wait = patience}).start([&](auto result) {
            taken.set_value(std::move(result));
          });
        }) == 1);
  CHECK(must(get_soon(count)) == 1);
  CHECK(counted([&] {
          lock.async_release().start([&](auto result) { left.set_value(std::move(result)); });
        }) == 1);
  CHECK(must(get_soon(level)) == Released::released);
}

TEST_CASE("dropping a lease allocates nothing") {
  const Fleet fleet({.nodes = 3});
  const Client client = start_observed(fleet);
  RedLock lock = client.lock("dropped");
  Result<Lease> lease = lock.acquire();
  REQUIRE(lease.has_value());
  const std::size_t before = allocations;
  *lease = Lease();
  CHECK(allocations == before);
  CHECK(soon_free_everywhere(fleet, "dropped"));
}

}  // namespace
}  // namespace redlock::testing
