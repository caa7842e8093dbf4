// SPDX-License-Identifier: MIT
// What the scripts make of those who wait for a lock on one node (queue.lua), on a real server, in
// the form for Redis 7 and in the form for 6.2.
#include <doctest/doctest.h>
#include <string>
#include <vector>

#include "cluster/fleet.hpp"
#include "net_server_kind.hpp"
#include "support/text.hpp"
#include "wire/script_set.hpp"

namespace redlock::testing::queue_script {
namespace {

using cluster::Fleet;
using cluster::NodeClient;
using wire::Script;
using wire::ScriptSet;

using Words = std::vector<std::string>;

constexpr const char* lock_key = "redlock:lock:{n}";
constexpr const char* fence_key = "redlock:fence:1";
constexpr const char* queue_key = "redlock:lock:{n}:queue";
constexpr const char* waiters_key = "redlock:lock:{n}:waiters";

Fleet& fleet() {
  static Fleet one({.nodes = 1});
  return one;
}
const ScriptForms both_forms(fleet);

std::string redis(const Words& command) {
  return fleet().run(0, command);
}

long long now_ms() {
  const std::string time = redis({"TIME"});
  const std::size_t end = time.find('\n');
  return std::stoll(time.substr(0, end)) * 1000 + std::stoll(time.substr(end + 1)) / 1000;
}

/// The client aa, bb or cc, on the connection where it is told.
class Subscribed {
 public:
  explicit Subscribed(const std::string& client) : connection_(fleet().port(0)) {
    REQUIRE(contains(connection_.command({"SUBSCRIBE", "redlock:wake:" + client}), "subscribe"));
  }

  /// Since the last call, one a line.
  std::string messages() {
    const std::string last = "ping " + std::to_string(++pings_);
    std::string all;
    for (;;) {
      // One command reads one reply; an older one may be first.
      const std::string reply = connection_.command({"PING", last});
      if (reply.ends_with(last)) return all;
      const std::size_t text = reply.rfind('\n') + 1;
      if (reply.starts_with("message\n")) all += (all.empty() ? "" : "\n") + reply.substr(text);
    }
  }

 private:
  NodeClient connection_;
  int pings_ = 0;
};

class QueueNode {
 public:
  explicit QueueNode(ScriptSet::Flags flags) : scripts_(flags) {
    REQUIRE(redis({"CONFIG", "SET", "maxmemory", "0"}) == "OK");
    REQUIRE(redis({"FLUSHALL"}) == "OK");
  }
  ~QueueNode() { redis({"CONFIG", "SET", "maxmemory", "0"}); }
  QueueNode(const QueueNode&) = delete;
  QueueNode& operator=(const QueueNode&) = delete;

