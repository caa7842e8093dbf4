// SPDX-License-Identifier: MIT
// What programs write inside of a co_await expression is destroyed once, also where a compiler
// (g++ 12) destroys the members of an aggregate twice that is made there. The address sanitizer
// sees that; this program has it with every compiler. No node is needed: what is asked for is
// refused, or waits in vain and is cancelled.
#include <asio.hpp>
#include <asio/experimental/awaitable_operators.hpp>
#include <csignal>
#include <doctest/doctest.h>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <redlock/asio.hpp>
#include <redlock/redlock.hpp>

#include "integration/api_coroutines.hpp"

namespace redlock::testing {
namespace {

using namespace std::chrono_literals;
using asio::use_awaitable;

Client client_without_nodes() {
  return Client::create({.nodes = {"redis://127.0.0.1:1"}}).value();
}

/// As a program of another process may have it: on the heap.
std::string owner() {
  return std::string(32, 'a');
}

FireAndForget wait_in_turn(RedLock& lock, const std::stop_source& stop,
                           std::vector<Errc>& answers) {
  const auto note = [&](const auto& result) {
    answers.push_back(result ? Errc{} : result.error().code);
  };
  note(co_await lock.async_acquire({.wait = 10ms}));
  note(co_await lock.async_acquire());
  note(co_await lock.async_acquire({.lease = 1s, .wait = forever}, stop.get_token()));
  note(co_await lock.async_try_lock({.wait = forever}, stop.get_token()));
  note(co_await lock.async_attach({"x", owner(), 7}, {.lease = 1s}, stop.get_token()));
  note(co_await lock.async_attach(Grant{"x", owner()}));
  note(co_await lock.async_release({"x", owner(), 7}));
  note(co_await Lease().async_lost(stop.get_token()));
}

TEST_CASE("what is written inside of a co_await expression is destroyed once") {
  std::optional<Client> client = client_without_nodes();
  RedLock lock = client->lock("x", Owner::create());
  std::stop_source stop;
  std::vector<Errc> answers;
  wait_in_turn(lock, stop, answers);
  stop.request_stop();
  client.reset();  // every operation has its result by then
  CHECK(answers.size() == 8);
}

asio::awaitable<void> serve(RedLock& lock, std::stop_token stop, std::vector<Errc>& answers) {
  const auto note = [&](const auto& result) {
    answers.push_back(result ? Errc{} : result.error().code);
  };
  note(co_await redlock::async_acquire(lock, {.wait = 10ms}, use_awaitable));
  note(co_await redlock::async_acquire(lock, {.wait = forever}, stop, use_awaitable));
  note(co_await redlock::async_try_lock(lock, {.wait = forever}, stop, use_awaitable));
  note(co_await redlock::async_attach(lock, {"x", owner(), 7}, {.lease = 1s}, stop, use_awaitable));
  note(co_await redlock::async_start(lock.async_release({"x", owner(), 7}), use_awaitable));
}

TEST_CASE("a service of coroutines ends at SIGTERM, and its stop_token lasts until then") {
  const Client client = client_without_nodes();
  std::vector<RedLock> locks;
  for (int i = 0; i < 10; ++i) locks.push_back(client.lock("x", Owner::create()));
  asio::io_context context;
  std::optional<std::stop_source> stop(std::in_place);
  asio::signal_set ends(context, SIGTERM);
  ends.async_wait([&](const asio::error_code&, int) {
    stop->request_stop();
    stop.reset();
  });
  std::vector<Errc> answers;
  for (RedLock& lock : locks) {
    asio::co_spawn(context, serve(lock, stop->get_token(), answers), asio::detached);
  }
  asio::steady_timer timer(context, 50ms);
  timer.async_wait([](const asio::error_code&) { std::raise(SIGTERM); });
  context.run();
  CHECK(answers.size() == 50);
}

}  // namespace
}  // namespace redlock::testing
