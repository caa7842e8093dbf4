// SPDX-License-Identifier: MIT
// Why a lock was not got, where the standard's forms can only say false or throw; and that a client
// which contends with itself is told so.
#include "api_fixture.hpp"

namespace redlock::testing {
namespace {

bool says(const Error& error, const char* what) {
  return error.message.find(what) != std::string::npos;
}

/// Of a wait that ends while another has the lock: between two attempts, or with the last of them.
bool is_in_vain(Errc code) {
  return code == Errc::timed_out || code == Errc::contended;
}

TEST_CASE("a lock that was not got says why, with the votes, until a call succeeds") {
  const Fleet fleet({.nodes = 3});
  const Client holder = start_client(fleet);
  const Client client = start_client(fleet);
  RedLock lock = client.lock("a");
  CHECK_FALSE(lock.last_error());
  Lease lease = must(holder.lock("a").acquire());

  CHECK_FALSE(lock.try_lock());
  REQUIRE(lock.last_error());
  CHECK(lock.last_error()->code == Errc::contended);
  CHECK(lock.last_error()->votes.size() == 3);
  CHECK(says(*lock.last_error(), "somebody else"));

  const std::unique_lock guard(lock, 20ms);
  CHECK_FALSE(guard.owns_lock());
  REQUIRE(lock.last_error());
  CHECK(is_in_vain(lock.last_error()->code));

  must(lease.release());
  REQUIRE(soon_free_everywhere(fleet, "a"));
  CHECK(lock.try_lock_for(patience));
  CHECK_FALSE(lock.last_error());
  lock.unlock();
}

TEST_CASE("an exception has the code, and last_error() the votes") {
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
  CHECK(why->votes[0].vote == Vote::unavailable);
  CHECK(says(*why, fleet.uri(0).c_str()));
}

TEST_CASE("each thread is told of its own failure, an owner's calls share one") {
  const Fleet fleet({.nodes = 3});
  const Client client = start_client(fleet);
  const Lease lease = must(client.lock("a").acquire());
  RedLock shared = client.lock("a");
  RedLock owned = client.lock("a", Owner::create());
  std::thread([&] {
    CHECK_FALSE(shared.try_lock());
    CHECK_FALSE(owned.try_lock());
    CHECK(shared.last_error());
  }).join();
  CHECK_FALSE(shared.last_error());
  CHECK(owned.last_error());
  RedLock moved = std::move(owned);
  CHECK(moved.last_error());
}

TEST_CASE("of very many threads the 64 latest failures are kept") {
  const Fleet fleet({.nodes = 1});
  const Client client = start_client(fleet);
  const Lease lease = must(client.lock("a").acquire());
  RedLock lock = client.lock("a");
  const auto fail_on_threads = [&](int count) {
    for (int i = 0; i < count; ++i) std::thread([&] { CHECK_FALSE(lock.try_lock()); }).join();
  };
  CHECK_FALSE(lock.try_lock());
  fail_on_threads(63);
  CHECK(lock.last_error());
  fail_on_threads(1);
  CHECK_FALSE(lock.last_error());
}

TEST_CASE("a client that contends with its own lease is told so, and no other is") {
  const Fleet fleet({.nodes = 3});
  const Client client = start_client(fleet);
  const Client other = start_client(fleet);
  constexpr auto itself = "this client holds it itself";
  Lease lease = must(client.lock("a").acquire());
  REQUIRE(eventually([&] { return nodes_with_lock(fleet, "a") == 3; }));

  const auto again = client.lock("a").acquire();
  REQUIRE(code_of(again) == Errc::contended);
  CHECK(says(again.error(), itself));
  CHECK_FALSE(says(again.error(), "somebody else"));
  const auto waited = client.lock("a").acquire({.wait = 20ms});
  CHECK(is_in_vain(code_of(waited)));
  CHECK(says(waited.error(), itself));
  RedLock mine = client.lock("a");
  CHECK_FALSE(mine.try_lock());
  CHECK(says(*mine.last_error(), itself));

  const auto strange = other.lock("a").acquire();
  REQUIRE(code_of(strange) == Errc::contended);
  CHECK(says(strange.error(), "somebody else"));

  must(lease.release());
  REQUIRE(soon_free_everywhere(fleet, "a"));
  const Lease theirs = must(other.lock("a").acquire({.wait = patience}));
  REQUIRE(eventually([&] { return nodes_with_lock(fleet, "a") == 3; }));
  const auto after = client.lock("a").acquire();
  REQUIRE(code_of(after) == Errc::contended);
  CHECK(says(after.error(), "somebody else"));
}

TEST_CASE("a client with very many leases does not blame somebody else for its own") {
  const Fleet fleet({.nodes = 1});
  const Client client = start_client(fleet);
  std::vector<Lease> leases;
  for (int i = 0; i < 257; ++i) {
    leases.push_back(must(client.lock(std::to_string(i)).acquire()));
  }
  const auto again = client.lock("7").acquire();
  REQUIRE(code_of(again) == Errc::contended);
  CHECK(says(again.error(), "perhaps of this client"));
  CHECK_FALSE(says(again.error(), "somebody else"));
}

TEST_CASE("what another owner of this client holds by lock() is its own as well") {
  const Fleet fleet({.nodes = 3});
  const Client client = start_client(fleet);
  RedLock one = client.lock("a", Owner::create());
  RedLock two = client.lock("a", Owner::create());
  one.lock();
  CHECK_FALSE(two.try_lock());
  REQUIRE(two.last_error());
  CHECK(says(*two.last_error(), "this client holds it itself"));
  // A lease of another name with as many grants is not meant.
  const Lease beside = must(client.lock("b").acquire());
  one.unlock();
}

}  // namespace
}  // namespace redlock::testing
