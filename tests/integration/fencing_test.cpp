// SPDX-License-Identifier: MIT
// What turns old tokens away: fenced commands on a real Redis, through NodeClient, which shares
// nothing with the library, and through hiredis; and the guard in front of any resource, where
// check, stamp and work are one step.
#include <atomic>
#include <doctest/doctest.h>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <redlock/fence_guard.hpp>
#include <redlock/fenced_redis.hpp>
#include <redlock/fenced_redis_hiredis.hpp>

#include "cluster/fleet.hpp"
#include "support/nodes.hpp"
#include "support/processes.hpp"
#include "support/text.hpp"

namespace redlock::testing {
namespace {

using cluster::Fleet;
using Kind = FencedResult::Kind;
using Why = FenceRefusal::Why;
using Words = std::vector<std::string>;

constexpr std::uint64_t last_token = 9'007'199'254'740'991;  // 2^53 - 1

/// One server for all tests, which start with an empty one.
Fleet& fleet() {
  static Fleet one({.nodes = 1});
  return one;
}

std::string redis(const Words& command) {
  return fleet().run(0, command);
}

class Connection {
 public:
  explicit Connection(const Fleet& server = fleet())
      : context_(redisConnect("127.0.0.1", server.port(0)), redisFree) {
    REQUIRE(context_ != nullptr);
    REQUIRE(context_->err == 0);
  }
  [[nodiscard]] tl::expected<FencedReply, std::string> try_run(const FencedCommand& command) const {
    return run(*context_, command);
  }
  /// Of a command that must have an answer.
  [[nodiscard]] FencedReply answer(const FencedCommand& command) const {
    const auto reply = try_run(command);
    REQUIRE_MESSAGE(reply.has_value(), reply.error());
    return *reply;
  }
  [[nodiscard]] std::string error(const FencedCommand& command) const {
    const auto reply = try_run(command);
    REQUIRE_FALSE(reply.has_value());
    return reply.error();
  }

