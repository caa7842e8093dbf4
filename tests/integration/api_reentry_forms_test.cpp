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

TEST_CASE("futures of one owner enter the same lease, and must leave it as often") {
  const Client client = start_client(owners_nodes());
  const Owner owner = Owner::create();
  RedLock outer = client.lock("futures", owner);
  RedLock inner = client.lock("futures", owner);
  CHECK(take(outer) == 1);
  const std::uint64_t token = outer.token();
  CHECK(token > 0);
  CHECK(take(inner) == 2);
  CHECK(take(inner, {.lease = 500ms}) == 3);
  CHECK(inner.token() == token);
  CHECK(inner.held_by_me());
  CHECK(soon_held(client, "futures", 3));
  const auto left = must(Admin(client).inspect("futures")).nodes.front().remaining;
  REQUIRE(left.has_value());
  CHECK(*left > 500ms);  // the outer lease is as it was
  CHECK(must(give(inner)) == Released::still_held);
  CHECK(soon_held(client, "futures", 2));
  CHECK(must(give(outer)) == Released::still_held);
  CHECK(must(give(outer)) == Released::released);
  CHECK(outer.hold_count() == 0);
  CHECK(soon_free_everywhere(owners_nodes(), "futures"));
}

TEST_CASE("callbacks of one owner run on the client's thread, and may go on from there") {
  const Client client = start_client(owners_nodes());
  RedLock lock = client.lock("callbacks", Owner::create());
  std::promise<std::vector<std::size_t>> done;
  std::vector<std::size_t> counts;
  std::thread::id first;
  lock.async_try_lock({.wait = patience}).start([&](const Result<std::size_t>& count) {
    counts.push_back(must(count));
    first = std::this_thread::get_id();
    lock.async_try_lock().start([&](const Result<std::size_t>& again) {
      CHECK(std::this_thread::get_id() == first);
      counts.push_back(must(again));
      lock.async_release().start([&](const Result<Released>& inner) {
        CHECK(std::this_thread::get_id() == first);
        CHECK(inner == Released::still_held);
        counts.push_back(lock.hold_count());
        lock.async_release().start([&](const Result<Released>& last) {
          CHECK(last == Released::released);
          counts.push_back(lock.hold_count());
          done.set_value(counts);
        });
      });
    });
  });
  auto future = done.get_future();
  CHECK(get_soon(future) == std::vector<std::size_t>{1, 2, 1, 0});
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

TEST_CASE("a coroutine that changes threads keeps what its owner holds") {
  const Client client = start_client(owners_nodes());
  const Owner owner = Owner::create();
  std::latch done(1);
  hop(client, owner, done);
  done.wait();
  CHECK(client.lock("hopping", owner).hold_count() == 0);
  CHECK(soon_free_everywhere(owners_nodes(), "hopping"));
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

TEST_CASE("giving back what an owner does not hold is an error, and harms nobody") {
  const Client client = start_client(owners_nodes());
  RedLock holder = client.lock("others", Owner::create());
  RedLock other = client.lock("others", Owner::create());
  CHECK(take(holder) == 1);
  CHECK(code_of(give(other)) == Errc::invalid_argument);
  auto refused = other.async_try_lock().as_future();
  CHECK(code_of(get_soon(refused)) == Errc::contended);
  CHECK(other.hold_count() == 0);
  CHECK(holder.held_by_me());
  CHECK(must(give(holder)) == Released::released);
  CHECK(code_of(give(holder)) == Errc::invalid_argument);
}

TEST_CASE("re-entry by future after loss says so until all is given back") {
  const Client client = start_client(owners_nodes());
  RedLock lock = client.lock("lost by owner", Owner::create());
  CHECK(take(lock) == 1);
  CHECK(take(lock) == 2);
  REQUIRE(soon_held(client, "lost by owner", 2));
  for (std::size_t node = 0; node < 3; ++node) {
    owners_nodes().run(node, {"DEL", "redlock:lock:{lost by owner}"});
  }
  for (int i = 0; i < 2; ++i) {
    auto entering = lock.async_try_lock({.wait = patience}).as_future();
    const auto entered = get_soon(entering);
    CHECK(code_of(entered) == Errc::lost);
    CHECK(entered.error().message.find("unlock()") != std::string::npos);
  }
  CHECK(lock.hold_count() == 2);
  CHECK_FALSE(lock.held_by_me());
  CHECK(must(give(lock)) == Released::already_gone);
  CHECK(must(give(lock)) == Released::already_gone);
  CHECK(take(lock) == 1);
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

TEST_CASE("a re-entry tries again, as long as it may wait, until a quorum is back") {
  Fleet fleet({.nodes = 3, .persistence = cluster::Persistence::always});
  ClientOptions options = options_for(fleet.uris());
  options.lease = 60s;
  const Client client = start_client(options);
  RedLock lock = client.lock("back", Owner::create());
  CHECK(take(lock) == 1);
  REQUIRE(eventually([&] { return nodes_with_lock(fleet, "back") == 3; }));
  fleet.kill(1);
  fleet.kill(2);
  auto once = lock.async_try_lock().as_future();
  CHECK(code_of(get_soon(once)) == Errc::no_quorum);
  CHECK(lock.hold_count() == 1);
  auto keen = lock.async_try_lock({.wait = forever}).as_future();
  fleet.restart(1);
  CHECK(must(get_soon(keen)) == 2);
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
