// SPDX-License-Identifier: MIT
// The guard in front of a resource: who is turned away, and that check, stamp and work are one
// step.
#include <atomic>
#include <doctest/doctest.h>
#include <future>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <redlock/fence_guard.hpp>

using redlock::FenceGuard;
using redlock::FenceRefusal;
using Why = FenceRefusal::Why;

namespace {

/// What the guard says to a write with this token, which must be a refusal.
FenceRefusal refusal(FenceGuard& guard, const std::string& resource, std::uint64_t token) {
  bool ran = false;
  const auto result = guard.run(resource, token, [&] { ran = true; });
  REQUIRE_FALSE(result.has_value());
  CHECK_FALSE(ran);
  return result.error();
}

}  // namespace

TEST_CASE("tokens that are not below the largest one seen are let through") {
  FenceGuard guard;
  CHECK_FALSE(guard.seen("a").has_value());
  for (const std::uint64_t token : {3U, 3U, 7U, 7U}) {
    const auto result = guard.run("a", token, [&] { return token * 2; });
    REQUIRE(result.has_value());
    CHECK(*result == token * 2);
    CHECK(guard.seen("a") == token);
  }
}

TEST_CASE("a token below the largest one is stale, and says what was seen") {
  FenceGuard guard;
  CHECK(guard.stamp("a", 7));
  const FenceRefusal why = refusal(guard, "a", 6);
  CHECK(why.why == Why::stale);
  CHECK(why.seen == 7);
  CHECK(guard.seen("a") == 7);
  CHECK(guard.stamp("b", 1));  // another resource has seen nothing of this
}

TEST_CASE("0 is no token") {
  FenceGuard guard;
  CHECK(refusal(guard, "a", 0).why == Why::stale);
  CHECK(guard.size() == 0);
}

TEST_CASE("the stamp stands before the work begins, and stays if the work throws") {
  FenceGuard guard;
  CHECK(guard.stamp("a", 4));
  const auto fail = [&]() -> int {
    CHECK(guard.seen("a") == 5);
    throw std::runtime_error("no");
  };
  CHECK_THROWS_AS((void)guard.run("a", 5, fail), std::runtime_error);
  CHECK(refusal(guard, "a", 4).seen == 5);
  CHECK(guard.stamp("a", 5));  // nobody is left inside
}

TEST_CASE("at its limit the guard refuses new resources and remembers the old ones") {
  FenceGuard guard(2);
  CHECK(guard.stamp("a", 7));
  CHECK(guard.stamp("b", 7));
  CHECK(refusal(guard, "c", 9).why == Why::full);
  CHECK(guard.size() == 2);
  CHECK(refusal(guard, "a", 6).why == Why::stale);
  CHECK(guard.stamp("b", 8));
}

TEST_CASE("a thread that would wait for itself is told so") {
  FenceGuard guard;
  const auto outer = guard.run("a", 5, [&] { return guard.stamp("a", 6).error().why; });
  REQUIRE(outer.has_value());
  CHECK(*outer == Why::nested);
  CHECK(guard.seen("a") == 5);
  CHECK(guard.run("a", 5, [&] { return guard.stamp("b", 1).has_value(); }).value());
}

TEST_CASE("nobody works on a resource while somebody else does") {
  FenceGuard guard;
  std::promise<void> inside;
  std::promise<void> go_on;
  std::vector<int> order;
  std::thread older([&] {
    CHECK(guard.run("a", 5, [&] {
      inside.set_value();
      go_on.get_future().wait();
      order.push_back(5);
    }));
  });
  inside.get_future().wait();
  CHECK(guard.stamp("b", 1));  // other resources do not wait
  std::thread newer([&] { CHECK(guard.run("a", 6, [&] { order.push_back(6); })); });
  go_on.set_value();
  older.join();
  newer.join();
  CHECK(order == std::vector<int>{5, 6});
}

TEST_CASE("racing increments lose none, and none with a smaller token runs behind a larger") {
  FenceGuard guard;
  constexpr int threads = 4;
  constexpr std::uint64_t each = 2'000;
  std::uint64_t value = 0;  // guarded
  std::uint64_t largest = 0;
  std::uint64_t disorder = 0;
  std::atomic<bool> working{false};
  std::atomic<int> overlaps{0};
  std::atomic<std::uint64_t> next{0};
  std::atomic<std::uint64_t> applied{0};
  std::vector<std::thread> running;
  for (int i = 0; i < threads; ++i) {
    running.emplace_back([&] {
      for (std::uint64_t n = 0; n < each; ++n) {
        const std::uint64_t token = ++next;
        const auto result = guard.run("counter", token, [&] {
          if (working.exchange(true)) ++overlaps;
          std::this_thread::yield();
          if (token < largest) ++disorder;
          largest = token;
          ++value;
          working = false;
        });
        if (result) ++applied;
      }
    });
  }
  for (std::thread& thread : running) thread.join();
  CHECK(value == applied);
  CHECK(applied > 0);
  CHECK(overlaps == 0);
  CHECK(disorder == 0);
  CHECK(guard.seen("counter") == largest);
}
