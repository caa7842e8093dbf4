// SPDX-License-Identifier: MIT
// A client on a loop of the program's own: no thread is added, everything happens on the thread
// that runs the loop, nothing blocks there, and the client leaves the loop as it found it.
#include "integration/api_coroutines.hpp"
#include "integration/api_program_loop.hpp"

namespace redlock::testing {
namespace {

std::set<std::string> threads_of_this_process() {
  std::set<std::string> ids;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    ids.insert(entry.path().filename());
  }
  return ids;
}

/// Counts, and notes what is called on another thread than the one that made it.
struct OneThreadObserver final : Observer {
  std::thread::id here = std::this_thread::get_id();
  int renewals = 0;
  int lost = 0;
  int closed = 0;
  int elsewhere = 0;

  void note(int& count) {
    if (std::this_thread::get_id() != here) ++elsewhere;
    ++count;
  }
  void on_renewal(std::string_view, bool ok, std::chrono::nanoseconds) override {
    if (ok) note(renewals);
  }
  void on_lost(std::string_view, std::uint64_t, LossReason) override { note(lost); }
  void on_closed(const CloseReport&) override { note(closed); }
};

TEST_CASE("a client on a given loop makes no thread, and a lease given back is not lost") {
  three_nodes();
  ProgramLoop loop;
  const auto before = threads_of_this_process();
  const Client client = start_on(loop);
  Lease lease = must(loop.result_of(client.lock("on a given loop").async_acquire()));
  const std::stop_token lost = lease.lost();
  for (const std::string& thread : threads_of_this_process()) CHECK(before.contains(thread));
  CHECK(must(loop.result_of(lease.async_release())) == Released::released);
  CHECK_FALSE(lost.stop_requested());
}

TEST_CASE("a lease is renewed by the loop, and the observer told of it there") {
  const auto observer = std::make_shared<OneThreadObserver>();
  ClientOptions options = options_for(three_nodes().uris());
  options.lease = 4s;
  options.observer = observer;
  {
    ProgramLoop loop;
    const Client client = start_on(loop, options);
    within_a_lease([&] {
      const int renewals = observer->renewals;
      const Lease lease = must(loop.result_of(client.lock("renewed").async_acquire({.wait = 30s})));
      const auto until = lease.valid_until();
      REQUIRE(loop.runs_until(
          [&] { return observer->renewals > renewals || lease.lost().stop_requested(); }));
      return lease.valid() && lease.valid_until() > until;
    });
  }
  CHECK(observer->closed == 1);
  CHECK(observer->elsewhere == 0);
}

TEST_CASE("two clients on one loop: who waits has the lock when the other gives it back") {
  ProgramLoop loop;
  const Client first = start_on(loop);
  const Client second = start_on(loop);
  Lease held = must(loop.result_of(first.lock("passed on").async_acquire()));
  std::optional<Result<Lease>> awaited;
  second.lock("passed on").async_acquire({.wait = forever}).start(note_in(awaited));
  REQUIRE(loop.runs_until([&] {
    return three_nodes().run(0, {"EXISTS", "redlock:line:{passed on}"}) != "0";
  }));
  CHECK_FALSE(awaited.has_value());
  held = Lease();
  REQUIRE(loop.runs_until([&] { return awaited.has_value(); }));
  CHECK(must(std::move(*awaited)).valid());
}

TEST_CASE_FIXTURE(
    ClientOnLoop,
    "while nobody runs the loop a lease ends by the clock, and the loss is told afterwards") {
  within_a_lease([&] {
    const Lease lease = must(
        loop.result_of(client.lock("stood still").async_acquire({.lease = 500ms, .wait = 30s})));
    std::thread::id told_on;
    const std::stop_callback on_lost(lease.lost(), [&] { told_on = std::this_thread::get_id(); });
    if (lease.lost().stop_requested()) return false;
    CHECK(eventually([&] { return !lease.valid(); }));
    std::jthread([&] { CHECK_FALSE(lease.valid()); }).join();
    CHECK_FALSE(lease.lost().stop_requested());
    REQUIRE(loop.runs_until([&] { return lease.lost().stop_requested(); }));
    CHECK(told_on == std::this_thread::get_id());
    CHECK(lease.loss_reason() == LossReason::expired);
    return true;
  });
}

TEST_CASE_FIXTURE(
    ClientOnLoop,
    "what blocks is refused on every thread; release and unlock give back all the same") {
  RedLock lock = client.lock("refused");
  const Admin admin(client);
  Lease lease = must(loop.result_of(client.lock("kept").async_acquire()));
  const auto try_all = [&] {
    const auto acquired = lock.acquire();
    CHECK(code_of(acquired) == Errc::would_deadlock);
    CHECK(contains(acquired.error().message, "async_"));
    // Client::Impl::perform refuses those of locks and leases, admin::NodeQuery those of Admin.
    for (const Errc code :
         {code_of(lease.extend(40s)), code_of(client.close()), code_thrown_by([&] { lock.lock(); }),
          code_thrown_by([&] { static_cast<void>(lock.try_lock()); }),
          code_of(admin.inspect("refused")), code_of(admin.examine())}) {
      CHECK(code == Errc::would_deadlock);
    }
  };
  try_all();
  std::thread(try_all).join();
  CHECK(lease.valid());
  CHECK(code_of(lease.release()) == Errc::would_deadlock);
  CHECK_FALSE(lease);
  CHECK(loop.runs_until([] { return nodes_with_lock(three_nodes(), "kept") == 0; }));

  RedLock owned = client.lock("unlocked", Owner::create());
  CHECK(must(loop.result_of(owned.async_try_lock())) == 1);
  owned.unlock();
  CHECK(loop.runs_until([] { return nodes_with_lock(three_nodes(), "unlocked") == 0; }));
}

TEST_CASE_FIXTURE(ClientOnLoop,
                  "operations are started on other threads and answered where the loop is run") {
  std::atomic<int> answers{0};
  std::atomic<int> elsewhere{0};
  constexpr int calls = 50;
  std::vector<std::jthread> threads;
  for (int number = 0; number < 4; ++number) {
    threads.emplace_back([&, number, runner = std::this_thread::get_id()] {
      RedLock lock = client.lock("from thread " + std::to_string(number));
      for (int i = 0; i < calls; ++i) {
        lock.async_acquire({.wait = patience}).start([&, runner](const Result<Lease>& lease) {
          if (std::this_thread::get_id() != runner || !lease) ++elsewhere;
          ++answers;
        });
      }
    });
  }
  auto future = client.lock("by a future").async_acquire().as_future();
  REQUIRE(loop.runs_until([&] { return answers == 4 * calls; }));
  CHECK(elsewhere == 0);
  REQUIRE(loop.runs_until([&] { return future.wait_for(0s) == std::future_status::ready; }));
  CHECK(future.get().has_value());
}

TEST_CASE("nodes that hang hold up nothing else on the loop") {
  Fleet fleet({.nodes = 3});
  ProgramLoop loop;
  ClientOptions options = options_for(fleet.uris());
  options.node_timeout = 1h;  // nobody waits for that here
  const Client client = start_on(loop, options);
  must(loop.result_of(client.lock("before").async_acquire()));
  fleet.pause(2);
  Lease by_two = must(loop.result_of(client.lock("by two").async_acquire()));
  CHECK(by_two.valid());
  fleet.pause(1);
  std::optional<Result<Lease>> late;
  client.lock("late").async_acquire().start(note_in(late));
  const int ticks = loop.ticks;
  REQUIRE(loop.runs_until([&] { return loop.ticks >= ticks + 40; }));
  CHECK_FALSE(late.has_value());
  fleet.resume(1);
  fleet.resume(2);
  REQUIRE(loop.runs_until([&] { return late.has_value(); }));
  CHECK(late->has_value());
}

TEST_CASE(
    "an idle client keeps the loop running, which may be stopped, and run by another thread") {
  ProgramLoop loop;
  const Client client = start_on(loop);
  CHECK(uv_run(&loop.uv, UV_RUN_NOWAIT) != 0);
  std::optional<Result<Lease>> result;
  client.lock("stopped").async_acquire().start([&](Result<Lease> lease) {
    result.emplace(std::move(lease));
    uv_stop(&loop.uv);
  });
  CHECK(uv_run(&loop.uv, UV_RUN_DEFAULT) != 0);
  REQUIRE(result.has_value());
  Lease lease = must(std::move(*result));
  for (int thread = 0; thread < 3; ++thread) {
    std::jthread([&] {
      CHECK(must(loop.result_of(lease.async_release())) == Released::released);
      lease = must(loop.result_of(client.lock("moved").async_acquire({.wait = patience})));
    }).join();
  }
}

TEST_CASE("after async_close the loop is as it was before the client, with leases held or not") {
  const auto observer = std::make_shared<OneThreadObserver>();
  ClientOptions options = options_for(three_nodes().uris());
  options.observer = observer;
  uv_loop_t uv{};
  REQUIRE(uv_loop_init(&uv) == 0);
  auto client = Client::create(options, &uv);
  REQUIRE(client.has_value());
  std::array<Lease, 2> leases;
  std::optional<Result<CloseReport>> report;
  std::optional<Errc> waiting;
  RedLock lock = client->lock("left 1");
  lock.async_acquire().start([&](Result<Lease> first) {
    leases[0] = std::move(first.value());
    client->lock("left 2").async_acquire().start([&](Result<Lease> second) {
      leases[1] = std::move(second.value());
      lock.async_acquire({.wait = forever}).start([&](const Result<Lease>& third) {
        waiting = third ? Errc{} : third.error().code;
      });
      client->async_close().start(note_in(report));
    });
  });
  CHECK(uv_run(&uv, UV_RUN_DEFAULT) == 0);  // returns by itself
  REQUIRE(report.has_value());
  CHECK(must(*report).released == 2);
  CHECK(waiting == Errc::closed);
  CHECK(observer->closed == 1);
  CHECK(observer->lost == 2);
  CHECK(observer->elsewhere == 0);
  CHECK(uv_loop_close(&uv) == 0);
  for (const Lease& lease : leases) {
    CHECK_FALSE(lease.valid());
    CHECK(lease.loss_reason() == LossReason::closed);
  }
  CHECK(soon_free_everywhere(three_nodes(), "left 1"));
  CHECK(soon_free_everywhere(three_nodes(), "left 2"));
  std::vector<Errc> late;
  lock.async_acquire().start([&](const auto& lease) { late.push_back(code_of(lease)); });
  client->async_close().start([&](const auto& again) { late.push_back(code_of(again)); });
  CHECK(late == std::vector<Errc>{Errc::closed, Errc::closed});
}

TEST_CASE_FIXTURE(
    ClientOnLoop,
    "what was started before async_close is done, and what is started after it is refused") {
  RedLock lock = client.lock("released before");
  RedLock detached = client.lock("detached before");
  Lease lease = must(loop.result_of(lock.async_acquire()));
  const Grant grant = must(loop.result_of(detached.async_acquire())).detach();
  const std::stop_token lost = lease.lost();
  std::optional<Result<Released>> released;
  std::optional<Result<Released>> by_grant;
  std::optional<Result<CloseReport>> report;
  std::optional<Errc> late;
  lease.async_release().start(note_in(released));
  detached.async_release(grant).start(note_in(by_grant));
  client.async_close().start(note_in(report));
  lock.async_acquire().start([&](const Result<Lease>& given) { late = code_of(given); });
  CHECK(late == Errc::closed);
  REQUIRE(loop.runs_until([&] { return report.has_value(); }));
  REQUIRE(released.has_value());
  REQUIRE(by_grant.has_value());
  CHECK(must(*released) == Released::released);
  CHECK(by_grant->has_value());
  CHECK(must(*report).released == 0);
  CHECK_FALSE(lost.stop_requested());
  CHECK(soon_free_everywhere(three_nodes(), "detached before"));
}

TEST_CASE("a client may be destroyed in a callback, beside the loop and on another thread") {
  for (const int where : {0, 1, 2}) {
    CAPTURE(where);
    ProgramLoop loop;
    std::optional<Client> client = start_on(loop);
    const std::string name = "destroyed " + std::to_string(where);
    RedLock lock = client->lock(name);
    std::optional<Result<Lease>> held;
    std::optional<Errc> later;
    const auto destroy = [&] {
      client.reset();
      lock.async_acquire().start([&](const Result<Lease>& other) { later = code_of(other); });
    };
    lock.async_acquire().start([&](Result<Lease> lease) {
      held.emplace(std::move(lease));
      if (where == 0) destroy();
    });
    REQUIRE(loop.runs_until([&] { return held.has_value(); }));
    const Lease lease = must(std::move(*held));
    if (where == 1) destroy();
    if (where == 2) std::jthread(destroy).join();
    CHECK(uv_run(&loop.uv, UV_RUN_DEFAULT) == 0);
    CHECK(later == Errc::closed);
    CHECK_FALSE(lease.valid());
    CHECK(lease.loss_reason() == LossReason::closed);
    CHECK(soon_free_everywhere(three_nodes(), name));
  }
}

TEST_CASE("a client that never reached a node, or was hardly made, leaves the loop as well") {
  const auto without_loop = Client::create(options_for({"redis://127.0.0.1:1"}), nullptr);
  CHECK(code_of(without_loop) == Errc::invalid_argument);
  CHECK(contains(without_loop.error().message, "null"));
  ProgramLoop loop;
  { const Client client = start_on(loop); }
  const Client client = start_on(loop, options_for({"redis://127.0.0.1:1", "redis://localhost:2"}));
  CHECK(code_of(loop.result_of(client.lock("nowhere").async_acquire())) == Errc::no_quorum);
}

TEST_CASE_FIXTURE(ClientOnLoop,
                  "the child of a fork that runs its copy of the loop takes no part") {
  Lease lease = must(loop.result_of(client.lock("forked loop").async_acquire()));
  CHECK(exit_code_of_child([&] {
          if (lease.valid()) return 1;
          if (uv_loop_fork(&loop.uv) != 0) return 2;
          return uv_run(&loop.uv, UV_RUN_DEFAULT) == 0 ? 0 : 3;
        }) == 0);
  CHECK(lease.valid());
  must(loop.result_of(lease.async_extend(40s)));
  CHECK(must(loop.result_of(lease.async_release())) == Released::released);
}

FireAndForget close_awaiting(Client& client, std::promise<CloseReport>& done) {
  RedLock lock = client.lock("closed by a coroutine");
  const Result<Lease> lease = co_await lock.async_acquire();
  done.set_value(must(co_await client.async_close()));
}

TEST_CASE("async_close tells what became of leases, also to a coroutine on the client's thread") {
  Client client = start_client(three_nodes());
  RedLock lock = client.lock("closed behind");
  const Lease lease = must(lock.acquire());
  CHECK(must(get_soon(client.async_close())).released == 1);
  CHECK_FALSE(lease.valid());
  CHECK(soon_free_everywhere(three_nodes(), "closed behind"));
  CHECK(code_of(lock.acquire()) == Errc::closed);
  CHECK(code_of(client.close()) == Errc::closed);
  CHECK(code_of(get_soon(client.async_close())) == Errc::closed);

  client = start_client(three_nodes());
  std::promise<CloseReport> done;
  close_awaiting(client, done);
  CHECK(get_soon(done).released == 1);
}

}  // namespace
}  // namespace redlock::testing
