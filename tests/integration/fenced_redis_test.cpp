// SPDX-License-Identifier: MIT
// Fenced commands on a real Redis: through NodeClient, which shares nothing with the library, and
// through hiredis.
#include <chrono>
#include <doctest/doctest.h>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <redlock/fenced_redis.hpp>
#include <redlock/fenced_redis_hiredis.hpp>

#include "cluster/fleet.hpp"
#include "support/processes.hpp"
#include "support/text.hpp"

namespace redlock::testing {
namespace {

using cluster::Fleet;
using Kind = FencedResult::Kind;
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
  REQUIRE(servers.run(1, {"REPLICAOF", "127.0.0.1", std::to_string(servers.port(0))}) == "OK");
  REQUIRE(eventually([&] { return servers.run(1, {"GET", "redlock:stamp:{a}"}) == "5"; }));
  CHECK(contains(servers.run(1, fenced_read("a", 5).words()), "READONLY"));
}

/// A node of Redis Cluster that has all slots.
struct ClusterNode {
  ClusterNode() {
    std::vector<std::string> all_slots{"CLUSTER", "ADDSLOTS"};  // Redis 6.2 knows no ranges
    for (int slot = 0; slot < 16'384; ++slot) all_slots.push_back(std::to_string(slot));
    REQUIRE(run(all_slots) == "OK");
    REQUIRE(eventually([&] { return contains(run({"CLUSTER", "INFO"}), "cluster_state:ok"); }));
  }
  // It writes its state to the disk, and waits for it, which a busy machine may keep waiting.
  [[nodiscard]] std::string run(const Words& command) const {
    return server.run(0, command, std::chrono::minutes(1));
  }

  Fleet server{{.nodes = 1, .settings = {"cluster-enabled yes"}}};
};

TEST_CASE("the stamp is in the hash slot of its key, and two keys never share one") {
  CHECK(stamp_key("a") == "redlock:stamp:{a}");
  CHECK(stamp_key("{a}") == "redlock:stamp:of:{a}");
  CHECK(stamp_key("user:{7}:cart") == "redlock:stamp:of:user:{7}:cart");
  const ClusterNode node;
  for (const std::string key : {"a", "{a}", "user:{7}:cart", "a{b", "{", "{a}{b}", "x{y"}) {
    CAPTURE(key);
    CHECK(node.run({"CLUSTER", "KEYSLOT", key}) ==
          node.run({"CLUSTER", "KEYSLOT", stamp_key(key)}));
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

}  // namespace redlock::testing
