// SPDX-License-Identifier: MIT
// An owner that takes a lock again: the calling thread, or an explicit owner on any thread, also by
// callback, future and coroutine, with several calls under way; on real nodes, where the count can
// be read.
#include "integration/api_coroutines.hpp"
#include "integration/api_event_log.hpp"

namespace redlock::testing {
namespace {

/// How often its owner holds it according to each node; 0 where it is free.
bool soon_counted(const Client& client, const std::string& name, std::uint64_t count) {
  return eventually([&] {
    return std::ranges::all_of(must(Admin(client).inspect(name)).nodes, [&](const auto& node) {
      return (node.owners.empty() ? 0 : node.owners.front().count) == count;
    });
  });
}

/// In another thread, to its end.
template <typename Work>
void elsewhere(Work work) {
  std::jthread(std::move(work)).join();
}

TEST_CASE("a thread re-enters by any RedLock; another one is refused, and cannot unlock") {
  const auto log = std::make_shared<EventLog>();
  const Client client = start_observed(three_nodes(), log);
  RedLock lock = client.lock("threads");
  RedLock inner = client.lock("threads");
  lock.lock();
  inner.lock(5s);
  CHECK(inner.token() == lock.token());
  CHECK(lock.try_lock());
  CHECK(inner.try_lock_for(patience));
  CHECK(soon_counted(client, "threads", 4));
  for (int i = 0; i < 2; ++i) inner.unlock();
  CHECK(soon_counted(client, "threads", 2));
  CHECK(inner.held_by_me());
  elsewhere([&] {
    CHECK_FALSE(lock.try_lock());
    CHECK_FALSE(lock.try_lock_for(20ms));
    CHECK(lock.hold_count() == 0);
    CHECK_FALSE(lock.held_by_me());
    CHECK(lock.token() == 0);
    CHECK(code_of(lock.release()) == Errc::invalid_argument);
    lock.unlock();
  });
  CHECK(log->soon_has("release failed threads invalid_argument"));
  CHECK(lock.hold_count() == 2);
  CHECK(must(inner.release()) == Released::still_held);
  CHECK(must(inner.release()) == Released::released);  // by another object than took it
  CHECK(lock.token() == 0);
  CHECK(code_of(lock.release()) == Errc::invalid_argument);
  elsewhere([&] { const std::scoped_lock guard(lock); });
  CHECK(log->count("release failed ") == 1);
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

TEST_CASE("on the loop thread lock() cannot wait, also for a re-entry, nor what asks all nodes") {
  const Client client = start_client(three_nodes());
  const Admin admin(client);
  const Owner owner = Owner::create();
  RedLock lock = client.lock("loop", owner);
  lock.lock();
  std::promise<std::vector<Errc>> said;
  client.lock("elsewhere").async_acquire().start([&](const auto&) {
    said.set_value({code_thrown_by([&] { lock.lock(); }), admin.inspect("loop").error().code,
                    admin.examine().error().code});
  });
  CHECK(get_soon(said) == std::vector<Errc>(3, Errc::would_deadlock));
  CHECK(lock.hold_count() == 1);
}

/// Takes it on one thread, once more on another, and leaves it on two others.
FireAndForget hop(const Client& client, Owner owner, std::latch& done) {
  RedLock outer = client.lock("hopping", owner);
  CHECK((co_await outer.async_try_lock({.wait = forever})).has_value());
  co_await ToAnotherThread{};
  CHECK(outer.held_by_me());
  const std::uint64_t token = outer.token();
  {
    RedLock inner = client.lock("hopping", owner);
    const auto count = co_await inner.async_try_lock({.wait = forever});
    CHECK(count.value_or(0) >= 2);
    CHECK(inner.token() == token);
    co_await ToAnotherThread{};
    CHECK(must(co_await inner.async_release()) == Released::still_held);
  }
  co_await ToAnotherThread{};
  CHECK(must(co_await outer.async_release()) <= Released::still_held);
  done.count_down();
}

/// Leaves a scope with a level that its end gives back, while the call in it has not returned yet:
/// what cannot work is said before anything is waited for. How often it is held then.
FireAndForget leave_scope(const Client& client, const RedLock& outer, Owner owner,
                          std::promise<std::size_t>& count) {
  {
    RedLock inner = client.lock("scoped", owner);
    CHECK((co_await inner.async_try_lock({.wait = forever})).has_value());
    const auto refused = co_await inner.async_try_lock({.lease = -1s});
    CHECK(refused.error().code == Errc::invalid_argument);
  }
  count.set_value(outer.hold_count());
}

TEST_CASE("a RedLock that goes before a call in it returns gives back there and then") {
  const Client client = start_client(three_nodes());
  const Owner owner = Owner::create();
  RedLock outer = client.lock("scoped", owner);
  outer.lock();
  std::promise<std::size_t> count;
  leave_scope(client, outer, owner, count);
  CHECK(get_soon(count) == 1);
  outer.unlock();
}

TEST_CASE("many coroutines and a blocking thread of one owner: the count comes out") {
  const Client client = start_client(three_nodes());
  const Owner owner = Owner::create();
  std::latch done(20);
  for (int i = 0; i < 20; ++i) hop(client, owner, done);
  for (int i = 0; i < 10; ++i) {
    RedLock lock = client.lock("hopping", owner);
    const std::scoped_lock guard(lock);
    CHECK(lock.hold_count() > 0);
  }
  done.wait();
  CHECK(client.lock("hopping", owner).hold_count() == 0);
  CHECK(soon_free_everywhere(three_nodes(), "hopping"));
}

TEST_CASE("without an owner of its own, a form that does not block is refused") {
  const Client client = start_client(three_nodes());
  RedLock lock = client.lock("whose");
  const auto taken = get_soon(lock.async_try_lock());
  CHECK(code_of(taken) == Errc::invalid_argument);
  CHECK(contains(taken.error().message, "Owner::create()"));
  lock.lock();
  CHECK(code_of(get_soon(lock.async_release())) == Errc::invalid_argument);
  CHECK(lock.hold_count() == 1);
}

TEST_CASE("concurrent calls of one owner are queued, each for as long as it may wait") {
  const Client client = start_client(three_nodes());
  Lease taken = must(client.lock("line").acquire());
  RedLock lock = client.lock("line", Owner::create());
  std::stop_source stop_of_first;
  auto first = lock.async_try_lock({.wait = forever}, stop_of_first.get_token()).as_future();
  auto second = lock.async_try_lock({.wait = forever}).as_future();
  auto at_once = lock.async_try_lock().as_future();
  auto waits = lock.async_try_lock({.wait = 20ms}).as_future();
  auto has_deadline =
      lock.async_try_lock({.wait = forever, .deadline = BootClock::now() + 20ms}).as_future();
  std::stop_source stop;
  auto stopped = lock.async_try_lock({.wait = forever}, stop.get_token()).as_future();
  auto last = lock.async_try_lock({.wait = forever}).as_future();
  CHECK(code_of(get_soon(at_once)) == Errc::timed_out);
  CHECK(code_of(get_soon(waits)) == Errc::timed_out);
  CHECK(code_of(get_soon(has_deadline)) == Errc::timed_out);
  stop.request_stop();
  CHECK(code_of(get_soon(stopped)) == Errc::cancelled);
  stop_of_first.request_stop();  // the second one is then the first
  CHECK(code_of(get_soon(first)) == Errc::cancelled);
  CHECK(lock.hold_count() == 0);
  must(taken.release());
  CHECK(must(get_soon(second)) == 1);
  CHECK(must(get_soon(last)) == 2);
  CHECK(lock.hold_count() == 2);
}

TEST_CASE("a RedLock that goes before the answer holds nothing, and says so") {
  const Client client = start_client(three_nodes());
  const Owner owner = Owner::create();
  Lease taken = must(client.lock("gone").acquire());
  auto first = client.lock("gone", owner).async_try_lock({.wait = forever}).as_future();
  must(taken.release());
  CHECK(code_of(get_soon(first)) == Errc::cancelled);
  CHECK(soon_free_everywhere(three_nodes(), "gone"));

  // The same of a re-entry: the level that came too late is left.
  RedLock lock = client.lock("gone", owner);
  CHECK(must(get_soon(lock.async_try_lock({.wait = patience}))) == 1);
  // Asked for on the client's own thread, which takes no answer before the RedLock has gone.
  std::promise<std::future<Result<std::size_t>>> asked;
  client.lock("to be called back").async_acquire().start([&](const Result<Lease>&) {
    asked.set_value(client.lock("gone", owner).async_try_lock({.wait = forever}).as_future());
  });
  auto inner = get_soon(asked);
  CHECK(code_of(get_soon(inner)) == Errc::cancelled);
  CHECK(soon_counted(client, "gone", 1));
  CHECK(lock.hold_count() == 1);
}

TEST_CASE("destroying the client answers each call of an owner once, wherever it stands") {
  std::optional<Client> client(start_client(three_nodes()));
  const Lease held = must(client->lock("ends").acquire());
  const Owner owner = Owner::create();
  RedLock waiting = client->lock("ends", owner);
  RedLock entered = client->lock("ends too", owner);
  CHECK(must(get_soon(entered.async_try_lock({.wait = patience}))) == 1);
  std::atomic<int> answers{0};
  std::atomic<int> closed{0};
  const auto count = [&](const auto& result) {
    ++answers;
    if (!result && result.error().code == Errc::closed) ++closed;
  };
  for (int i = 0; i < 20; ++i) {
    waiting.async_try_lock({.wait = forever}).start(count);
    entered.async_try_lock({.wait = forever}).start(count);
    entered.async_release().start(count);
  }
  auto blocked =
      std::async(std::launch::async, [&] { return code_thrown_by([&] { waiting.lock(); }); });
  client.reset();
  CHECK(answers == 60);
  CHECK(get_soon(blocked) == Errc::closed);
  waiting.async_try_lock().start(count);
  waiting.async_release().start(count);
  CHECK(answers == 62);
  CHECK(closed >= 21);  // of those that stood in line for "ends", and what came afterwards
}

}  // namespace
}  // namespace redlock::testing
