// SPDX-License-Identifier: MIT
// Every operation as blocking call, callback, std::future and co_await, over 1 to 5 real nodes.
#include "integration/api_coroutines.hpp"
#include "integration/api_fixture.hpp"

namespace redlock::testing {
namespace {

const Fleet& five_nodes() {
  static const Fleet fleet({.nodes = 5});
  return fleet;
}

TEST_CASE("a blocking acquire holds a quorum until the lease is released, on sets of 1 to 5") {
  for (std::size_t size = 1; size <= 5; ++size) {
    const Fleet fleet({.nodes = size});
    const Client client = start_client(fleet);
    const Client rival = start_client(fleet);
    RedLock lock = client.lock("seat A05");

    Lease lease = must(lock.acquire());
    CHECK(lease);
    CHECK(lease.valid());
    CHECK(lease.name() == "seat A05");
    CHECK(lease.owner().size() == 32);
    CHECK(lease.token() > 0);
    CHECK(lease.remaining() > 0s);
    CHECK(lease.remaining() < 30s);
    CHECK(nodes_with_lock(fleet, "seat A05") > size / 2);
    const auto refused = rival.lock("seat A05").acquire();
    CHECK(code_of(refused) == Errc::contended);
    CHECK(refused.error().votes.size() == size);

    const std::uint64_t token = lease.token();
    CHECK(must(lease.release()) == Released::released);
    CHECK_FALSE(lease);
    CHECK_FALSE(lease.valid());
    CHECK(code_of(lease.release()) == Errc::lost);
    CHECK(soon_free_everywhere(fleet, "seat A05"));
    CHECK(must(rival.lock("seat A05").acquire()).token() > token);
  }
}

TEST_CASE("tokens are small numbers from 1 when no clock is to be their floor") {
  const Fleet fleet({.nodes = 3});
  ClientOptions options = options_for(fleet.uris());
  options.fence_floor = FenceFloor::none;
  const Client client = start_client(options);
  for (std::uint64_t turn = 1; turn <= 3; ++turn) {
    Lease lease = must(client.lock("x").acquire());
    CHECK(lease.token() == turn);
    must(lease.release());
    REQUIRE(soon_free_everywhere(fleet, "x"));
  }
}

TEST_CASE("the callback form answers once, on a thread that blocking calls refuse to block") {
  const Client client = start_client(five_nodes());
  RedLock lock = client.lock("callback");
  std::promise<Lease> got;
  std::promise<Errc> from_inside;
  lock.acquire({}, [&](Result<Lease> lease) {
    from_inside.set_value(lock.acquire().error().code);
    got.set_value(std::move(lease.value()));
  });
  auto inside = from_inside.get_future();
  CHECK(get_soon(inside) == Errc::would_deadlock);
  auto future = got.get_future();
  Lease lease = get_soon(future);
  CHECK(lease.valid());

  std::promise<Result<BootClock::time_point>> extended;
  lease.extend(20s, [&](auto until) { extended.set_value(std::move(until)); });
  auto extension = extended.get_future();
  CHECK(must(get_soon(extension)) == lease.valid_until());

  std::promise<Result<Released>> released;
  lease.release([&](auto result) { released.set_value(std::move(result)); });
  auto release = released.get_future();
  CHECK(must(get_soon(release)) == Released::released);
}

TEST_CASE("a release on the loop thread gives the lock back although it cannot wait for it") {
  const Client client = start_client(five_nodes());
  RedLock lock = client.lock("released inside");
  std::promise<Errc> answered;
  lock.acquire(
      {}, [&](Result<Lease> lease) { answered.set_value(lease.value().release().error().code); });
  auto answer = answered.get_future();
  CHECK(get_soon(answer) == Errc::would_deadlock);
  CHECK(soon_free_everywhere(five_nodes(), "released inside"));
}

TEST_CASE("the future form, from acquire over extend to release") {
  const Client client = start_client(five_nodes());
  RedLock lock = client.lock("future");
  auto acquiring = lock.acquire_future();
  Lease lease = must(get_soon(acquiring));
  auto again = lock.acquire_future();
  CHECK(code_of(get_soon(again)) == Errc::contended);
  auto extending = lease.extend_future(20s);
  CHECK(must(get_soon(extending)) == lease.valid_until());

  const Grant grant = lease.detach();
  auto attaching = lock.attach_future(grant);
  Lease attached = must(get_soon(attaching));
  auto releasing = attached.release_future();
  CHECK(must(get_soon(releasing)) == Released::released);
  auto gone = lock.release_future(grant);
  CHECK(must(get_soon(gone)) == Released::already_gone);
}

FireAndForget work(RedLock& lock, std::promise<std::vector<std::string>>& done) {
  std::vector<std::string> steps;
  Result<Lease> lease = co_await lock.co_acquire({.lease = 10s});
  steps.push_back(lease ? "acquired" : lease.error().message);
  const auto second = co_await lock.co_acquire();
  steps.push_back(second ? "twice" : to_string(second.error().code));
  const auto until = co_await lease->co_extend(20s);
  steps.push_back(until == lease->valid_until() ? "extended" : "not extended");
  const auto still = co_await lease->co_confirm();
  steps.push_back(still == lease->valid_until() ? "confirmed" : "not confirmed");
  const Grant grant = lease->detach();
  Result<Lease> attached = co_await lock.co_attach(grant);
  steps.push_back(attached ? "attached" : attached.error().message);
  const auto released = co_await attached->co_release();
  steps.push_back(released ? to_string(*released) : released.error().message);
  const auto gone = co_await lock.co_release(grant);
  steps.push_back(gone ? to_string(*gone) : gone.error().message);
  const auto bad = co_await lock.co_acquire({.lease = -1s});  // known at once
  steps.push_back(bad ? "negative lease" : to_string(bad.error().code));
  done.set_value(std::move(steps));
}

TEST_CASE("the coroutine form, from acquire over extend and attach to release") {
  const Client client = start_client(five_nodes());
  RedLock lock = client.lock("coroutine");
  std::promise<std::vector<std::string>> done;
  work(lock, done);
  auto steps = done.get_future();
  CHECK(get_soon(steps) == std::vector<std::string>{"acquired", "contended", "extended",
                                                    "confirmed", "attached", "released",
                                                    "already_gone", "invalid_argument"});
}

TEST_CASE("an operation that is never awaited does nothing") {
  const Client client = start_client(five_nodes());
  RedLock lock = client.lock("never awaited");
  { const auto operation = lock.co_acquire(); }
  Lease lease = must(lock.acquire());
  { const auto operation = lease.co_release(); }
  CHECK(lease.valid());
}

TEST_CASE("submit is the same for those who have no RedLock") {
  const Client client = start_client(five_nodes());
  std::promise<Result<Lease>> acquired;
  client.submit(AcquireRequest{.name = "submitted"},
                [&](auto result) { acquired.set_value(std::move(result)); });
  auto acquiring = acquired.get_future();
  const Grant grant = must(get_soon(acquiring)).detach();

  std::promise<Result<Lease>> attached;
  client.submit(AttachRequest{.grant = grant},
                [&](auto result) { attached.set_value(std::move(result)); });
  auto attaching = attached.get_future();
  CHECK(must(get_soon(attaching)).detach().owner == grant.owner);

  std::promise<Result<Released>> released;
  client.submit(ReleaseRequest{grant}, [&](auto result) { released.set_value(std::move(result)); });
  auto releasing = released.get_future();
  CHECK(must(get_soon(releasing)) == Released::released);
}

TEST_CASE("a grant that was detached is taken up, extended and released by another client") {
  const Client first = start_client(five_nodes());
  const Client second = start_client(five_nodes());
  Lease lease = must(first.lock("handed over").acquire());
  const std::uint64_t token = lease.token();
  const Grant grant = lease.detach();
  CHECK_FALSE(lease);
  CHECK(code_of(lease.extend(1s)) == Errc::lost);
  CHECK(grant.token == token);
  CHECK(code_of(first.lock("handed over").acquire()) == Errc::contended);

  Lease taken_up = must(second.lock("handed over").attach(grant, {.lease = 20s}));
  CHECK(taken_up.token() == token);
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

TEST_CASE("an extension that cannot work is refused and leaves the lease as it is") {
  const Client client = start_client(five_nodes());
  Lease lease = must(client.lock("kept").acquire());
  const auto until = lease.valid_until();
  CHECK(code_of(lease.extend(0s)) == Errc::invalid_argument);
  CHECK(code_of(lease.extend(61s)) == Errc::invalid_argument);
  CHECK(lease.valid_until() == until);
  CHECK(lease.valid());
}

TEST_CASE("assigning to a lease releases what it held before") {
  const Client client = start_client(five_nodes());
  Lease lease = must(client.lock("left").acquire());
  lease = must(client.lock("right").acquire());
  CHECK(soon_free_everywhere(five_nodes(), "left"));
  CHECK(lease.valid());
  lease = Lease();
  CHECK(soon_free_everywhere(five_nodes(), "right"));
}

TEST_CASE("the nodes may be reached through Unix sockets and with a password") {
  const Fleet fleet({.nodes = 3, .unix_sockets = true, .password = "open sesame"});
  ClientOptions options = options_for({});
  for (std::size_t node = 0; node < 3; ++node) {
    options.nodes.push_back(node == 0 ? fleet.unix_uri(node) : fleet.uri(node));
  }
  const Client client = start_client(options);
  Lease lease = must(client.lock("x").acquire());
  CHECK(must(lease.release()) == Released::released);
}

}  // namespace
}  // namespace redlock::testing
