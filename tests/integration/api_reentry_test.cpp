// SPDX-License-Identifier: MIT
// An owner that takes a lock again: the calling thread, or an explicit owner on any thread; on
// real nodes, where the count can be read.
#include "integration/api_fixture.hpp"
#include "integration/api_recording_observer.hpp"

namespace redlock::testing {
namespace {

/// How often its owner holds it according to each node; 0 where it is free.
std::vector<std::uint64_t> counts(const Client& client, const std::string& name) {
  std::vector<std::uint64_t> result;
  for (const auto& node : must(Admin(client).inspect(name)).nodes) {
    result.push_back(node.owners.empty() ? 0 : node.owners.front().count);
  }
  return result;
}

bool soon_counted(const Client& client, const std::string& name, std::uint64_t count) {
  return eventually([&] { return counts(client, name) == std::vector<std::uint64_t>(3, count); });
}

template <typename Attempt>
Errc thrown_by(Attempt attempt) {
  try {
    attempt();
  } catch (const std::system_error& error) {
    REQUIRE(error.code().category() == error_category());
    return static_cast<Errc>(error.code().value());
  }
  FAIL("nothing was thrown");
  return {};
}

/// In another thread, to its end.
template <typename Work>
void elsewhere(Work work) {
  std::jthread(std::move(work)).join();
}

TEST_CASE("a thread re-enters through any RedLock of the client, with the same token") {
  const Client client = start_client(three_nodes());
  RedLock outer = client.lock("entered");
  RedLock inner = client.lock("entered");
  CHECK(outer.hold_count() == 0);
  CHECK_FALSE(outer.held_by_me());
  outer.lock();
  const std::uint64_t token = outer.token();
  CHECK(token > 0);
  CHECK(inner.token() == token);
  inner.lock(5s);
  CHECK(inner.try_lock());
  CHECK(outer.try_lock_for(patience));
  CHECK(outer.hold_count() == 4);
  CHECK(inner.hold_count() == 4);
  CHECK(inner.token() == token);
  CHECK(outer.held_by_me());
  CHECK(soon_counted(client, "entered", 4));
  inner.unlock();
  CHECK(soon_counted(client, "entered", 3));
  inner.unlock();
  inner.unlock();
  CHECK(soon_counted(client, "entered", 1));
  CHECK(inner.held_by_me());
  CHECK(inner.hold_count() == 1);
  inner.unlock();  // by another object than took it
  CHECK(outer.hold_count() == 0);
  CHECK_FALSE(outer.held_by_me());
  CHECK(outer.token() == 0);
  CHECK(soon_free_everywhere(three_nodes(), "entered"));
}

TEST_CASE("std::scoped_lock in functions that call each other") {
  const Client client = start_client(three_nodes());
  const std::function<std::uint64_t(int)> descend = [&](int depth) {
    RedLock lock = client.lock("nested");
    const std::scoped_lock guard(lock);
    CHECK(lock.hold_count() > 0);
    return depth == 0 ? lock.hold_count() : descend(depth - 1);
  };
  CHECK(descend(4) == 5);
  CHECK(client.lock("nested").hold_count() == 0);
  CHECK(soon_free_everywhere(three_nodes(), "nested"));
}

TEST_CASE("another thread is refused, cannot unlock, and holds nothing") {
  const auto observer = std::make_shared<RecordingObserver>();
  ClientOptions options = options_for(three_nodes().uris());
  options.observer = observer;
  const Client client = start_client(options);
  RedLock lock = client.lock("threads");
  lock.lock();
  lock.lock();
  elsewhere([&] {
    CHECK_FALSE(lock.try_lock());
    CHECK_FALSE(lock.try_lock_for(20ms));
    CHECK(lock.hold_count() == 0);
    CHECK_FALSE(lock.held_by_me());
    CHECK(lock.token() == 0);
    CHECK(code_of(lock.release()) == Errc::invalid_argument);
    lock.unlock();
  });
  CHECK(observer->records("threads invalid_argument"));
  CHECK(lock.hold_count() == 2);
  CHECK(must(lock.release()) == Released::still_held);
  CHECK(must(lock.release()) == Released::released);
  CHECK(code_of(lock.release()) == Errc::invalid_argument);
  elsewhere([&] { const std::scoped_lock guard(lock); });
  CHECK(observer->recorded().size() == 1);
}

TEST_CASE("an explicit owner is the same on every thread, and another one is not") {
  const Client client = start_client(three_nodes());
  const Owner owner = Owner::create();
  CHECK(owner == Owner(owner));
  CHECK_FALSE(owner == Owner::create());
  CHECK(Owner::this_thread() == Owner::this_thread());
  RedLock lock = client.lock("handed on", owner);
  lock.lock();
  const std::uint64_t token = lock.token();
  elsewhere([&] {
    RedLock same = client.lock("handed on", owner);
    CHECK(same.try_lock());
    CHECK(same.token() == token);
    CHECK(same.hold_count() == 2);
    same.unlock();
    CHECK_FALSE(client.lock("handed on").try_lock());
    CHECK_FALSE(client.lock("handed on", Owner::create()).try_lock());
    lock.unlock();
  });
  CHECK(lock.hold_count() == 0);
  CHECK(client.lock("handed on").try_lock());
}

TEST_CASE("acquire() stands for itself: it neither re-enters nor is re-entered") {
  const Client client = start_client(three_nodes());
  RedLock lock = client.lock("leases");
  {
    const std::scoped_lock guard(lock);
    CHECK(code_of(lock.acquire()) == Errc::contended);
  }
  const Lease lease = must(lock.acquire({.wait = patience}));
  CHECK_FALSE(lock.try_lock());
  CHECK(lock.hold_count() == 0);
}

TEST_CASE("a shorter inner lease leaves the outer one as it was; an explicit one is not renewed") {
  const Client client = start_client(three_nodes());
  RedLock lock = client.lock("inner");
  lock.lock(20s);
  CHECK(lock.try_lock_for(patience, 500ms));
  CHECK(lock.hold_count() == 2);
  const auto left = must(Admin(client).inspect("inner")).nodes.front().remaining;
  REQUIRE(left.has_value());
  CHECK(*left > 500ms);
  lock.unlock();
  lock.unlock();
  std::promise<void> ended;
  auto end = ended.get_future();
  REQUIRE(lock.try_lock_for(patience, 500ms));
  const std::stop_callback on_lost(lock.lost(), [&] { ended.set_value(); });
  get_soon(end);
  lock.unlock();
}

TEST_CASE("an entry that no quorum confirms fails and gives nothing back") {
  Fleet fleet({.nodes = 3, .persistence = cluster::Persistence::always});
  ClientOptions options = options_for(fleet.uris());
  options.lease = 60s;
  const Client client = start_client(options);
  RedLock lock = client.lock("held on");
  lock.lock();
  REQUIRE(eventually([&] { return nodes_with_lock(fleet, "held on") == 3; }));
  fleet.kill(1);
  fleet.kill(2);
  CHECK_FALSE(lock.try_lock());
  CHECK(lock.hold_count() == 1);
  CHECK(lock.held_by_me());
  CHECK(is_locked_on(fleet, 0, "held on"));
  CHECK(eventually([&] {
    return must(Admin(client).inspect("held on")).nodes.front().owners.front().count == 1;
  }));
  fleet.restart(1);
  CHECK(lock.try_lock_for(patience));
  CHECK(lock.hold_count() == 2);
  lock.unlock();
  lock.unlock();
}

TEST_CASE("a RedLock that goes gives back its own levels, and no others") {
  const Client client = start_client(three_nodes());
  RedLock outer = client.lock("scopes");
  outer.lock();
  {
    RedLock inner = client.lock("scopes");
    inner.lock();
    inner.lock();
    CHECK(outer.hold_count() == 3);
  }
  CHECK(outer.hold_count() == 1);
  CHECK(soon_counted(client, "scopes", 1));
  {
    RedLock inner = client.lock("scopes");
    inner.lock();
    outer = client.lock("another");
    CHECK(inner.hold_count() == 1);
    CHECK(inner.held_by_me());
  }
  CHECK(soon_free_everywhere(three_nodes(), "scopes"));
}

TEST_CASE("what a RedLock held is given back when its destructor returns, not later") {
  const Client client = start_client(three_nodes());
  RedLock outer = client.lock("at once");
  outer.lock();
  for (int i = 0; i < 500; ++i) {
    { client.lock("at once").lock(); }
    REQUIRE(outer.hold_count() == 1);
  }
  outer.unlock();
  for (int i = 0; i < 500; ++i) {
    { client.lock("at once").lock(); }
    REQUIRE(outer.hold_count() == 0);
  }
}

TEST_CASE("a thread that comes after one that went without unlocking does not inherit its lock") {
  const Client client = start_client(three_nodes());
  RedLock lock = client.lock("inherited");
  elsewhere([&] { lock.lock(); });
  for (int i = 0; i < 5; ++i) elsewhere([&] { CHECK(lock.hold_count() == 0); });
}

TEST_CASE("on the loop thread lock() cannot wait, also for a re-entry") {
  const Client client = start_client(three_nodes());
  const Owner owner = Owner::create();
  RedLock lock = client.lock("loop", owner);
  lock.lock();
  std::promise<Errc> said;
  auto answer = said.get_future();
  client.lock("elsewhere").async_acquire().start([&](const auto&) {
    said.set_value(thrown_by([&] { lock.lock(); }));
  });
  CHECK(get_soon(answer) == Errc::would_deadlock);
  CHECK(lock.hold_count() == 1);
}

}  // namespace
}  // namespace redlock::testing
