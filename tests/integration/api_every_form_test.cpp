// SPDX-License-Identifier: MIT
// What holds in every form of a call: blocking, with a callback, as std::future, awaited, continued
// where resume_on says, and awaited on a loop of the program's own.
#include "integration/api_coroutines.hpp"
#include "integration/api_program_loop.hpp"

namespace redlock::testing {
namespace {

/// On a thread of its own.
struct OfItsOwn {
  Client start() { return start_client(three_nodes()); }
  static bool soon_free(const std::string& name) {
    return soon_free_everywhere(three_nodes(), name);
  }
};

/// Calls that block.
struct Blocking : OfItsOwn {
  Client client = start();

  Result<Lease> acquire(RedLock& lock, AcquireOptions how = {}, std::stop_token stop = {}) {
    return lock.acquire(how, std::move(stop));
  }
  auto extend(Lease& lease, std::chrono::milliseconds by) { return lease.extend(by); }
  auto confirm(Lease& lease) { return lease.confirm(); }
  auto release(Lease& lease) { return lease.release(); }
  auto attach(RedLock& lock, const Grant& grant) { return lock.attach(grant); }
  auto release(RedLock& lock, const Grant& grant) { return lock.release(grant); }
  Result<std::size_t> take(RedLock& lock, AcquireOptions how = {.wait = patience}) {
    try {
      if (lock.try_lock_for(how.wait)) return lock.hold_count();
      CHECK(lock.last_error()->code != Errc::lost);  // which is thrown
    } catch (const std::system_error& error) {
      CHECK(error.code() == lock.last_error()->code);
    }
    return tl::unexpected(lock.last_error().value());
  }
  auto give(RedLock& lock) { return lock.release(); }
};

/// Operations, each brought to its end in some way, in which also the client is created.
template <typename Way>
struct Started : Way {
  Client client = Way::start();

  auto acquire(RedLock& lock, AcquireOptions how = {}, std::stop_token stop = {}) {
    return Way::result_of(lock.async_acquire(how, std::move(stop)));
  }
  auto extend(Lease& lease, std::chrono::milliseconds by) {
    return Way::result_of(lease.async_extend(by));
  }
  auto confirm(Lease& lease) { return Way::result_of(lease.async_confirm()); }
  auto release(Lease& lease) { return Way::result_of(lease.async_release()); }
  auto attach(RedLock& lock, const Grant& grant) {
    return Way::result_of(lock.async_attach(grant));
  }
  auto release(RedLock& lock, const Grant& grant) {
    return Way::result_of(lock.async_release(grant));
  }
  auto take(RedLock& lock, AcquireOptions how = {.wait = patience}) {
    return Way::result_of(lock.async_try_lock(how));
  }
  auto give(RedLock& lock) { return Way::result_of(lock.async_release()); }
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
FireAndForget await_operation(Operation<T> operation, std::function<void(Result<T>)> took) {
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
  Client start() {
    return start_client(three_nodes(), [this](ClientOptions& options) {
      options.resume_on = [this](Continuation continuation) {
        next->set_value(std::move(continuation));
      };
    });
  }
  template <typename T>
  Result<T> result_of(Operation<T> operation) {
    next.emplace();
    std::optional<Result<T>> given;
    std::move(operation).start([&, here = std::this_thread::get_id()](Result<T> result) {
      CHECK(std::this_thread::get_id() == here);
      given.emplace(std::move(result));
    });
    if (!given) get_soon (*next)();  // without a client it goes on where it is
    return std::move(given.value());
  }

  std::optional<std::promise<Continuation>> next;
};

struct ByAwaitingOnLoop {
  Client start() { return start_on(*loop); }
  template <typename T>
  Result<T> result_of(Operation<T> operation) {
    std::optional<Result<T>> given;
    await_operation<T>(std::move(operation),
                       [&, here = std::this_thread::get_id()](Result<T> result) {
                         CHECK(std::this_thread::get_id() == here);
                         given.emplace(std::move(result));
                       });
    REQUIRE(loop->runs_until([&] { return given.has_value(); }));
    return std::move(*given);
  }
  /// What the last node is sent after the quorum has answered needs the loop.
  bool soon_free(const std::string& name) {
    return loop->runs_until([&] { return nodes_with_lock(three_nodes(), name) == 0; });
  }

