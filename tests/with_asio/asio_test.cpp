// SPDX-License-Identifier: MIT
// <redlock/asio.hpp> on real nodes. Two programs are made of it, one with each kind of Asio, which
// CMakeLists.txt defines.

// First, so that it is seen to include what it needs.
#include <redlock/asio.hpp>

#if defined(REDLOCK_ASIO_BOOST)
#include <boost/asio.hpp>
#if defined(BOOST_ASIO_HAS_CO_AWAIT)
#define ASIO_KIND_AWAITS 1
#endif
#if REDLOCK_ASIO_CANCELS && ASIO_KIND_AWAITS
#include <boost/asio/experimental/awaitable_operators.hpp>
#endif
#if __has_include(<boost/asio/deferred.hpp>)
#define ASIO_KIND_DEFERS 1
#endif
#else
#include <asio.hpp>
#if defined(ASIO_HAS_CO_AWAIT)
#define ASIO_KIND_AWAITS 1
#endif
#if REDLOCK_ASIO_CANCELS && ASIO_KIND_AWAITS
#include <asio/experimental/awaitable_operators.hpp>
#endif
#if __has_include(<asio/deferred.hpp>)
#define ASIO_KIND_DEFERS 1
#endif
#endif

#include <exception>
#include <thread>

#include "integration/api_event_log.hpp"

namespace redlock::testing {
namespace {

#if defined(REDLOCK_ASIO_BOOST)
namespace net = ::boost::asio;
#else
namespace net = ::asio;
#endif

/// A seat that somebody has, and a lock that waits for it.
struct Taken {
  Client holder = start_client(three_nodes());
  Lease held = must(holder.lock("seat").acquire({.wait = patience}));
  std::shared_ptr<EventLog> log = std::make_shared<EventLog>();
  std::optional<Client> client = start_observed(three_nodes(), log);
  RedLock lock = client->lock("seat");
  net::io_context context;

