// SPDX-License-Identifier: MIT
// ClientOptions::resume_on: what continues there, what does not, and what becomes of what it drops.
#include <deque>

#include "integration/api_coroutines.hpp"
#include "integration/api_fixture.hpp"

namespace redlock::testing {
namespace {

/// A run queue, as an event loop has one: what is pushed on any thread is run by the test's own.
class RunQueue {
 public:
  void push(Continuation continuation) {
    const std::scoped_lock lock(mutex_);
    waiting_.push_back(std::move(continuation));
    ++pushed_;
    pushed_one_.notify_all();
  }
  /// The next one; the test fails if none comes.
  Continuation pop() {
    std::unique_lock lock(mutex_);
    REQUIRE(pushed_one_.wait_for(lock, patience, [&] { return !waiting_.empty(); }));
    Continuation first = std::move(waiting_.front());
    waiting_.pop_front();
    return first;
  }
  void run_one() { pop()(); }
  [[nodiscard]] int pushed() const {
    const std::scoped_lock lock(mutex_);
    return pushed_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable pushed_one_;
  std::deque<Continuation> waiting_;
  int pushed_ = 0;
};

struct Program {
  RunQueue queue;
  std::optional<Client> client = start_client(three_nodes(), [this](ClientOptions& options) {
    options.resume_on = [this](Continuation it) { queue.push(std::move(it)); };
  });

