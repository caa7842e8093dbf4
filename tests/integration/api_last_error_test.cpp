// SPDX-License-Identifier: MIT
// Why a lock was not got, where the standard's forms can only say false or throw; and that a client
// which contends with itself is told so.
#include "api_fixture.hpp"

namespace redlock::testing {
namespace {

constexpr auto somebody_else = "somebody else";
constexpr auto itself = "this client holds it itself";

/// Of a wait that ends while another has the lock: between two attempts, or with the last of them.
bool is_in_vain(Errc code) {
  return code == Errc::timed_out || code == Errc::contended;
}

TEST_CASE("a lock that was not got says why, with the votes, until a call succeeds") {
  const Client holder = start_client(three_nodes());
  const Client client = start_client(three_nodes());
  RedLock lock = client.lock("a");
  CHECK_FALSE(lock.last_error());
  Lease lease = must(holder.lock("a").acquire());

  CHECK_FALSE(lock.try_lock());
  REQUIRE(lock.last_error());
  CHECK(lock.last_error()->code == Errc::contended);
  CHECK(lock.last_error()->votes.size() == 3);
  CHECK(contains(lock.last_error()->message, somebody_else));

  const std::unique_lock guard(lock, 20ms);
  CHECK_FALSE(guard.owns_lock());
  REQUIRE(lock.last_error());
  CHECK(is_in_vain(lock.last_error()->code));

  must(lease.release());
  REQUIRE(soon_free_everywhere(three_nodes(), "a"));
  CHECK(lock.try_lock_for(patience));
  CHECK_FALSE(lock.last_error());
  lock.unlock();
}

TEST_CASE("an exception has the code, last_error() the votes; who waits outlives lost nodes") {
  Fleet fleet({.nodes = 3});
  const Client client = start_client(fleet);
  warm_up(client, fleet);
  RedLock lock = client.lock("a");
  try {
    lock.lock(-1s);
    FAIL("a negative lease was accepted");
  } catch (const std::system_error& error) {
    CHECK(error.code() == Errc::invalid_argument);
  }
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
