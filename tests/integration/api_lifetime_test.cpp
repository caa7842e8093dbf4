// SPDX-License-Identifier: MIT
// Ends: clients, leases and locks that go in any order, with work under way, in callbacks and in
// the children of a fork. Nothing hangs, every callback is called once.
#include "integration/api_fixture.hpp"
#include "support/stub_server.hpp"

namespace redlock::testing {
namespace {

/// How often each code was the answer.
struct Answers {
  std::atomic<int> all{0};
  std::atomic<int> closed{0};
  std::atomic<int> good{0};

  void operator()(const auto& result) {
    ++all;
    if (result) ++good;
    if (!result && result.error().code == Errc::closed) ++closed;
  }
};

TEST_CASE("destroying a client right after many submissions loses no callback and no lock") {
  for (int turn = 0; turn < 10; ++turn) {
    std::optional<Client> client = start_client(three_nodes());
    Answers answers;
    for (int i = 0; i < 100; ++i) {
      client->lock("many " + std::to_string(i)).async_acquire().start(std::ref(answers));
    }
    client.reset();
    CHECK(answers.all == 100);
    CHECK(answers.good + answers.closed == 100);
  }
  CHECK(eventually([] {
    return three_nodes().run(0, {"KEYS", "redlock:[lw]*:{many *"}) == "(empty array)";
  }));
}

TEST_CASE("what a client's leases hold is released when it goes, and they answer closed") {
  std::optional<Client> client = start_client(three_nodes());
  RedLock lock = client->lock("outlived");
  Lease lease = lock_everywhere(*client, three_nodes(), "outlived");
  client.reset();
  CHECK(nodes_with_lock(three_nodes(), "outlived") == 0);  // confirmed before the client was gone
  CHECK(lease.lost().stop_requested());
  CHECK_FALSE(lease.valid());

  CHECK(code_of(lease.extend(5s)) == Errc::closed);
  CHECK(code_of(lease.release()) == Errc::closed);
  CHECK_FALSE(lease);
  CHECK(code_of(lock.acquire()) == Errc::closed);
  CHECK(code_of(get_soon(lock.async_acquire())) == Errc::closed);
  Answers answers;
  lock.async_acquire().start(std::ref(answers));
  CHECK(answers.closed == 1);
}

TEST_CASE("a client whose nodes hang is gone after one node timeout, with every callback called") {
  Fleet fleet({.nodes = 3});
  std::optional<Client> client =
      start_client(fleet, [](ClientOptions& options) { options.node_timeout = 500ms; });
  const Lease held = must(client->lock("held").acquire({.wait = 30s}));
  Lease to_release = must(client->lock("to release").acquire({.wait = 30s}));
  Lease to_extend = must(client->lock("to extend").acquire({.wait = 30s}));
  pause_all(fleet);
  Answers answers;
  client->lock("x").async_acquire().start(std::ref(answers));
  to_release.async_release().start(std::ref(answers));
  to_extend.async_extend(20s).start(std::ref(answers));
  client.reset();
  CHECK(answers.all == 3);
}

TEST_CASE("a client may be destroyed, but not closed, by one of its own callbacks") {
  const auto still_there = std::make_shared<Observer>();
  auto client = std::make_shared<std::optional<Client>>(start_observed(three_nodes(), still_there));
  RedLock lock = (*client)->lock("last");
  std::promise<void> done;
  Answers others;
  lock.async_acquire().start([&, client](Result<Lease> lease) {
    CHECK(lease.has_value());
    CHECK(code_of((*client)->close()) == Errc::would_deadlock);
    lock.async_acquire({.wait = forever}).start(std::ref(others));
    client->reset();
    lock.async_acquire().start(std::ref(others));
    done.set_value();
  });
  get_soon(done);
  CHECK(eventually([&] { return others.all == 2; }));
  CHECK(others.good == 0);
  CHECK(soon_free_everywhere(three_nodes(), "last"));
  // The loop has ended when nobody but us knows the observer any more.
  client.reset();
  lock = start_client(three_nodes()).lock("another");
  CHECK(eventually([&] { return still_there.use_count() == 1; }));
}

TEST_CASE("a client may be destroyed by a callback of another client, and by assigning one") {
  const StubServer silent = StubServer::silent();
  std::optional<Client> first = start_client(three_nodes());
  Client second = start_client(three_nodes());
  std::promise<void> done;
  second.lock("cross").async_acquire().start([&](const auto&) {
    first.reset();
    done.set_value();
  });
  get_soon(done);

  RedLock old = second.lock("old");
  second = start_client(three_nodes());
  CHECK(code_of(old.acquire()) == Errc::closed);
  CHECK(must(second.lock("new").acquire()).valid());
  // One that never reached a node goes as well.
  second = start_client(options_for({silent.uri(), "redis://127.0.0.1:1"}));
}

TEST_CASE("leases dropped by other threads while their client goes are no problem") {
  for (int turn = 0; turn < 20; ++turn) {
    std::optional<Client> client = start_client(three_nodes());
    std::vector<Lease> leases;
    for (int i = 0; i < 8; ++i) {
      leases.push_back(must(client->lock("dropped " + std::to_string(i)).acquire()));
    }
    std::jthread dropping([mine = std::move(leases)]() mutable {
      for (Lease& lease : mine) {
        static_cast<void>(lease.extend(5s));
        lease = Lease();
      }
    });
    client.reset();
  }
}

TEST_CASE("leases and locks may go while something is asked of them") {
  const Client client = start_client(three_nodes());
  Answers extended;
  Answers acquired;
  for (int i = 0; i < 50; ++i) {
    Lease lease = must(client.lock("going").acquire({.wait = 30s}));
    lease.async_extend(20s).start(std::ref(extended));
    lease = Lease();
    RedLock lock = client.lock("going too");
    lock.async_acquire({.wait = 30s}).start(std::ref(acquired));
  }
  CHECK(eventually([&] { return extended.all == 50 && acquired.all == 50; }));
  CHECK(acquired.good == 50);
  CHECK(soon_free_everywhere(three_nodes(), "going"));
  CHECK(soon_free_everywhere(three_nodes(), "going too"));
}

/// What a child of fork, made in the middle of everything, finds; the exit code says how far.
int in_the_child(Client& client, RedLock& lock, Lease& lease, RedLock& held,
                 std::optional<Examinations>& examinations) {
  if (lease.valid() || lease.remaining() > 0s) return 1;
  if (!lease.lost().stop_requested()) return 11;
  const auto acquired = lock.acquire();
  if (acquired || acquired.error().code != Errc::closed) return 2;
  if (!contains(acquired.error().message, "fork")) return 3;
  if (lock.async_acquire().as_future().get().error().code != Errc::closed) return 4;
  if (lease.extend(5s).error().code != Errc::closed) return 5;
  if (Admin(client).examine().error().code != Errc::closed) return 9;
  if (examinations->next().error().code != Errc::closed) return 12;
  if (Examinations(client).next().error().code != Errc::closed) return 13;
  if (lease.async_lost().as_future().get().error().code != Errc::closed) return 14;
  examinations.reset();
  held.unlock();
  if (held.token() != 0) return 6;
  if (code_thrown_by([&] { held.lock(); }) != Errc::closed) return 7;
  { const Lease dropped = std::move(lease); }
  { const RedLock dropped = std::move(held); }
  { const Client dropped = std::move(client); }
  return 0;
}

TEST_CASE("the child of a fork holds nothing, is told so, and harms nothing") {
  Client client = start_client(three_nodes());
  RedLock lock = client.lock("forked");
  RedLock held = client.lock("held by lock()");
  Lease lease = must(lock.acquire());
  held.lock();
  std::stop_source stop;
  std::atomic<int> results{0};
  lease.async_lost(stop.get_token()).start([&](const auto&) { ++results; });
  std::optional<Examinations> examinations(std::in_place, client);
  must(examinations->next());
  CHECK(exit_code_of_child([&] {
          const int found = in_the_child(client, lock, lease, held, examinations);
          stop.request_stop();
          return results == 0 ? found : 15;
        }) == 0);

  CHECK(results == 0);
  stop.request_stop();
  CHECK(eventually([&] { return results == 1; }));
  CHECK(lease.valid());
  must(examinations->next());
  must(lease.extend(40s));
  held.unlock();
  CHECK(must(lease.release()) == Released::released);
}

TEST_CASE("a client may go while its timer is due") {
  for (int turn = 0; turn < 800; ++turn) {
    ClientOptions options = options_for({"redis://127.0.0.1:1"});
    options.retry_min = options.retry_max = options.retry_cap = 1ms;
    std::optional<Client> client(start_client(options));
    RedLock lock = client->lock("x", Owner::create());
    std::atomic<int> answers{0};
    for (int i = 0; i < 2; ++i) {
      lock.async_try_lock({.wait = 1h}).start([&](const auto&) { ++answers; });
    }
    std::this_thread::sleep_for(std::chrono::microseconds(500 + turn % 1000));
    client.reset();
    CHECK(answers == 2);
  }
}

}  // namespace
}  // namespace redlock::testing
