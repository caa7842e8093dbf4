// SPDX-License-Identifier: MIT
// What holds in every form of an operation: with a callback, as std::future, awaited, continued
// where resume_on says, and awaited on a loop of the program's own.
#include "integration/api_coroutines.hpp"
#include "integration/api_program_loop.hpp"

namespace redlock::testing {
namespace {

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
  ByResuming() {
    client = start_client(three_nodes(), [this](ClientOptions& options) {
      options.resume_on = [this](Continuation it) { next->set_value(std::move(it)); };
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
  template <typename T>
  Result<T> result_of(Operation<T> operation) {
    std::optional<Result<T>> given;
    await_operation<T>(std::move(operation),
                       [&, here = std::this_thread::get_id()](Result<T> result) {
                         CHECK(std::this_thread::get_id() == here);
                         given.emplace(std::move(result));
                       });
    REQUIRE(loop.runs_until([&] { return given.has_value(); }));
    return std::move(*given);
  }
  /// What the last node is sent after the quorum has answered needs the loop.
  bool soon_free(const std::string& name) {
    return loop.runs_until([&] { return nodes_with_lock(three_nodes(), name) == 0; });
  }

  ProgramLoop loop;
  Client client = start_on(loop);
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
  for (std::size_t node = 0; node < 3; ++node) {
    three_nodes().run(node, {"DEL", "redlock:lock:{levels}"});
  }
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