 private:
  std::unique_ptr<redisContext, decltype(&redisFree)> context_;
};

struct EmptyServer {
  EmptyServer() { REQUIRE(redis({"FLUSHALL"}) == "OK"); }
  Connection connection;
};

/// What the guard says to a write with this token, which must be a refusal.
FenceRefusal refusal(FenceGuard& guard, const std::string& resource, std::uint64_t token) {
  bool ran = false;
  const auto result = guard.run(resource, token, [&] { ran = true; });
  REQUIRE_FALSE(result.has_value());
  CHECK_FALSE(ran);
  return result.error();
}

}  // namespace

TEST_CASE_FIXTURE(EmptyServer, "a write is done unless a larger token was there") {
  CHECK(connection.answer(fenced_write("a", "one", 7)).result.applied());
  CHECK(redis({"GET", "a"}) == "one");
  CHECK(redis({"GET", "redlock:stamp:{a}"}) == "7");
  const auto stale = connection.answer(fenced_write("a", "old", 6));
  CHECK(stale.result.kind == Kind::stale);
  CHECK(stale.result.seen == 7);
  CHECK_FALSE(stale.value.has_value());
  CHECK(redis({"GET", "a"}) == "one");
  CHECK(connection.answer(fenced_write("a", "two", 7)).result.applied());
  CHECK(connection.answer(fenced_write("a", "three", 8)).value == "OK");
  CHECK(redis({"GET", "a"}) == "three");
  CHECK(connection.answer(fenced_write("b", "other", 1)).result.applied());
}

TEST_CASE_FIXTURE(EmptyServer, "any client can send the words and read the first integer") {
  CHECK(redis(fenced_write("a", "one", 7).words()) == "0\nOK");
  CHECK(redis(fenced_write("a", "old", 6).words()) == "7\n(nil)");
  CHECK(fenced_result(0).applied());
  CHECK(fenced_result(7).kind == Kind::stale);
  CHECK(fenced_result(7).seen == 7);
  const auto command = fenced_write("a", "two", 8);
  Words evalsha = command.words();
  evalsha[0] = "EVALSHA";
  evalsha[1] = redis({"SCRIPT", "LOAD", command.script});
  CHECK(redis(evalsha) == "0\nOK");
}

TEST_CASE_FIXTURE(EmptyServer, "a reader stamps: whoever is older comes too late to change it") {
  CHECK_FALSE(connection.answer(fenced_read("a", 5)).value.has_value());
  CHECK(connection.answer(fenced_write("a", "1", 5)).result.applied());
  CHECK(connection.answer(fenced_read("a", 6)).value == "1");
  CHECK(connection.answer(fenced_write("a", "2", 5)).result.seen == 6);
  CHECK(connection.answer(fenced_read("a", 5)).result.kind == Kind::stale);
  CHECK(connection.answer(fenced_write("a", "2", 6)).result.applied());
}

TEST_CASE_FIXTURE(EmptyServer, "tokens are compared as numbers, exactly, up to the last one") {
  CHECK(connection.answer(fenced_write("a", "x", 99)).result.applied());
  CHECK(connection.answer(fenced_write("a", "x", 100)).result.applied());
  CHECK(connection.answer(fenced_write("a", "x", last_token)).result.applied());
  CHECK(redis({"GET", "redlock:stamp:{a}"}) == std::to_string(last_token));
  const auto stale = connection.answer(fenced_write("a", "x", last_token - 1));
  CHECK(stale.result.seen == last_token);
}

TEST_CASE_FIXTURE(EmptyServer, "the caller's Lua has its own keys and arguments and no others") {
  const auto count = fenced_eval("return #KEYS .. ' ' .. #ARGV .. KEYS[2] .. ARGV[1]", {"a", "b"},
                                 {"x", "y", "z"}, 3);
  CHECK(connection.answer(count).value == "2 3bx");
  const auto add =
      fenced_eval("return redis.call('INCRBY', KEYS[1], ARGV[1]) -- a comment", {"a"}, {"5"}, 3);
  CHECK(connection.answer(add).value == "5");
  CHECK(connection.answer(add).value == "10");
  CHECK_FALSE(connection.answer(fenced_eval("", {"a"}, {}, 3)).value.has_value());
  CHECK_FALSE(connection.answer(fenced_eval("return nil", {"a"}, {}, 3)).value.has_value());
  CHECK(connection.answer(fenced_eval("return 0", {"a"}, {}, 3)).value == "0");
  CHECK_FALSE(connection.answer(fenced_eval("return {1, 2}", {"a"}, {}, 3)).value.has_value());
  CHECK(connection.answer(fenced_eval("return 1", {"a"}, {}, 2)).result.seen == 3);
}

TEST_CASE_FIXTURE(EmptyServer, "what is no token is an error, and nothing is written") {
  for (const std::uint64_t token : {std::uint64_t{0}, last_token + 1, ~std::uint64_t{0}}) {
    CHECK(contains(connection.error(fenced_write("a", "x", token)), "not a token"));
  }
  CHECK(redis({"DBSIZE"}) == "0");
}

TEST_CASE_FIXTURE(EmptyServer, "a damaged stamp lets nobody through") {
  for (const std::string stamp : {"", "x", "-1", "1e3", "0", "9007199254740992"}) {
    redis({"SET", "redlock:stamp:{a}", stamp});
    CHECK(contains(connection.error(fenced_write("a", "x", last_token)), "redlock:stamp:{a}"));
  }
  redis({"DEL", "redlock:stamp:{a}"});
  redis({"HSET", "redlock:stamp:{a}", "x", "y"});
  CHECK(contains(connection.error(fenced_write("a", "x", last_token)), "WRONGTYPE"));
  CHECK(redis({"GET", "a"}) == "(nil)");
}

TEST_CASE_FIXTURE(EmptyServer, "the stamp stays if the work fails") {
  redis({"HSET", "a", "x", "y"});
  CHECK(contains(connection.error(fenced_eval("return redis.call('INCR', KEYS[1])", {"a"}, {}, 5)),
                 "WRONGTYPE"));
  CHECK(redis({"GET", "redlock:stamp:{a}"}) == "5");
  CHECK(connection.answer(fenced_write("a", "x", 4)).result.seen == 5);
}

TEST_CASE_FIXTURE(EmptyServer, "an error that the work returns is the reply, and not `applied`") {
  redis({"HSET", "a", "x", "y"});
  const auto caught = fenced_eval("return redis.pcall('INCR', KEYS[1])", {"a"}, {}, 5);
  CHECK(contains(connection.error(caught), "WRONGTYPE"));
  const auto own = fenced_eval("return redis.error_reply('ERR no money')", {"a"}, {}, 5);
  CHECK(contains(connection.error(own), "no money"));
  CHECK(connection.answer(fenced_eval("return redis.status_reply('well')", {"a"}, {}, 5)).value ==
        "well");
}

TEST_CASE_FIXTURE(EmptyServer, "keys and values are any bytes") {
  const std::string key("k\0\n{\xff", 5);
  const std::string value("\0v\r\n", 4);
  CHECK(connection.answer(fenced_write(key, value, 5)).result.applied());
  CHECK(connection.answer(fenced_read(key, 5)).value == value);
}

TEST_CASE("a connection that breaks says so") {
  Fleet server({.nodes = 1});
  const Connection connection(server);
  server.kill(0);
  CHECK_FALSE(connection.error(fenced_write("a", "x", 5)).empty());
}

TEST_CASE("a replica is not read, though it has the stamp") {
  const Fleet servers({.nodes = 2});
  const Connection master(servers);
  CHECK(master.answer(fenced_write("a", "x", 5)).result.applied());
  REQUIRE(soon_replicates(servers, 1, servers.port(0)));
  REQUIRE(servers.run(1, {"GET", "redlock:stamp:{a}"}) == "5");
  CHECK(contains(servers.run(1, fenced_read("a", 5).words()), "READONLY"));
}

/// A node of Redis Cluster that has all slots.
struct ClusterNode {
  ClusterNode() { REQUIRE(soon_has_all_slots(server, 0)); }

