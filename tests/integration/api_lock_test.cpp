// SPDX-License-Identifier: MIT
// RedLock as the standard's Lockable and TimedLockable: with std::unique_lock, std::scoped_lock,
// by two threads, and used wrongly.
#include <concepts>

#include "integration/api_fixture.hpp"
#include "integration/api_recording_observer.hpp"

namespace redlock::testing {
namespace {

template <typename T>
concept TimedLockable = requires(T lock) {
  lock.lock();
  { lock.unlock() }
  noexcept;
  { lock.try_lock() } -> std::same_as<bool>;
  { lock.try_lock_for(1s) } -> std::same_as<bool>;
  { lock.try_lock_until(std::chrono::steady_clock::now()) } -> std::same_as<bool>;
};
static_assert(TimedLockable<RedLock>);
static_assert(std::movable<RedLock> && std::movable<Lease> && std::movable<Client>);
static_assert(!std::copyable<RedLock> && !std::copyable<Lease> && !std::copyable<Client>);
static_assert(std::is_nothrow_move_constructible_v<Lease>);

TEST_CASE("std::unique_lock locks, tries, times out and unlocks") {
  const Client client = start_client(three_nodes());
  RedLock mine = client.lock("unique");
  RedLock other = client.lock("unique", Owner::create());
  {
    const std::unique_lock guard(mine);
    CHECK(mine.token() > 0);
    CHECK_FALSE(mine.lost().stop_requested());
    const std::unique_lock rival(other, std::try_to_lock);
    CHECK_FALSE(rival.owns_lock());
    CHECK_FALSE(std::unique_lock(other, 20ms).owns_lock());
    CHECK_FALSE(std::unique_lock(other, std::chrono::steady_clock::now() - 1h).owns_lock());
    CHECK(other.token() == 0);
  }
  CHECK(mine.token() == 0);
  CHECK(std::unique_lock(other, std::chrono::hours::max()).owns_lock());
  CHECK(std::unique_lock(mine, std::chrono::steady_clock::time_point::max()).owns_lock());
  CHECK(std::unique_lock(other, std::chrono::system_clock::now() + 1h).owns_lock());
}

TEST_CASE("std::scoped_lock takes several names in any order") {
  const Client client = start_client(three_nodes());
  const auto take_both = [&client](const char* first, const char* second) {
    RedLock a = client.lock(first);
    RedLock b = client.lock(second);
    for (int turn = 0; turn < 10; ++turn) {
      const std::scoped_lock both(a, b);
      CHECK(a.token() > 0);
      CHECK(b.token() > 0);
    }
  };
  std::jthread forwards(take_both, "fork", "spoon");
  std::jthread backwards(take_both, "spoon", "fork");
}

TEST_CASE("two threads that share one RedLock exclude each other") {
  const Client client = start_client(three_nodes());
  RedLock lock = client.lock("shared by threads");
  int unprotected = 0;
  std::atomic<int> inside{0};
  const auto work = [&] {
    for (int turn = 0; turn < 15; ++turn) {
      const std::scoped_lock guard(lock);
      CHECK(++inside == 1);
      ++unprotected;
      --inside;
    }
  };
  {
    std::jthread first(work);
    std::jthread second(work);
  }
  CHECK(unprotected == 30);
}

TEST_CASE("unlock() never throws, and tells the observer what it could not do") {
  const auto observer = std::make_shared<RecordingObserver>();
  std::optional<Client> client =
      start_client(three_nodes(), [&](ClientOptions& options) { options.observer = observer; });
  RedLock lock = client->lock("unlocked");

  lock.unlock();
  CHECK(observer->records("unlocked invalid_argument"));

  lock.lock();
  lock.lock();
  std::jthread([&] { lock.unlock(); }).join();  // not its own
  CHECK(lock.token() > 0);
  for (std::size_t node = 0; node < 3; ++node) {
    three_nodes().run(node, {"DEL", "redlock:lock:{unlocked}"});
  }
  // After a loss it is not taken until all its levels are given back.
  CHECK_THROWS_AS(lock.lock(), std::system_error);
  CHECK_THROWS_AS(static_cast<void>(lock.try_lock_for(patience)), std::system_error);
  CHECK(lock.last_error().value().code == Errc::lost);
  CHECK(lock.hold_count() == 2);
  lock.unlock();
  lock.unlock();
  CHECK(observer->records("unlocked lost"));
  CHECK(lock.token() == 0);

  lock.lock();
  lock.unlock();
  const auto before = observer->recorded();
  CHECK(before.size() == 4);

  lock.lock();
  client.reset();
  CHECK(soon_free_everywhere(three_nodes(), "unlocked"));
  lock.unlock();
  CHECK(observer->recorded().size() == before.size() + 1);
  CHECK(observer->recorded().back() == "unlocked closed");
  CHECK_THROWS_AS(lock.lock(), std::system_error);
  CHECK_THROWS_AS(static_cast<void>(lock.try_lock()), std::system_error);
}

TEST_CASE("a RedLock that was moved, also to itself, gives back what it holds when it goes") {
  const Client client = start_client(three_nodes());
  {
    RedLock lock = client.lock("dropped");
    lock.lock();
    RedLock moved = std::move(lock);
    CHECK(moved.token() > 0);
    RedLock& same = moved;
    moved = std::move(same);
    CHECK(moved.name() == "dropped");
    CHECK(moved.token() > 0);
  }
  CHECK(soon_free_everywhere(three_nodes(), "dropped"));
}

TEST_CASE("lock(lease) ends by itself, lock() is renewed") {
  const Client client = start_client(three_nodes());
  RedLock lock = client.lock("bounded");
  std::promise<void> ended;
  lock.lock(500ms);
  const std::stop_callback on_lost(lock.lost(), [&] { ended.set_value(); });
  get_soon(ended);
  CHECK(must(client.lock("bounded").acquire({.wait = 30s})).token() > lock.token());
  lock.unlock();
}

}  // namespace
}  // namespace redlock::testing
