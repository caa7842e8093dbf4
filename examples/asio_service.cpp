// SPDX-License-Identifier: MIT
// A service on Asio: its requests are coroutines on one io_context, each writes the report under a
// lock, and a request that cannot have the lock within the time of its caller answers "busy".
// Nothing blocks the io_context. Run it with nodes:
//
//     eval "$(redlock fleet up)" && asio_service && redlock fleet down
#include <asio.hpp>
#include <asio/experimental/awaitable_operators.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <stdexcept>
#include <utility>
#include <variant>

#include <redlock/asio.hpp>
#include <redlock/redlock.hpp>

namespace {

using namespace std::chrono_literals;
using asio::use_awaitable;
using asio::experimental::awaitable_operators::operator||;

/// The lease, or nothing if the time is over first; then nothing is locked. The timer stands for
/// any event that ends a request: its caller has gone, the service stops. For a time limit alone
/// AcquireOptions::wait would do.
asio::awaitable<std::optional<redlock::Lease>> acquire_within(redlock::RedLock& lock,
                                                              std::chrono::milliseconds time) {
  asio::steady_timer timer(co_await asio::this_coro::executor, time);
  auto first = co_await (redlock::async_acquire(lock, {.wait = redlock::forever}, use_awaitable) ||
                         timer.async_wait(use_awaitable));
  if (first.index() == 1) co_return std::nullopt;
  redlock::Result<redlock::Lease>& lease = std::get<0>(first);
  if (!lease) throw std::runtime_error(lease.error().message);
  co_return std::move(*lease);
}

asio::awaitable<void> serve(redlock::Client& client) {
  redlock::RedLock lock = client.lock("report");
  std::optional<redlock::Lease> first = co_await acquire_within(lock, 30s);
  if (!first) throw std::runtime_error("the nodes do not answer");
  std::puts("request 1: writes the report");

  if (!co_await acquire_within(lock, 300ms)) std::puts("request 2: busy");

  const auto released = co_await redlock::async_start(first->async_release(), use_awaitable);
  // If no quorum confirms in time, the client goes on sending the release in the background.
  std::printf("request 1: %s\n",
              released ? redlock::to_string(*released) : released.error().message.c_str());
  if (co_await acquire_within(lock, 30s)) std::puts("request 3: writes the report");
}

}  // namespace

int main() {
  auto options = redlock::ClientOptions::from_env();
  if (!options) return std::puts(options.error().message.c_str()), EXIT_FAILURE;
  auto client = redlock::Client::create(*options);
  if (!client) return std::puts(client.error().message.c_str()), EXIT_FAILURE;
  try {
    asio::io_context context;
    asio::co_spawn(context, serve(*client), [](const std::exception_ptr& failure) {
      if (failure) std::rethrow_exception(failure);
    });
    context.run();
  } catch (const std::exception& failure) {
    return std::puts(failure.what()), EXIT_FAILURE;
  }
}
