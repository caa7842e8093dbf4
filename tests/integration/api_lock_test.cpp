// SPDX-License-Identifier: MIT
// RedLock as the standard's Lockable and TimedLockable: with std::unique_lock, std::scoped_lock,
// by two threads, and used wrongly; why a lock was not got, where those forms can only say false or
// throw; and that a client which contends with itself is told so.
#include <concepts>

#include "integration/api_event_log.hpp"

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

constexpr auto somebody_else = "somebody else";
constexpr auto itself = "this client holds it itself";

/// Of a wait that ends while another has the lock: between two attempts, or with the last of them.
bool is_in_vain(Errc code) {
  return code == Errc::timed_out || code == Errc::contended;
}

TEST_CASE("std::unique_lock locks, tries, times out and unlocks; last_error() says why not") {
  const Client client = start_client(three_nodes());
  const Client holder = start_client(three_nodes());
  RedLock mine = holder.lock("unique");
  RedLock other = client.lock("unique", Owner::create());
  CHECK_FALSE(other.last_error());
  {
    const std::unique_lock guard(mine);
    CHECK(mine.token() > 0);
    CHECK_FALSE(mine.lost().stop_requested());
    const std::unique_lock rival(other, std::try_to_lock);
    CHECK_FALSE(rival.owns_lock());
    const auto why = other.last_error();
    REQUIRE(why);
    CHECK(why->code == Errc::contended);
    CHECK(why->votes.size() == 3);
    CHECK(contains(why->message, somebody_else));
    CHECK_FALSE(std::unique_lock(other, std::chrono::steady_clock::now() - 1h).owns_lock());
    CHECK_FALSE(std::unique_lock(other, 20ms).owns_lock());
    REQUIRE(other.last_error());
    CHECK(is_in_vain(other.last_error()->code));
    CHECK(other.token() == 0);
  }
  CHECK(mine.token() == 0);
  CHECK(std::unique_lock(other, std::chrono::hours::max()).owns_lock());
  CHECK_FALSE(other.last_error());
  CHECK(std::unique_lock(mine, std::chrono::steady_clock::time_point::max()).owns_lock());
  CHECK(std::unique_lock(other, std::chrono::system_clock::now() + 1h).owns_lock());
}

TEST_CASE("std::scoped_lock takes several names in any order, one thread at a time") {
  const Client client = start_client(three_nodes());
  std::atomic<int> inside{0};
  const auto take_both = [&](const char* first, const char* second) {
    RedLock a = client.lock(first);
    RedLock b = client.lock(second);
    for (int turn = 0; turn < 10; ++turn) {
      const std::scoped_lock both(a, b);
      CHECK(++inside == 1);
      CHECK(a.token() > 0);
      CHECK(b.token() > 0);
      --inside;
    }
  };
  std::jthread forwards(take_both, "fork", "spoon");
  std::jthread backwards(take_both, "spoon", "fork");
}

