// SPDX-License-Identifier: MIT
// An explicit owner that takes a lock again, by callback, future and coroutine: what the blocking
// form does, without a thread that waits, and well-defined when several calls are under way.
#include "integration/api_coroutines.hpp"
#include "integration/api_fixture.hpp"

namespace redlock::testing {
namespace {

const Fleet& owners_nodes() {
  static const Fleet fleet({.nodes = 3});
  return fleet;
}

bool soon_held(const Client& client, const std::string& name, std::uint64_t times) {
  return eventually([&] {
    for (const auto& node : must(Admin(client).inspect(name)).nodes) {
      const std::uint64_t count = node.owners.empty() ? 0 : node.owners.front().count;
      if (count != times) return false;
    }
    return true;
  });
}

std::size_t take(RedLock& lock, const AcquireOptions& options = {.wait = patience}) {
  auto future = lock.async_try_lock(options).as_future();
  return must(get_soon(future));
}

Result<Released> give(RedLock& lock) {
  auto future = lock.async_release().as_future();
  return get_soon(future);
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
  const Client client = start_client(owners_nodes());
  const Owner owner = Owner::create();
  RedLock outer = client.lock("scoped", owner);
  outer.lock();
  std::promise<std::size_t> count;
  auto held = count.get_future();
  leave_scope(client, outer, owner, count);
  CHECK(get_soon(held) == 1);
  outer.unlock();
}

TEST_CASE("many coroutines and a blocking thread of one owner: the count comes out") {
  const Client client = start_client(owners_nodes());
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
  CHECK(soon_free_everywhere(owners_nodes(), "hopping"));
}

TEST_CASE("without an owner of its own, a form that does not block is refused") {
  const Client client = start_client(owners_nodes());
  RedLock lock = client.lock("whose");
  auto taking = lock.async_try_lock().as_future();
  const auto taken = get_soon(taking);
  CHECK(code_of(taken) == Errc::invalid_argument);
  CHECK(taken.error().message.find("Owner::create()") != std::string::npos);
  lock.lock();
  CHECK(code_of(give(lock)) == Errc::invalid_argument);
  CHECK(lock.hold_count() == 1);
}

TEST_CASE("concurrent calls of one owner are queued, each for as long as it may wait") {
  const Client client = start_client(owners_nodes());
  Lease taken = must(client.lock("line").acquire());
  RedLock lock = client.lock("line", Owner::create());
  auto first = lock.async_try_lock({.wait = forever}).as_future();
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
  CHECK(lock.hold_count() == 0);
  must(taken.release());
  CHECK(must(get_soon(first)) == 1);
  CHECK(must(get_soon(last)) == 2);
  CHECK(lock.hold_count() == 2);
}

TEST_CASE("if the first of a line is cancelled, the next one takes the lock") {
  const Client client = start_client(owners_nodes());
  Lease taken = must(client.lock("next").acquire());
  RedLock lock = client.lock("next", Owner::create());
  std::stop_source stop;
  auto first = lock.async_try_lock({.wait = forever}, stop.get_token()).as_future();
  auto next = lock.async_try_lock({.wait = forever}).as_future();
  stop.request_stop();
  CHECK(code_of(get_soon(first)) == Errc::cancelled);
  must(taken.release());
  CHECK(must(get_soon(next)) == 1);
}

TEST_CASE("a re-entry that is given up while nodes hang leaves no level behind") {
  Fleet fleet({.nodes = 3});
  const Client client = start_client(fleet);
  RedLock lock = client.lock("given up", Owner::create());
  CHECK(take(lock) == 1);
  REQUIRE(soon_held(client, "given up", 1));
  fleet.pause(1);
  fleet.pause(2);
  std::stop_source stop;
  auto stopped = lock.async_try_lock({.wait = forever}, stop.get_token()).as_future();
  // Under way: the node that answers has been told of a second level.
  REQUIRE(eventually([&] {
    return fleet.run(0, {"HVALS", "redlock:lock:{given up}"}).find('2') != std::string::npos;
  }));
  stop.request_stop();
  CHECK(code_of(get_soon(stopped)) == Errc::cancelled);
  auto late =
      lock.async_try_lock({.wait = forever, .deadline = BootClock::now() + 20ms}).as_future();
  CHECK(code_of(get_soon(late)) == Errc::timed_out);
  fleet.resume(1);
  fleet.resume(2);
  CHECK(soon_held(client, "given up", 1));
  CHECK(lock.hold_count() == 1);
  CHECK(lock.held_by_me());
  CHECK(take(lock) == 2);
}

TEST_CASE("a RedLock that goes before the answer holds nothing, and says so") {
  const Client client = start_client(owners_nodes());
  const Owner owner = Owner::create();
  Lease taken = must(client.lock("gone").acquire());
  auto first = client.lock("gone", owner).async_try_lock({.wait = forever}).as_future();
  must(taken.release());
  CHECK(code_of(get_soon(first)) == Errc::cancelled);
  CHECK(soon_free_everywhere(owners_nodes(), "gone"));

  // The same of a re-entry: the level that came too late is left.
  RedLock lock = client.lock("gone", owner);
  CHECK(take(lock) == 1);
  // Asked for on the client's own thread, which takes no answer before the RedLock has gone.
  std::promise<std::future<Result<std::size_t>>> asked;
  client.lock("to be called back").async_acquire().start([&](const Result<Lease>&) {
    asked.set_value(client.lock("gone", owner).async_try_lock({.wait = forever}).as_future());
  });
  auto when_asked = asked.get_future();
  auto inner = get_soon(when_asked);
  CHECK(code_of(get_soon(inner)) == Errc::cancelled);
  CHECK(soon_held(client, "gone", 1));
  CHECK(lock.hold_count() == 1);
}

TEST_CASE("destroying the client answers each call of an owner once, wherever it stands") {
  std::optional<Client> client(start_client(owners_nodes()));
  const Lease held = must(client->lock("ends").acquire());
  const Owner owner = Owner::create();
  RedLock waiting = client->lock("ends", owner);
  RedLock entered = client->lock("ends too", owner);
  CHECK(take(entered) == 1);
  std::atomic<int> answers{0};
  std::atomic<int> closed{0};
  const auto count = [&](const auto& result) {
    ++answers;
    if (!result && result.error().code == Errc::closed) ++closed;
  };
  for (int i = 0; i < 20; ++i) {
    waiting.async_try_lock({.wait = forever}).start(count);
    entered.async_try_lock({.wait = forever}).start(count);
  }
  std::promise<Errc> blocked;
  std::jthread thread([&] {
    try {
      waiting.lock();
    } catch (const std::system_error& error) {
      blocked.set_value(static_cast<Errc>(error.code().value()));
    }
  });
  client.reset();
  CHECK(answers == 40);
  auto end = blocked.get_future();
  CHECK(get_soon(end) == Errc::closed);
  waiting.async_try_lock().start(count);
  waiting.async_release().start(count);
  CHECK(answers == 42);
  CHECK(closed >= 21);  // of those that stood in line for "ends", and what came afterwards
}

TEST_CASE("clients that go amid calls of their owners lose no answer") {
  for (int turn = 0; turn < 10; ++turn) {
    std::optional<Client> client(start_client(owners_nodes()));
    RedLock lock = client->lock("amid", Owner::create());
    std::atomic<int> answers{0};
    const auto count = [&](const auto&) { ++answers; };
    for (int i = 0; i < 30; ++i) {
      lock.async_try_lock({.wait = forever}).start(count);
      lock.async_release().start(count);
    }
    client.reset();
    CHECK(answers == 60);
  }
}

}  // namespace
}  // namespace redlock::testing