  [[nodiscard]] Words acquire_call(const std::string& owner, const std::string& order,
                                   const std::string& holder = "") const {
    return call(wire::script_for<engine::AcquireCommand>, "2",
                {lock_key, fence_key, owner, "30000", "1", order, holder});
  }
  [[nodiscard]] Words release_call(const std::string& owner, const std::string& order = "") const {
    return call(wire::script_for<engine::ReleaseCommand>, "1", {lock_key, owner, order});
  }
  [[nodiscard]] std::string acquire(const std::string& owner, const std::string& order,
                                    const std::string& holder = "") const {
    return redis(acquire_call(owner, order, holder));
  }
  [[nodiscard]] std::string release(const std::string& owner, const std::string& order = "") const {
    return redis(release_call(owner, order));
  }
  /// Both in one call.
  [[nodiscard]] std::string pass(const std::string& owner, const std::string& entry,
                                 const std::string& next, const std::string& order) const {
    return redis(call(wire::pass_script, "3",
                      {lock_key, lock_key, fence_key, owner, entry, next, "30000", "1", order}));
  }
  [[nodiscard]] std::string force(const std::string& owner) const {
    const std::string forced = std::string(lock_key) + ":forced";
    return redis(call(wire::script_for<engine::ForceCommand>, "3",
                      {lock_key, fence_key, forced, owner, "40000"}));
  }
  /// The lock is somebody's, and these wait for it.
  void queue_up(const Words& orders) const {
    REQUIRE(acquire("holder", "") == "1\n1");
    for (const std::string& order : orders) {
      REQUIRE(acquire("x", order).starts_with("0\n"));
      lengthen_life(order);
    }
  }
  /// However slow the machine is.
  static void lengthen_life(const std::string& order) {
    const std::string waiter = order.substr(0, order.find(' '));
    const std::string record = std::to_string(now_ms() + 60'000) + ' ' + order.back();
    REQUIRE(redis({"HSET", waiters_key, waiter, record}) == "0");
    for (const char* key : {queue_key, waiters_key}) redis({"PEXPIRE", key, "60000"});
  }
  /// As if its time had passed.
  static void end_lease() { redis({"DEL", lock_key}); }
  static void end_turn() { REQUIRE(redis({"HSET", waiters_key, "until", "1"}) == "0"); }
  /// As if none of it had passed, nor will.
  static void keep_turn() {
    REQUIRE(redis({"HSET", waiters_key, "until", std::to_string(now_ms() + 60'000)}) == "0");
  }

 private:
  [[nodiscard]] Words call(Script script, const std::string& keys, const Words& rest) const {
    Words command{"EVAL", scripts_.source(script), keys};
    command.insert(command.end(), rest.begin(), rest.end());
    return command;
  }

  ScriptSet scripts_;
};

std::string queue() {
  return redis({"ZRANGE", queue_key, "0", "-1"});
}
std::string turn() {
  return redis({"HGET", waiters_key, "turn"});
}
long long alive_for(const std::string& waiter) {
  return std::stoll(redis({"HGET", waiters_key, waiter})) - now_ms();
}
long long turn_ends() {
  return std::stoll(redis({"HGET", waiters_key, "until"}));
}
bool nobody_waits() {
  return redis({"EXISTS", queue_key, waiters_key}) == "0";
}
/// The elements of a refusal: 0, milliseconds, place.
long long element(const std::string& reply, int index) {
  std::size_t at = 0;
  for (; index > 0; --index) at = reply.find('\n', at) + 1;
  return std::stoll(reply.substr(at));
}

}  // namespace

TEST_CASE("a waiter that is refused is in the queue, at the place of its ticket") {
  for (const auto flags : both_forms) {
    const QueueNode node(flags);
    REQUIRE(node.acquire("holder", "") == "1\n1");
    const std::string second = node.acquire("x", "bb:1 1795227228964050 w");
    CHECK(element(second, 0) == 0);
    CHECK(element(second, 1) > 20'000);
    CHECK(element(second, 2) == 0);
    CHECK(element(node.acquire("x", "cc:1 1795227228964051 p"), 2) == 1);
    CHECK(element(node.acquire("x", "cc:2 1795227228964050 w"), 2) == 1);  // then by who it is
    CHECK(element(node.acquire("x", "aa:1 1795227228964049 w"), 2) == 0);
    CHECK(element(node.acquire("x", "bb:1 1795227228964050 w"), 2) == 1);
    CHECK(queue() == "aa:1\nbb:1\ncc:2\ncc:1");
    CHECK(redis({"ZSCORE", queue_key, "bb:1"}) == "1795227228964050");
    CHECK(turn() == "(nil)");
  }
}

TEST_CASE("a waiter counts as alive for as long as its manner of waiting says, from each call") {
  for (const auto flags : both_forms) {
    const QueueNode node(flags);
    REQUIRE(node.acquire("holder", "") == "1\n1");
    CHECK(node.acquire("x", "aa:1 5 w").starts_with("0\n"));
    CHECK(node.acquire("x", "bb:1 6 p").starts_with("0\n"));
    CHECK(alive_for("aa:1") > 1'500);
    CHECK(alive_for("aa:1") <= 2'500);
    CHECK(alive_for("bb:1") <= 250);
    CHECK(redis({"HGET", waiters_key, "bb:1"}).ends_with(" p"));
    for (const char* key : {queue_key, waiters_key}) {
      redis({"PEXPIRE", key, "500"});
      CHECK(node.acquire("x", "bb:1 6 p").starts_with("0\n"));
      CHECK(std::stoll(redis({"PTTL", key})) > 2'000);
      CHECK(std::stoll(redis({"PTTL", key})) <= 3'000);
    }
    redis({"HSET", waiters_key, "aa:1", "1 w"});
    CHECK(node.acquire("x", "aa:1 5 w").starts_with("0\n"));
    CHECK(alive_for("aa:1") > 1'500);
  }
}

TEST_CASE("who waits is kept as it was said first") {
  for (const auto flags : both_forms) {
    const QueueNode node(flags);
    REQUIRE(node.acquire("holder", "") == "1\n1");
    CHECK(node.acquire("x", "aa:1 5 w", "host 1").starts_with("0\n"));
    CHECK(node.acquire("x", "aa:1 5 w", "host 2").starts_with("0\n"));
    CHECK(redis({"HGET", waiters_key, "@aa:1"}) == "host 1");
    CHECK(node.release("x", "aa:1") == "0");
    CHECK(nobody_waits());
  }
}

TEST_CASE("who does not wait enters no queue, and takes no free lock before those who do") {
  for (const auto flags : both_forms) {
    const QueueNode node(flags);
    CHECK(node.acquire("a", "0") == "1\n1");
    CHECK(node.acquire("b", "0").substr(0, 2) == "0\n");
    CHECK(nobody_waits());
    CHECK(node.acquire("x", "aa:1 5 p").starts_with("0\n"));
    QueueNode::lengthen_life("aa:1 5 p");
    QueueNode::end_lease();
    const std::string refused = node.acquire("b", "0");
    CHECK(element(refused, 0) == 0);
    CHECK(element(refused, 1) == 60);
    CHECK(queue() == "aa:1");
    CHECK(turn() == "aa:1");
    CHECK(element(node.acquire("b", "0"), 1) <= 60);
  }
}

TEST_CASE("a release gives the first waiter its turn, and tells it and the second") {
  for (const auto flags : both_forms) {
    const QueueNode node(flags);
    Subscribed a("aa");
    Subscribed b("bb");
    node.queue_up({"bb:70 6 w", "aa:1 5 w", "aa:2 7 w"});
    CHECK(node.release("holder") == "1");
    CHECK(a.messages() == "1 0");
    CHECK(b.messages() == "70 20");
    CHECK(turn() == "aa:1");
    CHECK(turn_ends() <= now_ms() + 20);
  }
}

TEST_CASE("a release that is to tell the first waiter only leaves the second to other nodes") {
  for (const auto flags : both_forms) {
    const QueueNode node(flags);
    Subscribed a("aa");
    Subscribed b("bb");
    node.queue_up({"bb:70 6 w", "aa:1 5 w"});
    CHECK(node.release("holder", "!aa:2 7 w who it is") == "4");
    CHECK(a.messages() == "1 0");
    CHECK(b.messages().empty());
    CHECK(queue() == "aa:1\nbb:70\naa:2");
    CHECK(redis({"HGET", waiters_key, "@aa:2"}) == "who it is");
    CHECK(node.acquire("a", "aa:1 5 w") == "1\n2");
    CHECK(node.release("a", "!") == "1");
    CHECK(a.messages().empty());
    CHECK(b.messages() == "70 0");
    CHECK(node.release("x", "!bb:70") == "0");  // passes its turn on
    CHECK(a.messages() == "2 0");
  }
}

TEST_CASE("during a turn only its waiter is granted the lock; others are put into the queue") {
  for (const auto flags : both_forms) {
    const QueueNode node(flags);
    Subscribed a("aa");
    node.queue_up({"aa:1 5 w"});
    CHECK(node.release("holder") == "1");
    redis({"HSET", waiters_key, "until", std::to_string(now_ms() + 20'000)});
    const std::string refused = node.acquire("b", "bb:1 4 w");  // though before it
    CHECK(element(refused, 1) > 10'000);
    CHECK(element(refused, 1) <= 20'000);
    CHECK(element(refused, 2) == 0);
    CHECK(element(node.acquire("c", "0"), 1) > 10'000);
    CHECK(queue() == "bb:1\naa:1");
    CHECK(node.acquire("a", "aa:1 5 w") == "1\n2");
    CHECK(queue() == "bb:1");
    CHECK(turn() == "(nil)");
    CHECK(redis({"HGET", waiters_key, "aa:1"}) == "(nil)");
  }
}

TEST_CASE("the last waiter that is granted the lock leaves no queue behind") {
  for (const auto flags : both_forms) {
    const QueueNode node(flags);
    Subscribed a("aa");
    REQUIRE(node.acquire("holder", "") == "1\n1");
    CHECK(node.acquire("x", "aa:1 5 w", "who it is").starts_with("0\n"));
    CHECK(node.release("holder") == "1");
    CHECK(node.acquire("a", "aa:1 5 w") == "1\n2");
    CHECK(nobody_waits());
    CHECK(node.release("a", "aa:1") == "1");
    CHECK(node.acquire("a", "aa:2 9 w") == "1\n3");
    CHECK(nobody_waits());
  }
}

TEST_CASE("a lock that has expired is kept for the first in the queue, whoever asks first") {
  for (const auto flags : both_forms) {
    const QueueNode node(flags);
    Subscribed a("aa");
    Subscribed b("bb");
    node.queue_up({"aa:1 5 w", "bb:1 6 w"});
    QueueNode::end_lease();
    const std::string refused = node.acquire("b", "bb:1 6 w");
    CHECK(element(refused, 1) == 20);
    CHECK(element(refused, 2) == 1);
    CHECK(a.messages() == "1 0");
    CHECK(b.messages().empty());  // it has its reply
    CHECK(node.acquire("a", "aa:1 5 w") == "1\n2");
    CHECK(queue() == "bb:1");
    QueueNode::end_lease();
    CHECK(node.acquire("b", "bb:1 6 w") == "1\n3");
    CHECK(nobody_waits());
  }
}

TEST_CASE("who does not use its turn is not waited for again, but may come back") {
  for (const auto flags : both_forms) {
    const QueueNode node(flags);
    Subscribed a("aa");
    Subscribed b("bb");
    node.queue_up({"aa:1 5 w", "bb:1 6 w", "bb:2 7 w"});
    CHECK(node.release("holder") == "1");
    QueueNode::end_turn();
    CHECK(element(node.acquire("c", "bb:2 7 w"), 1) == 20);
    QueueNode::keep_turn();
    CHECK(turn() == "bb:1");
    CHECK(queue() == "bb:1\nbb:2");
    CHECK(b.messages() == "1 20\n1 0");
    CHECK(element(node.acquire("a", "aa:1 5 w"), 2) == 0);
    QueueNode::end_turn();
    CHECK(node.acquire("a", "aa:1 5 w") == "1\n2");
    CHECK(queue() == "bb:1\nbb:2");
  }
}

TEST_CASE("a turn that is over may still be used by its waiter") {
  for (const auto flags : both_forms) {
    const QueueNode node(flags);
    Subscribed a("aa");
    node.queue_up({"aa:1 5 w", "aa:2 6 w"});
    CHECK(node.release("holder") == "1");
    QueueNode::end_turn();
    CHECK(node.acquire("a", "aa:1 5 w") == "1\n2");
    CHECK(queue() == "aa:2");
  }
}

TEST_CASE("a client that no message reaches is out of the queue at once") {
  for (const auto flags : both_forms) {
    const QueueNode node(flags);
    Subscribed b("bb");
    node.queue_up({"aa:1 5 w", "aa:2 6 w", "bb:1 7 w", "aa:3 8 w", "bb:2 9 w", "aa:4 10 w"});
    CHECK(node.release("holder") == "1");
    CHECK(b.messages() == "1 0\n2 20");
    CHECK(turn() == "bb:1");
    CHECK(queue() == "bb:1\nbb:2\naa:4");
  }
}

TEST_CASE("a waiter that has not asked again within its time is out of the queue") {
  for (const auto flags : both_forms) {
    const QueueNode node(flags);
    Subscribed a("aa");
    for (const char* record : {"1 w", "1 p", "no record", ""}) {
      const QueueNode fresh(flags);
      fresh.queue_up({"aa:1 5 w", "aa:2 6 w"});
      redis({"HSET", waiters_key, "aa:1", record});
      CHECK(fresh.release("holder") == "1");
      CHECK(queue() == "aa:2");
      CHECK(a.messages() == "2 0");
    }
    const QueueNode fresh(flags);
    fresh.queue_up({"aa:1 5 w"});
    redis({"HSET", waiters_key, "aa:1", "1 w"});
    CHECK(fresh.release("holder") == "1");
    CHECK(nobody_waits());
  }
}

TEST_CASE("a waiter that polls has a longer turn, and is told nothing") {
  for (const auto flags : both_forms) {
    const QueueNode node(flags);
    Subscribed a("aa");
    node.queue_up({"aa:1 5 p", "aa:2 6 w", "aa:3 7 w"});
    const long long before = now_ms();
    CHECK(node.release("holder") == "1");
    CHECK(turn() == "aa:1");
    CHECK(turn_ends() >= before + 60);
    CHECK(turn_ends() <= now_ms() + 60);
    CHECK(a.messages() == "2 60");
    CHECK(node.acquire("a", "aa:1 5 p") == "1\n2");
  }
}

TEST_CASE("a release of nobody's lock gives no turn, and lets its waiter go") {
  for (const auto flags : both_forms) {
    const QueueNode node(flags);
    Subscribed a("aa");
    node.queue_up({"aa:1 5 w", "aa:2 6 w"});
    CHECK(node.release("x", "aa:1") == "0");
    CHECK(queue() == "aa:2");
    CHECK(turn() == "(nil)");
    QueueNode::end_lease();
    CHECK(node.release("x", "") == "0");
    CHECK(node.release("x", "aa:9") == "0");
    CHECK(turn() == "(nil)");
    CHECK(a.messages().empty());
    CHECK(node.release("x", "aa:2") == "0");
    CHECK(nobody_waits());
  }
}

TEST_CASE("who leaves while the turn is its own passes it on, unless the lock is taken") {
  for (const auto flags : both_forms) {
    const QueueNode node(flags);
    Subscribed a("aa");
    node.queue_up({"aa:1 5 w", "aa:2 6 w"});
    CHECK(node.release("holder") == "1");
    CHECK(a.messages() == "1 0\n2 20");
    CHECK(node.release("x", "aa:1") == "0");
    CHECK(a.messages() == "2 0");
    CHECK(turn() == "aa:2");
    redis({"HSET", lock_key, "somebody", "1"});
    CHECK(node.acquire("x", "aa:3 7 w").starts_with("0\n"));
    CHECK(node.release("x", "aa:2") == "0");
    CHECK(turn() == "(nil)");
    CHECK(a.messages().empty());
  }
}

TEST_CASE("a release that keeps its place in the queue enters before the next one is told") {
  for (const auto flags : both_forms) {
    const QueueNode node(flags);
    Subscribed a("aa");
    Subscribed b("bb");
    REQUIRE(node.acquire("a", "aa:1 5 w") == "1\n1");
    CHECK(node.acquire("x", "bb:1 6 w").starts_with("0\n"));
    CHECK(node.release("a", "aa:1 5 w") == "2");
    CHECK(queue() == "aa:1\nbb:1");
    CHECK(turn() == "aa:1");
    CHECK(a.messages() == "1 0");
    CHECK(b.messages() == "1 20");
    CHECK(alive_for("aa:1") > 1'500);
    REQUIRE(node.acquire("a", "aa:1 5 w") == "1\n2");
    CHECK(node.release("a", "aa:1 7 w") == "3");
    CHECK(queue() == "bb:1\naa:1");
    CHECK(turn() == "bb:1");
    // Also where nobody else waits, and where it has nothing to release.
    const QueueNode fresh(flags);
    REQUIRE(fresh.acquire("a", "") == "1\n1");
    CHECK(fresh.release("x", "aa:1 5 w") == "-1");
    CHECK(fresh.release("x", "aa:2 6 w") == "-2");
    CHECK(queue() == "aa:1\naa:2");
    CHECK(turn() == "(nil)");
  }
}

TEST_CASE("any grant ends a turn, and takes no place from who had it") {
  for (const auto flags : both_forms) {
    const QueueNode node(flags);
    Subscribed a("aa");
    node.queue_up({"aa:1 5 w"});
    CHECK(node.release("holder") == "1");
    CHECK(node.acquire("b", "") == "1\n2");  // out of turn
    CHECK(turn() == "(nil)");
    CHECK(queue() == "aa:1");
    CHECK(node.release("b") == "1");
    CHECK(a.messages() == "1 0\n1 0");
    QueueNode::end_turn();
    CHECK(node.acquire("a", "aa:1 5 w") == "1\n3");
  }
}

TEST_CASE("one release of many locks gives the turn of each") {
  for (const auto flags : both_forms) {
    const QueueNode node(flags);
    Subscribed a("aa");
    redis({"HSET", "l1", "o", "1"});
    redis({"ZADD", "l1:queue", "5", "aa:1"});
    redis({"HSET", "l1:waiters", "aa:1", "9999999999999 w"});
    redis({"HSET", "l2", "o", "1"});
    redis({"SET", "l2:queue", "of another type"});
    redis({"HSET", "l3", "o", "1"});
    redis({"ZADD", "l3:queue", "5", "aa:3", "6", "aa:4"});
    redis({"HSET", "l3:waiters", "aa:3", "9999999999999 w", "aa:4", "9999999999999 w"});
    const std::string source = ScriptSet(flags).source(wire::script_for<engine::ReleaseCommand>);
    CHECK(redis({"EVAL", source, "4", "l1", "l2", "l3", "l4", "o", "", "o", "", "o", "aa:3", "o",
                 "aa:5 5 p"}) == "1\n1\n1\n-1");
    CHECK(a.messages() == "1 0\n4 0");
    CHECK(redis({"EXISTS", "l1", "l2", "l3"}) == "0");
    CHECK(redis({"ZRANGE", "l4:queue", "0", "-1"}) == "aa:5");
  }
}

TEST_CASE("a lock that is taken by force goes to the first in the queue") {
  for (const auto flags : both_forms) {
    const QueueNode node(flags);
    Subscribed a("aa");
    node.queue_up({"aa:1 5 w"});
    CHECK(node.force("somebody else") == "0");
    CHECK(a.messages().empty());
    CHECK(node.force("holder") == "1");
    CHECK(a.messages() == "1 0");
    CHECK(node.acquire("holder", "aa:1 5 w") == "3");
    CHECK(node.acquire("a", "aa:1 5 w").starts_with("1\n"));
  }
}

TEST_CASE("a grant that fails keeps its waiter's place") {
  for (const auto flags : both_forms) {
    const QueueNode node(flags);
    Subscribed a("aa");
    node.queue_up({"aa:1 5 w"});
    CHECK(node.release("holder") == "1");
    redis({"SET", fence_key, "9007199254740991"});
    CHECK(contains(node.acquire("a", "aa:1 5 w"), "has reached 2^53"));
    CHECK(queue() == "aa:1");
    CHECK(turn() == "aa:1");
  }
}

TEST_CASE("a damaged queue is no queue: locks are taken and given back all the same") {
  for (const auto flags : both_forms) {
    for (const char* damaged : {queue_key, waiters_key}) {
      const QueueNode node(flags);
      redis({"SET", damaged, "of another type"});
      CHECK(node.acquire("a", "aa:1 5 w") == "1\n1");
      CHECK(element(node.acquire("b", "bb:1 6 w"), 1) > 20'000);
      CHECK(node.release("a", "aa:1 5 w") == "1");
      CHECK(node.acquire("b", "0") == "1\n2");
      CHECK(node.release("b", "bb:1") == "1");
      CHECK(redis({"GET", damaged}) == "of another type");
    }
  }
}

TEST_CASE("a client that may not queue takes locks out of turn") {
  for (const auto flags : both_forms) {
    for (const char* denied : {"-zadd", "-publish", "-hmget", "-zrange", "-zrem", "-time"}) {
      const QueueNode node(flags);
      Subscribed a("aa");
      redis({"ACL", "SETUSER", "weak", "reset", "on", "nopass", "~*", "allchannels", "+@all",
             denied});
      NodeClient client(fleet().port(0));
      REQUIRE(client.command({"AUTH", "weak", "any"}) == "OK");
      node.queue_up({"aa:1 5 w"});
      CHECK(client.command(node.acquire_call("b", "bb:1 6 w")).starts_with("0\n"));
      CHECK(node.release("holder") == "1");
      QueueNode::end_turn();
      const std::string told = client.command(node.acquire_call("b", "bb:1 6 w"));
      CHECK_MESSAGE((told == "1\n2" || told.starts_with("0\n20\n")), denied);
      if (told == "1\n2") CHECK(client.command(node.release_call("b", "bb:1")) == "1");
    }
    // The user of before there were queues.
    const QueueNode node(flags);
    redis({"ACL",           "SETUSER",    "weak",  "reset",   "on",       "nopass",
           "resetchannels", "~redlock:*", "+eval", "+type",   "+hexists", "+hget",
           "+hset",         "+hdel",      "+get",  "+set",    "+incr",    "+decr",
           "+pttl",         "+pexpire",   "+del",  "+exists", "+time"});
    NodeClient client(fleet().port(0));
    REQUIRE(client.command({"AUTH", "weak", "any"}) == "OK");
    node.queue_up({"aa:1 5 w"});
    CHECK(element(client.command(node.acquire_call("b", "bb:1 4 p")), 1) > 20'000);
    QueueNode::end_lease();
    CHECK(client.command(node.acquire_call("b", "bb:1 6 p")) == "1\n2");
    CHECK(client.command(node.release_call("b", "bb:1 6 p")) == "1");
    CHECK(queue() == "aa:1");
    redis({"ACL", "DELUSER", "weak"});
  }
}

TEST_CASE("a full node puts nobody into the queue, grants nothing, and still gives turns") {
  for (const auto flags : both_forms) {
    const QueueNode node(flags);
    Subscribed a("aa");
    node.queue_up({"aa:1 5 w"});
    redis({"SET", "ballast", std::string(100'000, 'x')});
    REQUIRE(redis({"CONFIG", "SET", "maxmemory", "1"}) == "OK");
    CHECK(node.acquire("b", "aa:2 6 w").starts_with("0\n"));
    CHECK(queue() == "aa:1");
    CHECK(node.release("holder", "aa:3 7 w") == "3");
    CHECK(a.messages() == "1 0\n3 20");
    CHECK(contains(node.acquire("a", "aa:1 5 w"), "OOM"));
    CHECK(redis({"EXISTS", lock_key}) == "0");
    CHECK(queue() == "aa:1\naa:3");
    CHECK(node.release("x", "aa:1") == "0");
    CHECK(node.release("x", "aa:3") == "0");
    CHECK(nobody_waits());
  }
}

TEST_CASE("a lock is passed on to the first waiter without a message, and without a turn") {
  for (const auto flags : both_forms) {
    const QueueNode node(flags);
    Subscribed a("aa");
    Subscribed b("bb");
    node.queue_up({"aa:1 5 w", "bb:1 6 w"});
    CHECK(node.pass("holder", "!aa:2 7 w who", "next", "aa:1 5 w") == "4\n1\n2");
    CHECK(redis({"HGETALL", lock_key}) == "next\n1");
    CHECK(std::stoll(redis({"PTTL", lock_key})) > 20'000);
    CHECK(queue() == "bb:1\naa:2");
    CHECK(redis({"HGET", waiters_key, "@aa:2"}) == "who");
    CHECK(redis({"HEXISTS", waiters_key, "aa:1"}) == "0");
    CHECK(turn() == "(nil)");
    CHECK(a.messages().empty());
    CHECK(b.messages().empty());
  }
}

TEST_CASE("a lock is not passed on before the first waiter, nor by who does not have it") {
  for (const auto flags : both_forms) {
    const QueueNode node(flags);
    Subscribed a("aa");
    const Subscribed b("bb");
    node.queue_up({"aa:1 5 w", "bb:1 6 w"});
    CHECK(node.pass("other", "", "next", "aa:1 5 w").starts_with("0\n0\n"));
    CHECK(redis({"HGETALL", lock_key}) == "holder\n1");
    const std::string refused = node.pass("holder", "", "next", "bb:1 6 w");
    CHECK(element(refused, 0) == 1);
    CHECK(element(refused, 1) == 0);
    CHECK(element(refused, 3) == 1);
    CHECK(redis({"EXISTS", lock_key}) == "0");
    CHECK(turn() == "aa:1");
    CHECK(a.messages() == "1 0");
    // Without a lock: an acquire behind a release of nothing.
    CHECK(node.pass("holder", "aa:1", "next", "0").starts_with("0\n0\n"));
    CHECK(queue() == "bb:1");
    // Out of turn, as those who barge.
    CHECK(node.pass("holder", "", "next", "") == "0\n1\n2");
    CHECK(node.pass("next", "", "last", "") == "1\n1\n3");
  }
}

TEST_CASE("of a release and an acquire in one call one may fail alone") {
  for (const auto flags : both_forms) {
    const QueueNode node(flags);
    Subscribed a("aa");
    node.queue_up({"aa:1 5 w"});
    SUBCASE("at the fence") {
      redis({"DEL", fence_key});
      redis({"RPUSH", fence_key, "x"});
      const std::string reply = node.pass("holder", "", "next", "aa:1 5 w");
      CHECK(reply.starts_with("1\n"));
      CHECK(contains(reply, "WRONGTYPE"));
      CHECK(redis({"EXISTS", lock_key}) == "0");
      CHECK(queue() == "aa:1");
    }
    SUBCASE("as its owner was forced out") {
      CHECK(node.force("next") == "0");
      CHECK(node.pass("holder", "", "next", "aa:1 5 w") == "1\n3");
      CHECK(redis({"EXISTS", lock_key}) == "0");
      CHECK(a.messages() == "1 0");
      CHECK(turn() == "aa:1");
    }
    SUBCASE("at maxmemory, unless as much was freed before") {
      redis({"SET", "ballast", std::string(100'000, 'x')});
      REQUIRE(redis({"CONFIG", "SET", "maxmemory", "1"}) == "OK");
      CHECK(node.pass("holder", "", "next", "aa:1 5 w") == "1\n1\n2");
      QueueNode::end_lease();
      const std::string reply = node.pass("next", "", "last", "");
      CHECK(reply.starts_with("0\n"));
      CHECK(contains(reply, "OOM"));
    }
    redis({"DEL", "ballast"});
  }
}

}  // namespace redlock::testing::queue_script