TEST_CASE("unlock() never throws, and tells the observer what it could not do") {
  const auto log = std::make_shared<EventLog>();
  std::optional<Client> client = start_observed(three_nodes(), log);
  RedLock lock = client->lock("unlocked");

  lock.unlock();
  CHECK(log->soon_has("release failed unlocked invalid_argument"));

  lock.lock();
  lock.lock();
  std::jthread([&] { lock.unlock(); }).join();  // not its own
  CHECK(lock.token() > 0);
  run_on_all(three_nodes(), {"DEL", "redlock:lock:{unlocked}"});
  // After a loss it is not taken until all its levels are given back.
  CHECK_THROWS_AS(lock.lock(), std::system_error);
  CHECK_THROWS_AS(static_cast<void>(lock.try_lock_for(patience)), std::system_error);
  CHECK(lock.last_error().value().code == Errc::lost);
  CHECK(lock.hold_count() == 2);
  lock.unlock();
  lock.unlock();
  CHECK(log->soon_has("release failed unlocked lost"));
  CHECK(lock.token() == 0);

  lock.lock();
  lock.unlock();
  CHECK(log->count("release failed ") == 4);

  lock.lock();
  client.reset();
  CHECK(soon_free_everywhere(three_nodes(), "unlocked"));
  lock.unlock();
  CHECK(log->count("release failed ") == 5);
  CHECK(log->count("release failed unlocked closed") == 1);
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

TEST_CASE("an exception has the code, last_error() the votes; who waits outlives lost nodes") {
  Fleet fleet({.nodes = 3});
  const Client client = start_client(fleet);
  warm_up(client, fleet);
  RedLock lock = client.lock("a");
  CHECK(code_thrown_by([&] { lock.lock(-1s); }) == Errc::invalid_argument);
  REQUIRE(lock.last_error());
  CHECK(lock.last_error()->code == Errc::invalid_argument);

  fleet.kill(0);
  fleet.kill(1);
  CHECK_FALSE(lock.try_lock());
  const auto why = lock.last_error();
  REQUIRE(why);
  CHECK(why->code == Errc::no_quorum);
  REQUIRE(why->votes.size() == 3);
  for (std::size_t node = 0; node < 3; ++node) CHECK(why->votes[node].node == fleet.uri(node));
  CHECK(why->votes[0].vote == Vote::unavailable);
  CHECK_FALSE(why->is_configuration());
  CHECK(contains(why->message, "no quorum for 'a'"));
  CHECK(contains(why->message, fleet.uri(0)));

  auto waiting = client.lock("a").async_acquire({.wait = forever}).as_future();
  CHECK_FALSE(lock.try_lock());
  fleet.restart(0);
  fleet.restart(1);
  CHECK(must(get_soon(waiting)).valid());
}

TEST_CASE("each thread is told of its own failure, an owner's calls share one; 64 are kept") {
  const Client client = start_client(three_nodes());
  const Lease lease = must(client.lock("b").acquire());
  RedLock shared = client.lock("b");
  RedLock owned = client.lock("b", Owner::create());
  std::thread([&] {
    CHECK_FALSE(shared.try_lock());
    CHECK_FALSE(owned.try_lock());
    CHECK(shared.last_error());
  }).join();
  CHECK_FALSE(shared.last_error());
  CHECK(owned.last_error());
  RedLock moved = std::move(owned);
  CHECK(moved.last_error());

  const auto fail_on_threads = [&](int count) {
    for (int i = 0; i < count; ++i) std::thread([&] { CHECK_FALSE(shared.try_lock()); }).join();
  };
  CHECK_FALSE(shared.try_lock());
  fail_on_threads(63);
  CHECK(shared.last_error());
  fail_on_threads(1);
  CHECK_FALSE(shared.last_error());
}

TEST_CASE("a client that contends with its own lease or owner is told so, and no other is") {
  const Client client = start_client(three_nodes());
  const Client other = start_client(three_nodes());
  const auto check_refused = [](const Client& of, const char* why, const char* why_not) {
    const auto refused = of.lock("c").acquire();
    REQUIRE(code_of(refused) == Errc::contended);
    CHECK(contains(refused.error().message, why));
    CHECK_FALSE(contains(refused.error().message, why_not));
  };
  Lease lease = lock_everywhere(client, three_nodes(), "c");
  check_refused(client, itself, somebody_else);
  check_refused(other, somebody_else, itself);
  const auto waited = client.lock("c").acquire({.wait = 20ms});
  CHECK(is_in_vain(code_of(waited)));
  CHECK(contains(waited.error().message, itself));
  RedLock mine = client.lock("c");
  CHECK_FALSE(mine.try_lock());
  CHECK(contains(mine.last_error()->message, itself));

  must(lease.release());
  REQUIRE(soon_free_everywhere(three_nodes(), "c"));
  lease = lock_everywhere(other, three_nodes(), "c");
  check_refused(client, somebody_else, itself);
  must(lease.release());

  RedLock owned = client.lock("c", Owner::create());
  REQUIRE(owned.try_lock_for(patience));
  check_refused(client, itself, somebody_else);
}

TEST_CASE("a client with very many leases does not blame somebody else for its own") {
  const Client client = start_client(three_nodes());
  std::vector<Lease> leases;
  for (int i = 0; i < 257; ++i) {
    leases.push_back(must(client.lock(std::to_string(i)).acquire()));
  }
  const auto again = client.lock("7").acquire();
  REQUIRE(code_of(again) == Errc::contended);
  CHECK(contains(again.error().message, "perhaps of this client"));
  CHECK_FALSE(contains(again.error().message, somebody_else));
}

}  // namespace
}  // namespace redlock::testing