  std::unique_ptr<ProgramLoop> loop = std::make_unique<ProgramLoop>();
};

#define REDLOCK_FORMS                                                                         \
  Blocking, Started<ByCallback>, Started<ByFuture>, Started<ByAwaiting>, Started<ByResuming>, \
      Started<ByAwaitingOnLoop>

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
  CHECK(code_of(form.acquire(lock, {.lease = -1s})) == Errc::invalid_argument);
  Lease lease = must(form.acquire(lock, {.wait = patience}));
  CHECK(lease.valid());
  CHECK(code_of(form.acquire(lock)) == Errc::contended);
  const auto first = lease.valid_until();
  const auto extended = must(form.extend(lease, 40s));
  CHECK(extended > first);
  const auto confirmed = must(form.confirm(lease));
  CHECK(confirmed >= extended);
  CHECK(confirmed <= lease.valid_until());  // later if more nodes have confirmed since
  const Grant grant = lease.detach();
  CHECK(code_of(form.confirm(lease)) == Errc::lost);
  Lease attached = must(form.attach(lock, grant));
  CHECK(attached.token() == grant.token);
  CHECK(must(form.release(attached)) == Released::released);
  CHECK(must(form.release(lock, grant)) == Released::already_gone);
  CHECK(form.soon_free("every form"));
}

TEST_CASE_TEMPLATE("a wait ends with the lease of the holder, with a stop and with its deadline",
                   Form, REDLOCK_FORMS) {
  Form form;
  RedLock lock = form.client.lock("waited for");
  const Client other = start_client(three_nodes());
  Lease held = must(other.lock("waited for").acquire({.lease = 1s, .wait = patience}));
  const Grant gone = held.detach();
  Lease lease = must(form.acquire(lock, {.wait = forever}));
  CHECK(lease.token() > gone.token);
  must(form.release(lease));

  held = must(other.lock("waited for").acquire({.wait = patience}));
  const auto deadline = BootClock::now() + 20ms;
  CHECK(code_of(form.acquire(lock, {.wait = forever, .deadline = deadline})) == Errc::timed_out);
  std::stop_source stop;
  stop.request_stop();
  CHECK(code_of(form.acquire(lock, {.wait = forever}, stop.get_token())) == Errc::cancelled);
  CHECK(held.valid());
}

TEST_CASE_TEMPLATE("levels of one owner share a lease, and must be left as often", Form,
                   REDLOCK_FORMS) {
  Form form;
  const Owner owner = Owner::create();
  RedLock outer = form.client.lock("levels", owner);
  RedLock inner = form.client.lock("levels", owner);
  RedLock other = form.client.lock("levels", Owner::create());
  CHECK(must(form.take(outer)) == 1);
  const std::uint64_t token = outer.token();
  CHECK(must(form.take(inner)) == 2);
  CHECK(inner.token() == token);
  CHECK(inner.held_by_me());
  CHECK(soon_held("levels", 2));
  CHECK_FALSE(form.take(other, {}).has_value());
  CHECK(code_of(form.give(other)) == Errc::invalid_argument);
  CHECK(other.hold_count() == 0);
  CHECK(must(form.give(inner)) == Released::still_held);
  CHECK(soon_held("levels", 1));
  CHECK(must(form.give(outer)) == Released::released);
  CHECK(outer.hold_count() == 0);
  CHECK(form.soon_free("levels"));
  CHECK(code_of(form.give(outer)) == Errc::invalid_argument);
}

TEST_CASE_TEMPLATE("after a loss an owner is told so until all its levels are given back", Form,
                   REDLOCK_FORMS) {
  Form form;
  RedLock lock = form.client.lock("lost levels", Owner::create());
  CHECK(must(form.take(lock)) == 1);
  CHECK(must(form.take(lock)) == 2);
  REQUIRE(soon_held("lost levels", 2));
  for (std::size_t node = 0; node < 3; ++node) {
    three_nodes().run(node, {"DEL", "redlock:lock:{lost levels}"});
  }
  for (int i = 0; i < 2; ++i) {
    const auto entered = form.take(lock);
    CHECK(code_of(entered) == Errc::lost);
    CHECK(contains(entered.error().message, "unlock()"));
  }
  CHECK(lock.lost().stop_requested());
  CHECK(lock.hold_count() == 2);
  CHECK_FALSE(lock.held_by_me());
  CHECK(must(form.give(lock)) == Released::already_gone);
  CHECK(must(form.give(lock)) == Released::already_gone);
  CHECK(must(form.take(lock)) == 1);
  CHECK(must(form.give(lock)) == Released::released);
}

}  // namespace
}  // namespace redlock::testing