  [[nodiscard]] bool somebody_waits() const { return log->soon_has("waiting seat "); }
  /// Whether nobody else has or gets it once its holder leaves it.
  [[nodiscard]] bool is_left_free() {
    must(held.release());
    return soon_free_everywhere(three_nodes(), "seat");
  }
};

/// For a handler: called on a thread of the context, once.
template <typename T>
auto note_in(net::io_context& context, std::optional<Result<T>>& noted) {
  return net::bind_executor(context.get_executor(), [&](Result<T> result) {
    CHECK(context.get_executor().running_in_this_thread());
    CHECK_FALSE(noted.has_value());
    noted.emplace(std::move(result));
  });
}

TEST_CASE("a handler without an executor is called on a thread that may block") {
  const Client client = start_client(three_nodes());
  RedLock lock = client.lock("no executor");
  std::promise<Result<Lease>> got;
  std::promise<Errc> inside;
  async_acquire(lock, [&](Result<Lease> lease) {
    inside.set_value(code_of(lock.acquire()));
    got.set_value(std::move(lease));
  });
  CHECK(get_soon(inside) == Errc::contended);
  CHECK(must(get_soon(got)).valid());
}

TEST_CASE("a client is closed, and what it held is free when the handler is called") {
  std::optional<Client> client = start_client(three_nodes());
  std::optional<Client> other = start_client(three_nodes());
  const Lease held = must(client->lock("closed").acquire({.wait = patience}));
  net::io_context context;
  std::optional<Result<CloseReport>> closed;
  std::optional<Result<CloseReport>> of_other;
  async_start(client->async_close(patience), note_in(context, closed));
  async_start(other->async_close(), note_in(context, of_other));
  client.reset();
  other.reset();
  context.run_for(2 * patience);
  CHECK(must(closed.value()).released == 1);
  CHECK(must(of_other.value()).released == 0);
  CHECK_FALSE(held.valid());
  CHECK(soon_free_everywhere(three_nodes(), "closed"));
}

/// What the handler of this operation is given, once the context has run until then.
template <typename T, typename Begin>
Result<T> result_of(net::io_context& context, const Begin& begin) {
  std::optional<Result<T>> result;
  begin(note_in(context, result));
  CHECK_FALSE(result.has_value());
  context.restart();
  context.run_for(patience);
  return std::move(result.value());
}

TEST_CASE("an io_context runs until the handlers of all operations were called") {
  const Client client = start_client(three_nodes());
  RedLock lock = client.lock("io_context", Owner::create());
  net::io_context context;
  Lease lease = must(result_of<Lease>(context, [&](auto handler) {
    async_acquire(lock, {.lease = 40s, .wait = patience}, handler);
  }));
  CHECK(must(result_of<BootClock::time_point>(context, [&](auto handler) {
          async_start(lease.async_extend(20s), handler);
        })) == lease.valid_until());
  const Grant grant = lease.detach();
  Lease again = must(
      result_of<Lease>(context, [&](auto handler) { async_attach(lock, grant, {}, handler); }));
  CHECK(must(result_of<Released>(context, [&](auto handler) {
          async_start(again.async_release(), handler);
        })) == Released::released);
  CHECK(must(result_of<std::size_t>(context, [&](auto handler) {
          async_try_lock(lock, {.wait = patience}, handler);
        })) == 1);
  lock.unlock();
}

TEST_CASE("what is known at once is posted as well") {
  std::optional<Client> client = start_client(three_nodes());
  RedLock lock = client->lock("at once");
  net::io_context context;
  CHECK(code_of(result_of<Lease>(context, [&](auto handler) {
          async_acquire(lock, {.lease = -1s}, handler);
        })) == Errc::invalid_argument);
  client.reset();
  CHECK(code_of(result_of<Lease>(context, [&](auto handler) { async_acquire(lock, handler); })) ==
        Errc::closed);
}

/// A handler with this executor is called once, by a thread of its own.
template <typename Executor>
void check_executor(RedLock& lock, const Executor& executor) {
  std::promise<Result<Lease>> got;
  async_acquire(
      lock, {.wait = patience},
      net::bind_executor(executor, [&, here = std::this_thread::get_id()](Result<Lease> lease) {
        CHECK(std::this_thread::get_id() != here);
        got.set_value(std::move(lease));
      }));
  CHECK(must(get_soon(got)).valid());
}

TEST_CASE("a handler's executor may be a pool, a strand, the system's, or any of these") {
  const Client client = start_client(three_nodes());
  RedLock lock = client.lock("executors");
  net::thread_pool pool(2);
  check_executor(lock, pool.get_executor());
  check_executor(lock, net::make_strand(pool.get_executor()));
  check_executor(lock, net::system_executor());
  check_executor(lock, net::any_io_executor(pool.get_executor()));
  // A pool is joined when the handlers of all operations were called.
  const auto strand = net::make_strand(pool.get_executor());
  int called = 0;  // which the strand alone guards
  for (int i = 0; i < 50; ++i) {
    async_acquire(lock, net::bind_executor(strand, [&](const Result<Lease>&) {
                    CHECK(strand.running_in_this_thread());
                    ++called;
                  }));
  }
  pool.join();
  CHECK(called == 50);
}

TEST_CASE("use_future has the result, and no exception") {
  const Client client = start_client(three_nodes());
  RedLock lock = client.lock("use_future");
  std::future<Result<Lease>> acquiring = async_acquire(lock, net::use_future);
  Lease lease = must(get_soon(acquiring));
  auto again = async_acquire(lock, net::use_future);
  CHECK(get_soon(again).error().votes.size() == 3);
  auto releasing = async_start(lease.async_release(), net::use_future);
  CHECK(must(get_soon(releasing)) == Released::released);
}

TEST_CASE("the caller's own stop_token ends it, before its start and after") {
  Taken taken;
  std::stop_source stop;
  auto waiting = async_acquire(taken.lock, {.wait = forever}, stop.get_token(), net::use_future);
  REQUIRE(taken.somebody_waits());
  stop.request_stop();
  CHECK(code_of(get_soon(waiting)) == Errc::cancelled);
  auto late = async_acquire(taken.lock, {.wait = forever}, stop.get_token(), net::use_future);
  CHECK(code_of(get_soon(late)) == Errc::cancelled);
  CHECK(taken.is_left_free());
}

TEST_CASE("a loss is awaited with any token, and the awaiting is ended by a stop_token") {
  const Client client = start_client(three_nodes());
  Lease lease = must(client.lock("awaited").acquire({.wait = patience}));
  std::stop_source stop;
  auto stopped = async_lost(lease, stop.get_token(), net::use_future);
  auto released = async_lost(lease, net::use_future);
  stop.request_stop();
  CHECK(code_of(get_soon(stopped)) == Errc::cancelled);
  must(lease.release());
  CHECK(code_of(get_soon(released)) == Errc::lost);
}

TEST_CASE("a context that ends destroys the handlers, and what they waited for is given up") {
  for (const bool in_strand : {false, true}) {
    Taken taken;
    auto context = std::make_unique<net::io_context>();
    const auto kept = std::make_shared<int>(7);
    const auto handler = [kept](const Result<Lease>&) { FAIL("its context has ended"); };
    const auto wait_on = [&](const auto& executor) {
      async_acquire(taken.lock, {.wait = forever}, net::bind_executor(executor, handler));
    };
    in_strand ? wait_on(net::make_strand(*context)) : wait_on(context->get_executor());
    REQUIRE(taken.somebody_waits());
    const auto before = kept.use_count();
    context.reset();
    CHECK(kept.use_count() < before);
    CHECK(taken.is_left_free());
  }
}

TEST_CASE("contexts and clients may end beside each other while results come") {
  for (int turn = 0; turn < 30; ++turn) {
    std::optional<Client> client = start_client(three_nodes());
    auto context = std::make_unique<net::io_context>();
    std::vector<RedLock> locks;
    for (int i = 0; i < 10; ++i) locks.push_back(client->lock("beside " + std::to_string(i)));
    for (RedLock& lock : locks) {
      async_acquire(lock, net::bind_executor(context->get_executor(), [](const Result<Lease>&) {}));
    }
    std::jthread running([&] { context->run_for(std::chrono::milliseconds(turn % 10)); });
    std::jthread ending([&] {
      if (turn % 2 == 0) client.reset();
    });
    running.join();
    context.reset();
  }
  for (int i = 0; i < 10; ++i) {
    CHECK(soon_free_everywhere(three_nodes(), "beside " + std::to_string(i)));
  }
}

#if ASIO_KIND_DEFERS
TEST_CASE("a deferred operation starts when it is called, and its RedLock may have gone by then") {
  const Client client = start_client(three_nodes());
  net::io_context context;
  std::optional<RedLock> lock = client.lock("deferred");
  auto operation = async_acquire(*lock, {.wait = patience}, net::deferred);
  lock.reset();
  context.run_for(patience);
  std::optional<Result<Lease>> granted;
  std::move(operation)(note_in(context, granted));
  context.restart();
  context.run_for(patience);
  CHECK(must(std::move(granted.value())).valid());
}
#endif

#if REDLOCK_ASIO_CANCELS
/// Waits for the seat, with this slot.
void wait_for_seat(Taken& taken, net::cancellation_slot slot, std::optional<Result<Lease>>& result,
                   std::stop_token stop = {}) {
  async_acquire(taken.lock, {.wait = forever}, std::move(stop),
                net::bind_cancellation_slot(slot, note_in(taken.context, result)));
  REQUIRE(taken.somebody_waits());
}

TEST_CASE("a slot ends it by each type of cancellation, and nothing is held") {
  for (const auto type : {net::cancellation_type::terminal, net::cancellation_type::partial,
                          net::cancellation_type::total}) {
    Taken taken;
    net::cancellation_signal signal;
    std::optional<Result<Lease>> result;
    wait_for_seat(taken, signal.slot(), result);
    signal.emit(type);
    taken.context.run_for(patience);
    CHECK(code_of(result.value()) == Errc::cancelled);
    CHECK(taken.held.valid());
    CHECK(taken.is_left_free());
  }
}

TEST_CASE("a slot and the caller's stop_token end it, whichever comes first") {
  Taken taken;
  net::cancellation_signal signal;
  std::stop_source stop;
  std::optional<Result<Lease>> result;
  wait_for_seat(taken, signal.slot(), result, stop.get_token());
  stop.request_stop();
  taken.context.run_for(patience);
  CHECK(code_of(result.value()) == Errc::cancelled);
  signal.emit(net::cancellation_type::total);
}

TEST_CASE("a cancellation that comes after the grant changes nothing") {
  const Client client = start_client(three_nodes());
  RedLock lock = client.lock("granted");
  net::io_context context;
  net::cancellation_signal signal;
  std::optional<Result<Lease>> result;
  async_acquire(lock, net::bind_cancellation_slot(signal.slot(), note_in(context, result)));
  context.run_for(patience);
  signal.emit(net::cancellation_type::total);
  const Lease lease = must(std::move(result.value()));
  CHECK(must(client.lock("another").acquire()).valid());  // the client was here since
  CHECK(lease.valid());
}

TEST_CASE("a signal may go while the operation is under way") {
  Taken taken;
  std::optional<Result<Lease>> result;
  {
    net::cancellation_signal signal;
    wait_for_seat(taken, signal.slot(), result);
  }
  must(taken.held.release());
  taken.context.run_for(patience);
  CHECK(must(std::move(result.value())).valid());
}

TEST_CASE("a cancellation at the moment of the grant: a lease or nothing, and nothing is left") {
  const Client client = start_client(three_nodes());
  RedLock lock = client.lock("moment");
  int granted = 0;
  int cancelled = 0;
  for (int turn = 0; turn < 200; ++turn) {
    net::io_context context;
    net::cancellation_signal signal;
    std::optional<Result<Lease>> result;
    async_acquire(lock, {.wait = patience},
                  net::bind_cancellation_slot(signal.slot(), note_in(context, result)));
    std::this_thread::sleep_for(std::chrono::microseconds(5 * turn));
    signal.emit(net::cancellation_type::total);
    context.run_for(patience);
    if (result.value()) {
      ++granted;
    } else {
      CHECK(code_of(result.value()) == Errc::cancelled);
      ++cancelled;
    }
  }
  CHECK(granted + cancelled == 200);
  CHECK(soon_free_everywhere(three_nodes(), "moment"));
}
#endif

#if ASIO_KIND_AWAITS
void rethrow(std::exception_ptr error) {
  if (error) std::rethrow_exception(error);
}

net::awaitable<void> work(RedLock& lock, std::vector<std::string>& steps) {
  Result<Lease> lease = co_await async_acquire(lock, {.wait = patience}, net::use_awaitable);
  steps.emplace_back(lease ? "acquired" : lease.error().message);
  const auto second = co_await async_acquire(lock, net::use_awaitable);
  steps.emplace_back(second ? "twice" : to_string(second.error().code));
  const auto until = co_await async_start(lease->async_extend(20s), net::use_awaitable);
  steps.emplace_back(until == lease->valid_until() ? "extended" : "not extended");
  const auto bad = co_await async_acquire(lock, {.lease = -1s}, net::use_awaitable);
  steps.emplace_back(bad ? "negative lease" : to_string(bad.error().code));
  const auto released = co_await async_start(lease->async_release(), net::use_awaitable);
  steps.emplace_back(released ? to_string(*released) : released.error().message);
}

TEST_CASE("a coroutine, from acquire over extend to release") {
  const Client client = start_client(three_nodes());
  RedLock lock = client.lock("awaitable");
  net::io_context context;
  std::vector<std::string> steps;
  net::co_spawn(context, work(lock, steps), rethrow);
  context.run_for(patience);
  CHECK(steps == std::vector<std::string>{"acquired", "contended", "extended", "invalid_argument",
                                          "released"});
}

net::awaitable<void> wait_for_ever(RedLock& lock, std::shared_ptr<int> kept) {
  static_cast<void>(co_await async_acquire(lock, {.wait = forever}, net::use_awaitable));
  CHECK(kept != nullptr);
  FAIL("its context has ended");
}

TEST_CASE("a context that ends destroys the coroutines that wait") {
  Taken taken;
  auto context = std::make_unique<net::io_context>();
  const auto kept = std::make_shared<int>(7);
  net::co_spawn(*context, wait_for_ever(taken.lock, kept), rethrow);
  context->poll();
  REQUIRE(taken.somebody_waits());
  context.reset();
  CHECK(kept.use_count() == 1);
  CHECK(taken.is_left_free());
}

#if REDLOCK_ASIO_CANCELS
net::awaitable<void> wait_at_most(RedLock& lock, std::chrono::milliseconds most,
                                  std::optional<std::size_t>& first) {
  using net::experimental::awaitable_operators::operator||;
  net::steady_timer timer(co_await net::this_coro::executor, most);
  const auto result = co_await (async_acquire(lock, {.wait = forever}, net::use_awaitable) ||
                                timer.async_wait(net::use_awaitable));
  first = result.index();
}

TEST_CASE("acquire || timer ends with the timer while somebody else has the lock, or with it") {
  Taken taken;
  std::optional<std::size_t> first;
  net::co_spawn(taken.context, wait_at_most(taken.lock, 300ms, first), rethrow);
  taken.context.run_for(patience);
  CHECK(first == 1);
  CHECK(taken.held.valid());
  CHECK(taken.is_left_free());
  net::co_spawn(taken.context, wait_at_most(taken.lock, patience, first), rethrow);
  taken.context.restart();
  taken.context.run_for(patience);
  CHECK(first == 0);
  CHECK(soon_free_everywhere(three_nodes(), "seat"));
}

/// Awaits the loss beside work that takes so long: which came first, and why it was lost.
net::awaitable<void> work_for(Lease& lease, std::chrono::milliseconds time,
                              std::optional<std::size_t>& first,
                              std::optional<LossReason>& reason) {
  using net::experimental::awaitable_operators::operator||;
  net::steady_timer timer(co_await net::this_coro::executor, time);
  auto result =
      co_await (timer.async_wait(net::use_awaitable) || async_lost(lease, net::use_awaitable));
  first = result.index();
  if (result.index() == 1) reason = must(std::get<1>(result));
}

TEST_CASE("work || lost ends with the loss, or with the work, and the lease stays") {
  const Client client = start_client(three_nodes());
  for (const bool is_lost : {true, false}) {
    Lease lease = must(client.lock("work").acquire(
        {.lease = is_lost ? 1s : 40s, .renewal = Renewal::never, .wait = patience}));
    net::io_context context;
    std::optional<std::size_t> first;
    std::optional<LossReason> reason;
    net::co_spawn(context, work_for(lease, is_lost ? 10 * patience : 1ms, first, reason), rethrow);
    context.run_for(patience);
    CHECK(first == (is_lost ? 1 : 0));
    CHECK(reason.has_value() == is_lost);
    CHECK(static_cast<bool>(lease));
  }
}
#endif
#endif

}  // namespace
}  // namespace redlock::testing
