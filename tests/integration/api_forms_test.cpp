// SPDX-License-Identifier: MIT
// Sets of 1 to 5 real nodes; what an Operation promises before, at and after its start; coroutines;
// and what holds in every form of an operation: with a callback, as std::future, awaited, continued
// where resume_on says, and awaited on a loop of the program's own.
#include "integration/api_coroutines.hpp"
#include "integration/api_program_loop.hpp"

namespace redlock::testing {
namespace {

TEST_CASE("a blocking acquire holds a quorum until the lease is released, on sets of 1 to 5") {
  for (std::size_t size = 1; size <= 5; ++size) {
    CAPTURE(size);
    const Fleet fleet({.nodes = size, .unix_sockets = true, .password = "sesame"});
    std::string socket = fleet.unix_uri(size / 2);
    socket.insert(std::string_view("unix://").size(), ":sesame@");
    const Client client =
        start_client(fleet, [&](ClientOptions& options) { options.nodes[size / 2] = socket; });
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

TEST_CASE("a release on the loop thread gives the lock back although it cannot wait for it") {
  const Client client = start_client(three_nodes());
  RedLock lock = client.lock("released inside");
  std::promise<Errc> answered;
  lock.async_acquire().start(
      [&](Result<Lease> lease) { answered.set_value(lease.value().release().error().code); });
  CHECK(get_soon(answered) == Errc::would_deadlock);
  CHECK(soon_free_everywhere(three_nodes(), "released inside"));
}

TEST_CASE("an operation is started by moving it, and once; one that never starts does nothing") {
  const Client client = start_client(three_nodes());
  RedLock lock = client.lock("once", Owner::create());
  { const auto never_started = lock.async_try_lock(); }
  CHECK(lock.hold_count() == 0);
  { const auto never_started = lock.async_acquire(); }
  auto operation = lock.async_acquire();
  auto* const moved_from = &operation;
  auto moved = std::move(operation);
  auto* const started = &moved;
  Lease lease = must(get_soon(std::move(moved)));
  for (auto* const empty : {moved_from, started}) {
    CHECK(code_of(get_soon(std::move(*empty))) == Errc::invalid_argument);
  }
  { const auto never_started = lease.async_release(); }
  CHECK(lease.valid());
  CHECK(must(lease.release()) == Released::released);
  lock.lock();
  { const auto never_started = lock.async_release(); }
  CHECK(lock.hold_count() == 1);
}

TEST_CASE("what is known at once is told on the thread that starts, before start returns") {
  std::optional<Client> client = start_client(three_nodes());
  RedLock lock = client->lock("at once", Owner::create());
  auto after_the_end = lock.async_acquire();
  auto take_after_the_end = lock.async_try_lock();
  std::vector<Errc> codes;
  const auto note = [&, here = std::this_thread::get_id()](const auto& result) {
    CHECK(std::this_thread::get_id() == here);
    codes.push_back(code_of(result));
  };
  lock.async_acquire({.lease = -1s}).start(note);
  lock.async_acquire({.deadline = BootClock::now()}).start(note);
  lock.async_release().start(note);
  Lease().async_release().start(note);
  client.reset();
  std::move(after_the_end).start(note);
  std::move(take_after_the_end).start(note);
  CHECK(codes == std::vector<Errc>{Errc::invalid_argument, Errc::timed_out, Errc::invalid_argument,
                                   Errc::lost, Errc::closed, Errc::closed});
}

/// Says when it goes, and on which thread.
std::shared_ptr<void> tells_when_gone(std::promise<std::thread::id>& gone) {
  return {nullptr, [&gone](void*) { gone.set_value(std::this_thread::get_id()); }};
}

TEST_CASE("a callback need not be copyable, and goes after its call, on the same thread") {
  const Client client = start_client(three_nodes());
  const auto acquire_with = [&](auto much) {
    std::promise<std::thread::id> called;
    std::promise<std::thread::id> gone;
    client.lock("owned")
        .async_acquire({.wait = patience})
        .start([&called, end = tells_when_gone(gone), owned = std::make_unique<int>(7),
                much](const Result<Lease>& lease) {
          CHECK(lease.has_value());
          CHECK(*owned + much.back() == 7);
          called.set_value(std::this_thread::get_id());
        });
    const auto here = get_soon(called);
    CHECK(get_soon(gone) == here);
  };
  acquire_with(std::array<char, 1>{});
  acquire_with(std::array<char, 1000>{});
}

TEST_CASE("a callback that is never called goes with its operation") {
  std::promise<std::thread::id> gone;
  {
    const Callback<Lease> callback = [end = tells_when_gone(gone)](const Result<Lease>&) {};
  }
  CHECK(get_soon(gone) == std::this_thread::get_id());

  int calls = 0;
  Callback<int> first = [&](const Result<int>& result) { calls += *result; };
  Callback<int> second = [](const Result<int>&) { FAIL("it was replaced"); };
  second = std::move(first);
  second(2);
  CHECK(calls == 2);
}

TEST_CASE("a lease may be moved or dropped before an operation of it starts") {
  const Client client = start_client(three_nodes());
  Lease lease = must(client.lock("moved").acquire());
  auto extend = lease.async_extend(40s);
  auto release = lease.async_release();
  auto late = lease.async_release();
  Lease moved = std::move(lease);
  const auto until = must(get_soon(std::move(extend)));
  CHECK(until <= moved.valid_until());  // more nodes may have answered
  auto releasing = std::move(release).as_future();
  CHECK_FALSE(moved);  // from the start of the release
  CHECK_FALSE(moved.valid());
  CHECK(moved.token() == 0);
  CHECK(must(get_soon(releasing)) == Released::released);
  CHECK(code_of(get_soon(std::move(late))) == Errc::lost);
  CHECK(code_of(moved.release()) == Errc::lost);

  Lease dropped = must(client.lock("moved").acquire());
  auto confirm = dropped.async_confirm();
  auto lost = dropped.async_lost();
  auto never_started = dropped.async_lost();
  dropped = Lease();
  CHECK(soon_free_everywhere(three_nodes(), "moved"));
  CHECK(code_of(get_soon(std::move(lost))) == Errc::lost);
  CHECK(code_of(get_soon(std::move(confirm))) == Errc::lost);
}

TEST_CASE("a RedLock may go before an operation of it starts") {
  const Client client = start_client(three_nodes());
  const Owner owner = Owner::create();
  std::optional<RedLock> lock = client.lock("gone", owner);
  auto acquire = lock->async_acquire();
  auto take = lock->async_try_lock();
  auto leave = lock->async_release();
  lock.reset();
  CHECK(must(get_soon(std::move(acquire))).valid());
  CHECK(code_of(get_soon(std::move(take))) == Errc::cancelled);
  RedLock other = client.lock("gone", owner);
  REQUIRE(other.try_lock_for(patience));
  CHECK(must(get_soon(std::move(leave))) == Released::released);
  CHECK(other.hold_count() == 0);
}

FireAndForget await_errors(RedLock& lock, int times, std::promise<int>& done) {
  int refused = 0;
  for (int i = 0; i < times; ++i) {
    if (!co_await lock.async_acquire({.lease = -1s})) ++refused;
  }
  done.set_value(refused);
}

TEST_CASE("a coroutine that awaits many errors in a loop does not use up its stack") {
  const Client client = start_client(three_nodes());
  RedLock lock = client.lock("loop");
  std::promise<int> done;
  await_errors(lock, 200'000, done);
  CHECK(get_soon(done) == 200'000);
}

TEST_CASE("awaiting races with the answer: the coroutine goes on once, and with its result") {
  const Client client = start_client(three_nodes());
  std::vector<std::promise<bool>> done(200);
  const auto work = [](const Client& of, int number, std::promise<bool>& told) -> FireAndForget {
    RedLock lock = of.lock("race " + std::to_string(number));
    Result<Lease> lease = co_await lock.async_acquire({.wait = patience});
    told.set_value(lease.has_value());
  };
  for (int i = 0; i < 200; ++i) work(client, i % 10, done[static_cast<std::size_t>(i)]);
  for (auto& held : done) CHECK(get_soon(held));
}

/// A form has a client, and brings operations to their ends. This one has a thread of its own.
struct OfItsOwn {
  Client client = start_client(three_nodes());

  static bool soon_free(const std::string& name) {
    return soon_free_everywhere(three_nodes(), name);
  }
};

struct ByCallback : OfItsOwn {
  template <typename T>
  Result<T> result_of(Operation<T> operation) {
    std::promise<Result<T>> given;
    std::move(operation).start([&](Result<T> result) { given.set_value(std::move(result)); });
    return get_soon(given);
  }
};

struct ByFuture : OfItsOwn {
  template <typename T>
  Result<T> result_of(Operation<T> operation) {
    return get_soon(std::move(operation).as_future());
  }
};

template <typename T>
FireAndForget await_operation(Operation<T> operation, Callback<T> took) {
  took(co_await std::move(operation));
}

struct ByAwaiting : OfItsOwn {
  template <typename T>
  Result<T> result_of(Operation<T> operation) {
    std::promise<Result<T>> given;
    await_operation<T>(std::move(operation),
                       [&](Result<T> result) { given.set_value(std::move(result)); });
    return get_soon(given);
  }
};

/// Continued on the thread that asked, which runs what resume_on is given.
struct ByResuming : OfItsOwn {
  ByResuming() {
    client = start_client(three_nodes(), [this](ClientOptions& options) {
      options.resume_on = [this](Continuation it) { next->set_value(std::move(it)); };
    });
  }
  template <typename T>
  Result<T> result_of(Operation<T> operation) {
    next.emplace();
    std::optional<Result<T>> given;
    std::move(operation).start(note_in(given));
    if (!given) get_soon (*next)();  // without a client it goes on where it is
    return std::move(given.value());
  }

  std::optional<std::promise<Continuation>> next;
};

struct ByAwaitingOnLoop : ClientOnLoop {
  template <typename T>
  Result<T> result_of(Operation<T> operation) {
    std::optional<Result<T>> given;
    await_operation(std::move(operation), note_in(given));
    REQUIRE(loop.runs_until([&] { return given.has_value(); }));
    return std::move(*given);
  }
  /// What the last node is sent after the quorum has answered needs the loop.
  bool soon_free(const std::string& name) {
    return loop.runs_until([&] { return nodes_with_lock(three_nodes(), name) == 0; });
  }
};

#define REDLOCK_FORMS ByCallback, ByFuture, ByAwaiting, ByResuming, ByAwaitingOnLoop

/// On a quorum: nobody may run the loop any more, which the others would need.
bool soon_held(const std::string& name, std::uint64_t times) {
  return eventually([&] {
    const Client client = start_client(three_nodes());
    const auto state = must(Admin(client).inspect(name));
    return std::ranges::count_if(state.nodes, [&](const auto& node) {
             return (node.owners.empty() ? 0 : node.owners.front().count) == times;
           }) >= 2;
  });
}

TEST_CASE_TEMPLATE("a lock is acquired, extended, confirmed, handed on and released", Form,
                   REDLOCK_FORMS) {
  Form form;
  RedLock lock = form.client.lock("every form");
  CHECK(code_of(form.result_of(lock.async_acquire({.lease = -1s}))) == Errc::invalid_argument);
  Lease lease = must(form.result_of(lock.async_acquire({.wait = patience})));
  CHECK(lease.valid());
  CHECK(code_of(form.result_of(lock.async_acquire())) == Errc::contended);
  const auto deadline = BootClock::now() + 20ms;
  CHECK(code_of(form.result_of(lock.async_acquire({.wait = forever, .deadline = deadline}))) ==
        Errc::timed_out);
  std::stop_source stop;
  stop.request_stop();
  CHECK(code_of(form.result_of(lock.async_acquire({.wait = forever}, stop.get_token()))) ==
        Errc::cancelled);

  const auto first = lease.valid_until();
  const auto extended = must(form.result_of(lease.async_extend(40s)));
  CHECK(extended > first);
  const auto confirmed = must(form.result_of(lease.async_confirm()));
  CHECK(confirmed >= extended);
  CHECK(confirmed <= lease.valid_until());  // later if more nodes have confirmed since
  const Grant grant = lease.detach();
  CHECK(code_of(form.result_of(lease.async_confirm())) == Errc::lost);
  Lease attached = must(form.result_of(lock.async_attach(grant)));
  CHECK(attached.token() == grant.token);
  CHECK(must(form.result_of(attached.async_release())) == Released::released);
  CHECK(must(form.result_of(lock.async_release(grant))) == Released::already_gone);
  CHECK(form.soon_free("every form"));
}

TEST_CASE_TEMPLATE("levels of one owner share a lease, and must be left as often, also if lost",
                   Form, REDLOCK_FORMS) {
  Form form;
  const auto take = [&](RedLock& lock) {
    return form.result_of(lock.async_try_lock({.wait = patience}));
  };
  const auto give = [&](RedLock& lock) { return form.result_of(lock.async_release()); };
  const Owner owner = Owner::create();
  RedLock outer = form.client.lock("levels", owner);
  RedLock inner = form.client.lock("levels", owner);
  RedLock other = form.client.lock("levels", Owner::create());
  CHECK(must(take(outer)) == 1);
  const std::uint64_t token = outer.token();
  CHECK(must(take(inner)) == 2);
  CHECK(inner.token() == token);
  CHECK(inner.held_by_me());
  CHECK(soon_held("levels", 2));
  CHECK_FALSE(form.result_of(other.async_try_lock()).has_value());
  CHECK(code_of(give(other)) == Errc::invalid_argument);
  CHECK(other.hold_count() == 0);
  CHECK(must(give(inner)) == Released::still_held);
  CHECK(soon_held("levels", 1));
  CHECK(must(give(outer)) == Released::released);
  CHECK(outer.hold_count() == 0);
  CHECK(form.soon_free("levels"));
  CHECK(code_of(give(outer)) == Errc::invalid_argument);

  CHECK(must(take(outer)) == 1);
  CHECK(must(take(outer)) == 2);
  REQUIRE(soon_held("levels", 2));
  run_on_all(three_nodes(), {"DEL", "redlock:lock:{levels}"});
  for (int i = 0; i < 2; ++i) {
    const auto entered = take(outer);
    CHECK(code_of(entered) == Errc::lost);
    CHECK(contains(entered.error().message, "unlock()"));
  }
  CHECK(outer.lost().stop_requested());
  CHECK(outer.hold_count() == 2);
  CHECK_FALSE(outer.held_by_me());
  CHECK(must(give(outer)) == Released::already_gone);
  CHECK(must(give(outer)) == Released::already_gone);
  CHECK(must(take(outer)) == 1);
  CHECK(must(give(outer)) == Released::released);
}

}  // namespace
}  // namespace redlock::testing