  /// What the operation's callback is given when it is run here.
  template <typename T>
  Result<T> result_of(Operation<T> operation) {
    std::optional<Result<T>> result;
    std::move(operation).start(note_in(result));
    CHECK_FALSE(result.has_value());
    queue.run_one();
    return std::move(result.value());
  }
};

TEST_CASE_FIXTURE(Program, "a callback is called where resume_on has it called, and may block") {
  RedLock lock = client->lock("callback");
  std::optional<Result<Lease>> granted;
  lock.async_acquire({.renewal = Renewal::never}).start(note_in(granted));
  Continuation first = queue.pop();
  CHECK_FALSE(granted.has_value());
  first();
  first();  // nothing is left of it
  Lease lease = must(std::move(granted.value()));

  CHECK(must(result_of(lease.async_extend(20s))) == lease.valid_until());
  std::optional<Errc> second;
  lease.async_confirm().start([&](const auto&) { second = code_of(lock.acquire()); });
  queue.run_one();
  CHECK(second == Errc::contended);  // and not would_deadlock
  CHECK(must(result_of(lease.async_release())) == Released::released);
  CHECK(queue.pushed() == 4);  // blocking calls are none
}

TEST_CASE_FIXTURE(Program, "a future is completed by it") {
  auto acquiring = client->lock("future").async_acquire().as_future();
  Continuation completion = queue.pop();
  CHECK(acquiring.wait_for(0s) == std::future_status::timeout);
  completion();
  CHECK(must(get_soon(acquiring)).valid());
}

FireAndForget use(RedLock& lock, std::vector<std::thread::id>& threads, bool& done) {
  const auto lease = co_await lock.async_acquire();
  CHECK(lease.has_value());
  threads.push_back(std::this_thread::get_id());
  CHECK(code_of(co_await lock.async_acquire({.lease = -1s})) == Errc::invalid_argument);
  threads.push_back(std::this_thread::get_id());
  done = true;
}

TEST_CASE_FIXTURE(Program, "a coroutine goes on there, also with what is known at once") {
  RedLock lock = client->lock("coroutine");
  std::vector<std::thread::id> threads;
  bool done = false;
  use(lock, threads, done);
  CHECK(threads.empty());
  std::vector<std::thread::id> runners;
  for (int i = 0; i < 2; ++i) {
    std::thread runner([this] { queue.run_one(); });
    runners.push_back(runner.get_id());
    runner.join();
  }
  CHECK(done);
  CHECK(threads == runners);
  CHECK(queue.pushed() == 2);
}

TEST_CASE_FIXTURE(Program, "what is known at once is not told before it is run") {
  RedLock lock = client->lock("at once");
  auto after_the_end = lock.async_acquire();
  CHECK(code_of(result_of(lock.async_acquire({.lease = -1s}))) == Errc::invalid_argument);
  CHECK(code_of(result_of(lock.async_acquire({.deadline = BootClock::now()}))) == Errc::timed_out);
  CHECK(code_of(result_of(lock.async_try_lock())) == Errc::invalid_argument);
  CHECK(code_of(result_of(lock.async_release())) == Errc::invalid_argument);
  CHECK(must(result_of(client->async_close())).released == 0);
  CHECK(code_of(result_of(client->async_close())) == Errc::closed);
  client.reset();
  CHECK(code_of(result_of(std::move(after_the_end))) == Errc::closed);
  CHECK(code_of(result_of(lock.async_acquire())) == Errc::closed);
  CHECK(queue.pushed() == 8);
}

TEST_CASE_FIXTURE(Program, "what has no client goes on where it is") {
  auto operation = client->lock("moved from").async_acquire();
  const auto moved = std::move(operation);
  std::optional<Result<Lease>> acquired;
  std::move(operation).start(note_in(acquired));
  CHECK(code_of(acquired.value()) == Errc::invalid_argument);
  std::optional<Result<Released>> released;
  Lease().async_release().start(note_in(released));
  CHECK(code_of(released.value()) == Errc::lost);
  CHECK(queue.pushed() == 0);
}

TEST_CASE_FIXTURE(Program, "when a client has gone all was given to it, once each") {
  const Client holder = start_client(three_nodes());
  const Lease held = must(holder.lock("seat").acquire());
  int closed = 0;
  for (int i = 0; i < 50; ++i) {
    client->lock("seat").async_acquire({.wait = forever}).start([&](const auto& result) {
      closed += code_of(result) == Errc::closed ? 1 : 0;
    });
  }
  client.reset();
  CHECK(closed == 0);
  REQUIRE(queue.pushed() == 50);
  for (int i = 0; i < 50; ++i) queue.run_one();
  CHECK(closed == 50);
}

TEST_CASE("an executor that calls at once calls on the client's thread") {
  const Client client = start_client(three_nodes(), [](ClientOptions& options) {
    options.resume_on = [](Continuation continuation) { continuation(); };
  });
  RedLock lock = client.lock("inline");
  std::promise<Errc> inside;
  lock.async_acquire().start([&](const auto&) { inside.set_value(code_of(lock.acquire())); });
  CHECK(get_soon(inside) == Errc::would_deadlock);
}

/// A coroutine that belongs to this object.
class OwnedCoroutine {
 public:
  struct promise_type {
    OwnedCoroutine get_return_object() {
      return OwnedCoroutine(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
  OwnedCoroutine(OwnedCoroutine&& other) noexcept
      : coroutine_(std::exchange(other.coroutine_, nullptr)) {}
  OwnedCoroutine& operator=(OwnedCoroutine&&) = delete;
  ~OwnedCoroutine() {
    if (coroutine_) coroutine_.destroy();
  }

 private:
  explicit OwnedCoroutine(std::coroutine_handle<promise_type> of) : coroutine_(of) {}
  std::coroutine_handle<promise_type> coroutine_;
};

OwnedCoroutine hold(RedLock& lock, std::shared_ptr<int> kept) {
  const auto lease = co_await lock.async_acquire();
  FAIL("it was dropped");
  CHECK(kept != nullptr);
}

TEST_CASE_FIXTURE(Program, "what it drops takes the result with it and continues nowhere") {
  RedLock lock = client->lock("dropped");
  const auto drop_one = [&] {
    { const Continuation dropped = queue.pop(); }
    CHECK(soon_free_everywhere(three_nodes(), "dropped"));
  };
  const auto kept = std::make_shared<int>(7);
  lock.async_acquire({.wait = patience}).start([kept](const auto&) { FAIL("it was dropped"); });
  drop_one();
  CHECK(kept.use_count() == 1);

  auto acquiring = lock.async_acquire({.wait = patience}).as_future();
  drop_one();
  CHECK_THROWS_AS(static_cast<void>(get_soon(acquiring)), std::future_error);

  {
    const OwnedCoroutine suspended = hold(lock, kept);
    drop_one();
    CHECK(kept.use_count() > 1);
  }
  CHECK(kept.use_count() == 1);

  RedLock owned = client->lock("taken and dropped", Owner::create());
  owned.async_try_lock().start([](const auto&) { FAIL("it was dropped"); });
  { const Continuation dropped = queue.pop(); }
  CHECK(owned.hold_count() == 1);
  CHECK(must(owned.release()) == Released::released);
}

TEST_CASE_FIXTURE(Program, "an unlock on the client's own thread does not go by it") {
  std::optional<RedLock> held;
  client = start_client(three_nodes(), [&](ClientOptions& options) {
    options.resume_on = [&](Continuation continuation) {
      if (held->hold_count() > 0) held->unlock();
      queue.push(std::move(continuation));
    };
  });
  held.emplace(client->lock("unlocked inside", Owner::create()));
  held->lock();
  CHECK(must(result_of(client->lock("another").async_acquire())).valid());
  CHECK(soon_free_everywhere(three_nodes(), "unlocked inside"));
  // An answer to the release, if it went there, would be before this one.
  must(result_of(client->lock("another").async_acquire({.wait = patience})));
  CHECK(queue.pushed() == 2);
  client.reset();
}

TEST_CASE_FIXTURE(Program, "in the child of a fork it is not called") {
  RedLock lock = client->lock("forked");
  CHECK(exit_code_of_child([&] {
          bool closed = false;
          lock.async_acquire().start(
              [&](const Result<Lease>& result) { closed = result.error().code == Errc::closed; });
          return closed ? 0 : 1;
        }) == 0);
  CHECK(queue.pushed() == 0);
}

TEST_CASE_FIXTURE(Program, "observers and what is tied to lost() stay on the client's threads") {
  const auto here = std::this_thread::get_id();
  const Lease lease = must(result_of(client->lock("lost").async_acquire()));
  std::promise<std::thread::id> told;
  const std::stop_callback on_loss(lease.lost(),
                                   [&] { told.set_value(std::this_thread::get_id()); });
  client.reset();  // which loses it
  CHECK(get_soon(told) != here);
  CHECK(queue.pushed() == 1);
}

}  // namespace
}  // namespace redlock::testing
