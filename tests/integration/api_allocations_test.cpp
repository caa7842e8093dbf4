// SPDX-License-Identifier: MIT
// What a call costs its thread in memory: a blocking one nothing, because the call lies on its
// stack; an operation one allocation, which is the call. Every operator new of this program is
// counted, for each thread by itself. Callers that drive the loop allocate what the loop needs,
// so the clients here have an observer, with which no caller does.
#include "integration/api_fixture.hpp"
#include "support/counted_new.hpp"

namespace redlock::testing {
namespace {

Client start_with_observer() {
  return start_observed(three_nodes(), std::make_shared<Observer>());
}

/// The result of the operation that `begin` returns, which costs one allocation.
template <typename T, typename Begin>
Result<T> after_one_allocation(const Begin& begin) {
  std::promise<Result<T>> given;
  const std::size_t before = allocations;
  begin().start([&](Result<T> result) { given.set_value(std::move(result)); });
  const std::size_t during = allocations - before;
  CHECK(during == 1);
  return get_soon(given);
}

TEST_CASE("blocking acquire, extend and release allocate nothing, nor does dropping a lease") {
  const Client client = start_with_observer();
  RedLock lock = client.lock("lean");
  RedLock other = client.lock("dropped");
  must(must(lock.acquire()).release());

  const std::size_t before = allocations;
  Result<Lease> lease = lock.acquire();
  const auto extended = lease->extend(20s);
  const auto released = lease->release();
  Result<Lease> dropped = other.acquire();
  *dropped = Lease();
  const std::size_t during = allocations - before;
  CHECK(extended.has_value());
  CHECK(released == Released::released);
  CHECK(during == 0);
  CHECK(soon_free_everywhere(three_nodes(), "dropped"));
}

TEST_CASE(
    "lock and unlock allocate nothing on the calling thread; leaving an inner level, one task") {
  const Client client = start_with_observer();
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
  const Client client = start_with_observer();
  RedLock lock = client.lock("one", Owner::create());
  must(must(lock.acquire()).release());
  Lease held = must(after_one_allocation<Lease>([&] { return lock.async_acquire(); }));
  must(after_one_allocation<BootClock::time_point>([&] { return held.async_extend(40s); }));
  CHECK(must(after_one_allocation<Released>([&] { return held.async_release(); })) ==
        Released::released);
  CHECK(must(after_one_allocation<std::size_t>(
            [&] { return lock.async_try_lock({.wait = patience}); })) == 1);
  CHECK(must(after_one_allocation<Released>([&] { return lock.async_release(); })) ==
        Released::released);
}

}  // namespace
}  // namespace redlock::testing
