// SPDX-License-Identifier: MIT
// A blocking caller that is alone runs the client's loop itself. What it must not notice: users'
// code runs on the client's own thread, everybody else is served meanwhile, and nothing is waited
// for in vain. In "a caller that waits" a call waits for a lock that another client has, and so
// drives for long.
#include <csignal>
#include <random>

#include "integration/api_fixture.hpp"

namespace redlock::testing {
namespace {

/// Another client holds the lock, and a thread of this one waits for it, alone.
class CallerThatWaits {
 public:
  explicit CallerThatWaits(const std::string& name)
      : holder_(start_client(three_nodes())), lease_(must(holder_.lock(name).acquire())) {
    client.emplace(start_client(three_nodes()));
    warm_up(*client, three_nodes());
    thread_ = std::jthread([this, lock = client->lock(name)](const std::stop_token& stop) mutable {
      answer_.set_value(lock.acquire({.wait = forever, .ordering = Ordering::fifo}, stop));
    });
    REQUIRE(soon_waited_for(three_nodes(), name, 1));
  }

  void release() { must(lease_.release()); }
  void stop() { thread_.request_stop(); }
  Result<Lease> answer() { return get_soon(answer_); }
  [[nodiscard]] std::thread::id thread_id() const { return thread_.get_id(); }

  std::optional<Client> client;

 private:
  Client holder_;
  Lease lease_;
  std::promise<Result<Lease>> answer_;
  std::jthread thread_;  // which its destructor stops
};

TEST_CASE("a caller that waits is answered by a release, a stop or the end of its client") {
  CallerThatWaits released("seat-released");
  released.release();
  CHECK(released.answer().has_value());
  CallerThatWaits stopped("seat-stopped");
  stopped.stop();
  CHECK(code_of(stopped.answer()) == Errc::cancelled);
  CallerThatWaits destroyed("seat-destroyed");
  destroyed.client.reset();
  CHECK(code_of(destroyed.answer()) == Errc::closed);
}

TEST_CASE("beside a caller that waits others are served, callbacks on the client's own thread") {
  CallerThatWaits caller("seat-others");
  RedLock lock = caller.client->lock("seat-others-free");
  std::promise<std::thread::id> called;
  lock.async_acquire().start([&](const Result<Lease>& result) {
    CHECK(result.has_value());
    called.set_value(std::this_thread::get_id());
  });
  const auto id = get_soon(called);
  CHECK(id != caller.thread_id());
  CHECK(id != std::this_thread::get_id());
  CHECK(soon_free_everywhere(three_nodes(), "seat-others-free"));
  must(must(lock.acquire()).release());
}

TEST_CASE("a loss beside a caller that waits is reported on another thread, and others follow") {
  CallerThatWaits caller("seat-loss");
  within_a_lease([&] {
    const Lease lease =
        must(caller.client->lock("seat-lost")
                 .acquire({.lease = 300ms, .renewal = Renewal::never, .wait = patience}));
    std::promise<std::thread::id> lost;
    const std::stop_callback callback(lease.lost(),
                                      [&] { lost.set_value(std::this_thread::get_id()); });
    const auto id = get_soon(lost);
    CHECK(id != caller.thread_id());
    CHECK(lease.loss_reason() == LossReason::expired);
    return id != std::this_thread::get_id();
  });
  caller.release();
  CHECK(caller.answer().has_value());
}

TEST_CASE("a lease that is dropped between blocking calls is released at once") {
  const Client client = start_client(three_nodes());
  RedLock lock = client.lock("seat-dropped");
  for (int i = 0; i < 50; ++i) {
    { const Lease lease = must(lock.acquire()); }
    REQUIRE(soon_free_everywhere(three_nodes(), "seat-dropped"));
  }
}

struct Load {
  std::size_t threads = 1;
  int cycles = 40;
  bool with_callbacks = false;
};

/// Threads that lock, each its own name, with pauses of 0, 1 or 20 ms; how many calls failed.
std::size_t run_load(Client& client, const Load& load, unsigned seed) {
  std::atomic<std::size_t> failed{0};
  std::atomic<std::size_t> callbacks{0};
  std::vector<std::thread> threads;
  std::vector<std::thread::id> ids(load.threads);
  std::atomic<bool> called_on_caller{false};
  for (std::size_t number = 0; number < load.threads; ++number) {
    threads.emplace_back([&, number] {
      ids[number] = std::this_thread::get_id();
      std::minstd_rand random(seed * 100 + static_cast<unsigned>(number));
      RedLock lock = client.lock("seat-load-" + std::to_string(number));
      RedLock other = client.lock("seat-load-other-" + std::to_string(number));
      for (int i = 0; i < load.cycles; ++i) {
        if (load.with_callbacks && random() % 4 == 0) {
          ++callbacks;
          other.async_acquire({.wait = patience})
              .start([&, caller = std::this_thread::get_id()](const Result<Lease>& result) {
                if (std::this_thread::get_id() == caller) called_on_caller = true;
                if (!result) ++failed;
                --callbacks;
              });
        }
        auto lease = lock.acquire({.wait = patience});
        if (!lease || (random() % 8 != 0 && !lease->release())) ++failed;
        constexpr std::array pauses{0ms, 0ms, 0ms, 1ms, 1ms, 20ms};
        if (const auto pause = pauses[random() % pauses.size()]; pause > 0ms) {
          std::this_thread::sleep_for(pause);
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(eventually([&] { return callbacks == 0; }));
  CHECK_FALSE(called_on_caller);
  return failed;
}

TEST_CASE("any number of callers with any pauses are all answered") {
  Client client = start_client(three_nodes());
  for (const std::size_t threads : {1U, 2U, 4U, 16U}) {
    CAPTURE(threads);
    CHECK(run_load(client, {.threads = threads}, 1) == 0);
    CHECK(run_load(client, {.threads = threads, .cycles = 20, .with_callbacks = true}, 2) == 0);
  }
}

TEST_CASE("a client may be destroyed while callers are alone, or many") {
  for (const std::size_t threads : {1U, 2U, 4U, 16U}) {
    for (int round = 0; round < 5; ++round) {
      std::optional<Client> client = start_client(three_nodes());
      std::atomic<std::size_t> begun{0};
      std::vector<std::thread> callers;
      for (std::size_t number = 0; number < threads; ++number) {
        callers.emplace_back([&, lock = std::make_shared<RedLock>(
                                     client->lock("seat-end-" + std::to_string(number)))] {
          for (bool more = true; more; ++begun) {
            const auto lease = lock->acquire({.wait = patience});
            more = lease || lease.error().code != Errc::closed;
          }
        });
      }
      REQUIRE(eventually([&] { return begun > 2 * threads; }));
      client.reset();
      for (auto& caller : callers) caller.join();
    }
  }
}

}  // namespace
}  // namespace redlock::testing