  Fleet server{{.nodes = 1, .settings = {"cluster-enabled yes"}}};
};

TEST_CASE("the stamp is in the hash slot of its key, and two keys never share one") {
  CHECK(stamp_key("a") == "redlock:stamp:{a}");
  CHECK(stamp_key("{a}") == "redlock:stamp:of:{a}");
  CHECK(stamp_key("user:{7}:cart") == "redlock:stamp:of:user:{7}:cart");
  const ClusterNode node;
  for (const std::string key : {"a", "{a}", "user:{7}:cart", "a{b", "{", "{a}{b}", "x{y"}) {
    CAPTURE(key);
    CHECK(node.server.run(0, {"CLUSTER", "KEYSLOT", key}) ==
          node.server.run(0, {"CLUSTER", "KEYSLOT", stamp_key(key)}));
  }
}

TEST_CASE("fenced commands work on a node of Redis Cluster") {
  const ClusterNode node;
  const Connection connection(node.server);
  CHECK(connection.answer(fenced_write("a", "x", 5)).result.applied());
  CHECK(connection.answer(fenced_write("{a}:b", "x", 5)).result.applied());
  CHECK(connection.answer(fenced_write("a", "x", 4)).result.seen == 5);
  CHECK(contains(connection.error(fenced_write("x{}y}", "x", 5)), "slot"));
}

TEST_CASE("a token below the largest one seen is stale, and 0 is none; others are let through") {
  FenceGuard guard;
  CHECK_FALSE(guard.seen("a").has_value());
  for (const std::uint64_t token : {3U, 3U, 7U, 7U}) {
    const auto result = guard.run("a", token, [&] { return token * 2; });
    REQUIRE(result.has_value());
    CHECK(*result == token * 2);
    CHECK(guard.seen("a") == token);
  }
  const FenceRefusal why = refusal(guard, "a", 6);
  CHECK(why.why == Why::stale);
  CHECK(why.seen == 7);
  CHECK(guard.seen("a") == 7);
  CHECK(refusal(guard, "b", 0).why == Why::stale);
  CHECK(guard.size() == 1);
  CHECK(guard.stamp("b", 1));  // another resource has seen nothing of this
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

}  // namespace redlock::testing
