// SPDX-License-Identifier: MIT
// Jobs as C++20 coroutines on one thread, scheduled by a run queue of the program's own: by
// ClientOptions::resume_on that queue also resumes the jobs that await a lock. So jobs share data
// without a mutex, and the lock keeps them, and other programs, apart between their turns. Start
// with deposit(). Run it with nodes:
//
//     eval "$(redlock fleet up)" && job_runner && redlock fleet down
#include <chrono>
#include <condition_variable>
#include <coroutine>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <exception>
#include <mutex>
#include <utility>

#include <redlock/redlock.hpp>

namespace {

using namespace std::chrono_literals;

/// A coroutine that begins when a JobRunner takes it from the queue, and destroys itself at its
/// end.
struct Job {
  struct promise_type {
    Job get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() { --*unfinished; }
    void unhandled_exception() { std::terminate(); }
    int* unfinished = nullptr;
  };
  std::coroutine_handle<promise_type> coroutine;
};

class JobRunner {
 public:
  void add(Job job) {
    job.coroutine.promise().unfinished = &unfinished_;
    ++unfinished_;
    push(redlock::Continuation([job] { job.coroutine.resume(); }));
  }

  /// From any thread.
  void push(redlock::Continuation step) {
    {
      const std::scoped_lock lock(mutex_);
      steps_.push_back(std::move(step));
    }
    pushed_.notify_one();
  }

  /// A job awaits this to let the others run.
  auto turn() {
    struct Turn {
      JobRunner& runner;
      [[nodiscard]] bool await_ready() const noexcept { return false; }
      void await_suspend(std::coroutine_handle<> job) const {
        runner.push(redlock::Continuation([job] { job.resume(); }));
      }
      void await_resume() const noexcept {}
    };
    return Turn{*this};
  }

  /// Until all jobs are done.
  void run() {
    while (unfinished_ > 0) next()();
  }

 private:
  redlock::Continuation next() {
    std::unique_lock lock(mutex_);
    pushed_.wait(lock, [this] { return !steps_.empty(); });
    redlock::Continuation step = std::move(steps_.front());
    steps_.pop_front();
    return step;
  }

  int unfinished_ = 0;  // changed by this thread alone
  std::mutex mutex_;
  std::condition_variable pushed_;
  std::deque<redlock::Continuation> steps_;
};

Job deposit(JobRunner& runner, redlock::Client& client, int& balance) {
  redlock::RedLock lock = client.lock("account");
  for (int i = 0; i < 4; ++i) {
    redlock::Result<redlock::Lease> lease = co_await lock.async_acquire({.wait = 30s});
    if (!lease) {
      std::puts(lease.error().message.c_str());
      co_return;
    }
    const int before = balance;
    co_await runner.turn();  // the others run here, and would read the same balance
    balance = before + 1;
    co_await lease->async_release();
  }
}

}  // namespace

int main() {
  auto options = redlock::ClientOptions::from_env();
  if (!options) return std::puts(options.error().message.c_str()), EXIT_FAILURE;

  JobRunner runner;  // before the client, to end after it
  options->resume_on = [&runner](redlock::Continuation it) { runner.push(std::move(it)); };
  auto client = redlock::Client::create(*options);
  if (!client) return std::puts(client.error().message.c_str()), EXIT_FAILURE;

  int balance = 0;
  for (int i = 0; i < 3; ++i) runner.add(deposit(runner, *client, balance));
  runner.run();
  std::printf("3 jobs made 4 deposits each: balance %d\n", balance);
  return balance == 12 ? EXIT_SUCCESS : EXIT_FAILURE;
}
