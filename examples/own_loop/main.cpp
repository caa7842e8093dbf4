// SPDX-License-Identifier: MIT
// A program that lives on one libuv loop and on one thread: a timer that ticks, a signal that ends
// it, and a lock, which it takes with a callback first and then with a coroutine. The client is on
// the same loop. Start with Program::run().
#include <chrono>
#include <coroutine>
#include <csignal>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <uv.h>

#include <redlock/redlock.hpp>

namespace {

using namespace std::chrono_literals;

constexpr const char* help =
    "Usage: REDLOCK_NODES=URI,URI,... own_loop NAME\n\n"
    "Takes the lock NAME, gives it back, takes it again and holds it until SIGINT or SIGTERM.\n"
    "Exit status: 0 done, 1 trouble, 64 usage.\n";

/// A coroutine that runs by itself: nothing awaits it.
struct Detached {
  struct promise_type {
    Detached get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};

class Program {
 public:
  explicit Program(std::string name) : name_(std::move(name)) {}
  int run(redlock::ClientOptions options);

 private:
  void start_handles();
  void take_with_callback();
  Detached take_with_coroutine();
  void tick();
  void end();
  void fail(const std::string& why);

  template <typename Handle>
  static Program& of(Handle* handle) {
    return *static_cast<Program*>(handle->data);
  }
  template <typename Handle>
  static void close(Handle& handle) {
    uv_close(reinterpret_cast<uv_handle_t*>(&handle), nullptr);
  }

  const std::string name_;
  uv_loop_t loop_{};
  uv_timer_t ticker_{};
  uv_signal_t interrupt_{};
  uv_signal_t terminate_{};
  std::optional<redlock::Client> client_;
  redlock::Lease lease_;
  bool ending_ = false;
  int status_ = 0;
};

int Program::run(redlock::ClientOptions options) {
  uv_loop_init(&loop_);
  auto client = redlock::Client::create(std::move(options), &loop_);
  if (client) {
    client_.emplace(std::move(*client));
    start_handles();
    take_with_callback();
  } else {
    fail(client.error().message);
  }
  // Returns when nothing is left on the loop: neither of the client nor of this program.
  uv_run(&loop_, UV_RUN_DEFAULT);
  if (uv_loop_close(&loop_) != 0) std::terminate();
  std::puts("the loop is closed");
  return status_;
}

void Program::start_handles() {
  ticker_.data = interrupt_.data = terminate_.data = this;
  uv_timer_init(&loop_, &ticker_);
  uv_timer_start(
      &ticker_, [](uv_timer_t* timer) { of(timer).tick(); }, 200, 200);
  const uv_signal_cb ends = [](uv_signal_t* caught, int) { of(caught).end(); };
  uv_signal_init(&loop_, &interrupt_);
  uv_signal_start(&interrupt_, ends, SIGINT);
  uv_signal_init(&loop_, &terminate_);
  uv_signal_start(&terminate_, ends, SIGTERM);
}

void Program::take_with_callback() {
  client_->lock(name_)
      .async_acquire({.wait = 10s})
      .start([this](redlock::Result<redlock::Lease> lease) {
        if (!lease) return fail(lease.error().message);
        std::printf("taken with a callback, token %llu\n",
                    static_cast<unsigned long long>(lease->token()));
        take_with_coroutine();
      });  // the lease goes with the callback, which gives the lock back
}

Detached Program::take_with_coroutine() {
  redlock::RedLock lock = client_->lock(name_);
  auto lease = co_await lock.async_acquire({.wait = redlock::forever});
  if (!lease) {
    fail(lease.error().message);
    co_return;
  }
  lease_ = std::move(*lease);  // renewed by the loop from now on
  std::printf("taken with a coroutine, token %llu\n",
              static_cast<unsigned long long>(lease_.token()));
  std::fflush(stdout);
}

/// The loop turns, whatever the nodes do.
void Program::tick() {
  if (!lease_) return;
  if (lease_.lost().stop_requested()) return fail("the lock is lost: what it protects must end");
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(lease_.remaining());
  std::printf("tick, ours for %lld ms if nobody renews it\n", static_cast<long long>(left.count()));
  std::fflush(stdout);
}

/// At the end every call that is under way gets the error `closed`, which is no failure here.
void Program::fail(const std::string& why) {
  if (ending_) return;
  std::fprintf(stderr, "%s\n", why.c_str());
  status_ = 1;
  if (client_) end();
}

/// Closes this program's handles, and has the client close its own.
void Program::end() {
  if (std::exchange(ending_, true)) return;
  close(ticker_);
  close(interrupt_);
  close(terminate_);
  client_->async_close().start([](const redlock::Result<redlock::CloseReport>& report) {
    if (report) std::printf("given back at the end: %zu\n", report->released);
  });
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // libuv writes to sockets that may have been closed
  auto options = redlock::ClientOptions::from_env();
  if (argc != 2 || !options) {
    std::fputs(argc != 2 ? help : (options.error().message + '\n').c_str(), stderr);
    return 64;
  }
  return Program(argv[1]).run(std::move(*options));
}
