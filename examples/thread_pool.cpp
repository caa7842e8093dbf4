// SPDX-License-Identifier: MIT
// Callbacks on a thread pool: ClientOptions::resume_on gives the pool the continuation of each
// operation, so that callbacks may take their time and make blocking calls. Start with main(). Run
// it with nodes:
//
//     eval "$(redlock fleet up)" && thread_pool && redlock fleet down
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <latch>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <redlock/redlock.hpp>

namespace {

/// A few threads that run the functions they are given. The destructor waits until all have run.
class ThreadPool {
 public:
  explicit ThreadPool(int threads) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
  }
  ~ThreadPool() {
    {
      const std::scoped_lock lock(mutex_);
      stops_ = true;
    }
    changed_.notify_all();
  }
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  void push(redlock::Continuation work) {
    {
      const std::scoped_lock lock(mutex_);
      work_.push_back(std::move(work));
    }
    changed_.notify_one();
  }
  /// Whether the calling thread is one of this program's pool.
  [[nodiscard]] static bool is_here() { return in_pool; }

 private:
  void run() {
    in_pool = true;
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return stops_ || !work_.empty(); });
      if (work_.empty()) return;
      redlock::Continuation work = std::move(work_.front());
      work_.pop_front();
      lock.unlock();
      work();
      lock.lock();
    }
  }

  static thread_local bool in_pool;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<redlock::Continuation> work_;
  bool stops_ = false;
  std::vector<std::jthread> threads_;
};

thread_local bool ThreadPool::in_pool = false;

}  // namespace

int main() {
  using namespace std::chrono_literals;
  auto options = redlock::ClientOptions::from_env();
  if (!options) return std::puts(options.error().message.c_str()), EXIT_FAILURE;

  constexpr int jobs = 12;
  int count = 0;  // guarded by the lock alone, as the next one
  int in_pool = 0;
  std::latch done(jobs);
  ThreadPool pool(3);  // before the client, to end after it
  options->resume_on = [&pool](redlock::Continuation it) { pool.push(std::move(it)); };
  auto client = redlock::Client::create(*options);
  if (!client) return std::puts(client.error().message.c_str()), EXIT_FAILURE;

  for (int i = 0; i < jobs; ++i) {
    client->lock("counter")
        .async_acquire({.wait = 30s})
        .start([&](redlock::Result<redlock::Lease> lease) {
          if (lease) {
            const int before = count;
            std::this_thread::sleep_for(2ms);  // work that takes its time
            count = before + 1;
            in_pool += ThreadPool::is_here() ? 1 : 0;
            lease->release();  // waits for the nodes, which it could not do on the client's thread
          } else {
            std::puts(lease.error().message.c_str());
          }
          done.count_down();
        });
  }
  done.wait();
  std::printf("%d jobs counted to %d, %d of them in the pool\n", jobs, count, in_pool);
  return count == jobs && in_pool == jobs ? EXIT_SUCCESS : EXIT_FAILURE;
}
