// SPDX-License-Identifier: MIT
// Every branch of the three scripts, on a real server, in the form for Redis 7 and in the form for
// 6.2, for a user that may touch no key but those that a call names. A reply's elements stand on
// lines of their own.
#include <doctest/doctest.h>
#include <string>
#include <vector>

#include "cluster/fleet.hpp"
#include "net/kernel_random.hpp"
#include "net_narrow_user.hpp"
#include "net_server_kind.hpp"
#include "support/text.hpp"
#include "wire/adoption.hpp"
#include "wire/script_set.hpp"

using namespace redlock::wire;
using redlock::cluster::Fleet;
using redlock::testing::contains;
using redlock::testing::joined;
using redlock::testing::LockKeys;
using redlock::testing::NarrowUser;
using redlock::testing::Words;
namespace engine = redlock::engine;

namespace {

const LockKeys keys("n");
const std::string& lock_key = keys.lock;
const std::string& fence_key = keys.fence;
constexpr const char* token_limit = "9007199254740992";  // 2^53
constexpr const char* largest = "9007199254740991";      // the last token
constexpr const char* floor_limit = "4503599627370496";  // 2^52
constexpr const char* beyond_floors = "4503599627370497";
constexpr const char* clock_token = "1795227228964050";  // microseconds: 16 digits

// One server for the whole file: starting one takes longer than all tests.
Fleet& fleet() {
  static Fleet one({.nodes = 1});
  return one;
}

std::string redis(const Words& command) {
  return fleet().run(0, command);
}

NarrowUser& narrow_user() {
  static NarrowUser one(fleet());
  return one;
}

// A node without keys and the scripts in one of their two forms.
class Node {
 public:
  explicit Node(ScriptSet::Flags flags) : scripts_(flags) {
    REQUIRE(redis({"CONFIG", "SET", "maxmemory", "0"}) == "OK");
    REQUIRE(redis({"FLUSHALL"}) == "OK");
  }
  ~Node() { redis({"CONFIG", "SET", "maxmemory", "0"}); }
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  [[nodiscard]] std::string acquire(const std::string& owner, const std::string& floor = "1",
                                    const std::string& lease = "30000") const {
    return call(script_for<engine::AcquireCommand>, keys.of_acquire(owner),
                {owner, lease, floor, "", "", ""});
  }
  [[nodiscard]] std::string hold(const std::string& owner, const std::string& count = "1",
                                 const std::string& token = "1",
                                 const std::string& lease = "30000") const {
    return call(script_for<engine::HoldCommand>, keys.of_hold(owner), {owner, count, token, lease});
  }
  [[nodiscard]] std::string hold_several(const Words& their_keys, const Words& arguments) const {
    return call(script_for<engine::HoldCommand>, their_keys, arguments);
  }
  [[nodiscard]] std::string release(const std::string& owner) const {
    return call(script_for<engine::ReleaseCommand>, keys.of_release(), {owner, "2"});
  }
  void fill() const {
    redis({"SET", "ballast", std::string(100'000, 'x')});
    REQUIRE(redis({"CONFIG", "SET", "maxmemory", "1"}) == "OK");
    REQUIRE(contains(redis({"SET", "more", "x"}), "OOM"));
  }

 private:
  [[nodiscard]] std::string call(Script script, const Words& its_keys,
                                 const Words& arguments) const {
    return narrow_user().eval(scripts_.source(script), its_keys, arguments);
  }

  ScriptSet scripts_;
};

long long left() {
  return std::stoll(redis({"PTTL", lock_key}));
}
std::string fence() {
  return redis({"GET", fence_key});
}
std::string count_of(const std::string& owner) {
  return redis({"HGET", lock_key, owner});
}
bool lock_exists() {
  return redis({"EXISTS", lock_key}) != "0";
}

const redlock::testing::ScriptForms both_forms(fleet);

}  // namespace

TEST_CASE("acquire grants a free lock, and counts the fence") {
  for (const auto flags : both_forms) {
    const Node node(flags);
    CHECK(node.acquire("a") == "1\n1");
    CHECK(fence() == "1");
    CHECK(redis({"HGETALL", lock_key}) == "a\n1");
    CHECK(left() > 20'000);
    CHECK(left() <= 30'000);
    CHECK(node.release("a") == "1");
    CHECK(node.acquire("b") == "1\n2");
  }
}

TEST_CASE(
    "acquire for the owner who has the lock is no grant: it makes it last, and counts nothing") {
  for (const auto flags : both_forms) {
    const Node node(flags);
    REQUIRE(node.acquire("a") == "1\n1");
    redis({"SET", fence_key, "7"});
    CHECK(node.acquire("a", "100", "90000") == "4");
    CHECK(fence() == "7");
    CHECK(left() > 60'000);
    CHECK(node.acquire("a", "100", "1000") == "4");
    CHECK(left() > 60'000);
    redis({"PERSIST", lock_key});
    CHECK(node.acquire("a") == "4");
    CHECK(left() > 20'000);
    CHECK(redis({"HGETALL", lock_key}) == "a\n1");
  }
}

TEST_CASE("acquire is refused while another owner has the lock, with the time that is left") {
  for (const auto flags : both_forms) {
    const Node node(flags);
    REQUIRE(node.acquire("a") == "1\n1");
    const std::string refused = node.acquire("b");
    CHECK(refused.substr(0, 2) == "0\n");
    CHECK(std::stoll(refused.substr(2)) > 20'000);
    CHECK(std::stoll(refused.substr(2)) <= 30'000);
    CHECK(fence() == "1");
    redis({"PERSIST", lock_key});
    CHECK(node.acquire("b") == "0\n-1");
  }
}

TEST_CASE("acquire is refused by a key of another type, and leaves it alone") {
  for (const auto flags : both_forms) {
    const Node node(flags);
    redis({"SET", lock_key, "somebody's"});
    CHECK(node.acquire("a") == "2");
    CHECK(redis({"GET", lock_key}) == "somebody's");
    CHECK(redis({"EXISTS", fence_key}) == "0");
  }
}

TEST_CASE("a fence of another type, or no number, fails acquire before the lock is written") {
  for (const auto flags : both_forms) {
    const Node node(flags);
    redis({"RPUSH", fence_key, "x"});
    CHECK(contains(node.acquire("a"), "WRONGTYPE"));
    CHECK_FALSE(lock_exists());
    redis({"DEL", fence_key});
    redis({"SET", fence_key, "abc"});
    CHECK(contains(node.acquire("a"), "not an integer"));
    CHECK_FALSE(lock_exists());
  }
}

TEST_CASE("the floor lifts a token, exactly, and never lowers one") {
  for (const auto flags : both_forms) {
    const Node node(flags);
    CHECK(node.acquire("a", clock_token) == "1\n" + std::string(clock_token));
    CHECK(fence() == clock_token);
    REQUIRE(node.release("a") == "1");
    CHECK(node.acquire("b", "5") == "1\n1795227228964051");
    CHECK(fence() == "1795227228964051");
    REQUIRE(node.release("b") == "1");
    CHECK(node.acquire("c", floor_limit) == "1\n" + std::string(floor_limit));
    CHECK(fence() == floor_limit);
    REQUIRE(node.release("c") == "1");
    CHECK(node.acquire("d") == "1\n" + std::string(beyond_floors));
  }
}

TEST_CASE("floors end at 2^52 and tokens at 2^53, with nothing written") {
  for (const auto flags : both_forms) {
    const Node node(flags);
    for (const char* floor : {beyond_floors, largest, token_limit, "nan", "x"}) {
      CHECK_MESSAGE(contains(node.acquire("a", floor), "ERR"), floor);
      CHECK(redis({"EXISTS", lock_key, fence_key}) == "0");
    }
    CHECK(contains(node.acquire("a", beyond_floors), "the floor is beyond 2^52"));
    for (const char* full : {largest, token_limit, "9007199254740993", "9223372036854775806"}) {
      redis({"SET", fence_key, full});
      CHECK_MESSAGE(contains(node.acquire("a"), "has reached 2^53"), full);
      CHECK(fence() == full);
      CHECK_FALSE(lock_exists());
    }
    redis({"SET", fence_key, "9223372036854775807"});
    CHECK(contains(node.acquire("a"), "would overflow"));
    CHECK_FALSE(lock_exists());
  }
}

TEST_CASE("a lease that cannot be set leaves no lock behind") {
  for (const auto flags : both_forms) {
    const Node node(flags);
    CHECK(contains(node.acquire("a", "1", "99999999999999999999"), "ERR"));
    CHECK_FALSE(lock_exists());
    redis({"ACL", "SETUSER", "weak", "on", "nopass", "~*", "+@all", "-pexpire"});
    const std::string source = ScriptSet(flags).source(script_for<engine::AcquireCommand>);
    const Words as_weak =
        redlock::testing::eval(source, keys.of_acquire("a"), {"a", "30000", "1", "", "", ""});
    redlock::cluster::NodeClient client(fleet().port(0));
    REQUIRE(client.command({"AUTH", "weak", "any"}) == "OK");
    const std::string refusal = client.command(as_weak);
    CHECK((contains(refusal, "can't run this command") ||
           contains(refusal, "has no permissions to run the 'pexpire' command")));
    CHECK_FALSE(lock_exists());
    redis({"ACL", "DELUSER", "weak"});
  }
}

TEST_CASE("hold confirms, and changes only what differs") {
  for (const auto flags : both_forms) {
    const Node node(flags);
    REQUIRE(node.acquire("a", "10") == "1\n10");
    CHECK(node.hold("a", "1", "10", "30000") == "1\n10");
    CHECK(node.hold("a", "3", "10") == "1\n10");
    CHECK(count_of("a") == "3");
    CHECK(node.hold("a", "2", "10") == "1\n10");
    CHECK(count_of("a") == "2");
  }
}

TEST_CASE("hold raises the fence to the token, exactly, and never lowers it") {
  for (const auto flags : both_forms) {
    const Node node(flags);
    REQUIRE(node.acquire("a") == "1\n1");
    CHECK(node.hold("a", "1", clock_token) == "1\n" + std::string(clock_token));
    CHECK(fence() == clock_token);
    CHECK(node.hold("a", "1", "5") == "1\n" + std::string(clock_token));
    CHECK(fence() == clock_token);
    CHECK(node.hold("a", "1", floor_limit) == "1\n" + std::string(floor_limit));
    CHECK(fence() == floor_limit);
    CHECK(node.hold("a", "1", "0") == "1\n" + std::string(floor_limit));
    redis({"DEL", fence_key});
    CHECK(node.hold("a", "1", clock_token) == "1\n" + std::string(clock_token));
    CHECK(fence() == clock_token);
  }
}

TEST_CASE("hold raises a fence to the end of tokens, and not beyond") {
  for (const auto flags : both_forms) {
    const Node node(flags);
    REQUIRE(node.acquire("a") == "1\n1");
    CHECK(node.hold("a", "1", largest) == "1\n" + std::string(largest));
    for (const char* end : {token_limit, "9223372036854775807"}) {
      CHECK_MESSAGE(node.hold("a", "1", end) == "1\n" + std::string(largest), end);
      CHECK(fence() == largest);
    }
  }
}

TEST_CASE("hold lengthens the lease and never shortens it") {
  for (const auto flags : both_forms) {
    const Node node(flags);
    REQUIRE(node.acquire("a", "1", "30000") == "1\n1");
    CHECK(node.hold("a", "1", "1", "60000") == "1\n1");
    CHECK(left() > 50'000);
    CHECK(node.hold("a", "2", "1", "1000") == "1\n1");
    CHECK(left() > 50'000);
    redis({"PERSIST", lock_key});
    CHECK(node.hold("a", "1", "1", "1000") == "1\n1");
    CHECK(left() > 0);
    CHECK(left() <= 1'000);
  }
}

TEST_CASE("hold tells free, taken and foreign apart, and changes nothing there") {
  for (const auto flags : both_forms) {
    const Node node(flags);
    CHECK(node.hold("a", "1", "50") == "0");
    CHECK(redis({"EXISTS", lock_key, fence_key}) == "0");
    REQUIRE(node.acquire("b") == "1\n1");
    CHECK(node.hold("a", "1", "50", "90000") == "-1");
    CHECK(fence() == "1");
    CHECK(left() <= 30'000);
    CHECK(redis({"HGETALL", lock_key}) == "b\n1");
    redis({"DEL", lock_key});
    redis({"SADD", lock_key, "a"});
    CHECK(node.hold("a") == "-2");
  }
}

TEST_CASE("hold with a fence of no use still holds, and says so with fence 0") {
  for (const auto flags : both_forms) {
    const Node node(flags);
    REQUIRE(node.acquire("a") == "1\n1");
    for (const char* damaged : {"abc", "-3", "1e3", "", token_limit, "99999999999999999999"}) {
      redis({"SET", fence_key, damaged});
      CHECK_MESSAGE(node.hold("a", "2", "50", "90000") == "1\n0", damaged);
      CHECK(fence() == damaged);
    }
    redis({"DEL", fence_key});
    redis({"RPUSH", fence_key, "x"});
    CHECK(node.hold("a", "2", "50", "90000") == "1\n0");
    CHECK(count_of("a") == "2");
    CHECK(left() > 60'000);
  }
}

TEST_CASE("one hold carries several locks, and a bad one harms no other") {
  for (const auto flags : both_forms) {
    const Node node(flags);
    redis({"HSET", "l1", "a", "1"});
    redis({"SET", "l2", "foreign"});
    redis({"HSET", "l3", "a", "1"});
    redis({"RPUSH", "f3", "x"});
    redis({"HSET", "l5", "z", "1"});
    redis({"HSET", "l6", "c", "1"});
    Words all;
    for (const std::string number : {"1", "2", "3", "4", "5", "6"}) {
      all = joined(all, {"l" + number, "f" + number, "o" + number});
    }
    const Words arguments{"a", "1", "10", "1000", "a", "1", "10",        "1000",
                          "a", "2", "10", "1000", "a", "1", "10",        "1000",
                          "a", "1", "10", "1000", "c", "4", clock_token, "5000"};
    CHECK(node.hold_several(all, arguments) ==
          "1\n10\n-2\n1\n0\n0\n-1\n1\n" + std::string(clock_token));
    CHECK(redis({"GET", "f1"}) == "10");
    CHECK(redis({"HGET", "l3", "a"}) == "2");
    CHECK(redis({"HGET", "l6", "c"}) == "4");
    CHECK(redis({"GET", "f6"}) == clock_token);
    CHECK(redis({"EXISTS", "f2", "f4", "f5"}) == "0");
  }
}

TEST_CASE("release deletes the owner's lock and nobody else's") {
  for (const auto flags : both_forms) {
    const Node node(flags);
    CHECK(node.release("a") == "0");
    REQUIRE(node.acquire("a") == "1\n1");
    CHECK(node.release("b") == "0");
    CHECK(lock_exists());
    CHECK(node.release("a") == "1");
    CHECK_FALSE(lock_exists());
    CHECK(fence() == "1");
    redis({"SET", lock_key, "foreign"});
    CHECK(node.release("a") == "0");
    CHECK(redis({"GET", lock_key}) == "foreign");
  }
}

TEST_CASE("a full node grants nothing new, but still says who has the lock") {
  for (const auto flags : both_forms) {
    const Node node(flags);
    REQUIRE(node.acquire("a") == "1\n1");
    node.fill();
    CHECK(node.acquire("b").substr(0, 2) == "0\n");
    CHECK(node.acquire("a", "1", "60000") == "4");
    CHECK(left() > 50'000);
    redis({"DEL", lock_key});
    CHECK(contains(node.acquire("a"), "OOM"));
    CHECK_FALSE(lock_exists());
    CHECK(fence() == "1");
  }
}

TEST_CASE("on a full node hold and release work, whatever they have to change") {
  for (const auto flags : both_forms) {
    const Node node(flags);
    REQUIRE(node.acquire("a") == "1\n1");
    node.fill();
    CHECK(node.hold("a", "1", "1", "60000") == "1\n1");
    CHECK(left() > 50'000);
    CHECK(node.hold("a", "2", "1", "60000") == "1\n1");
    CHECK(node.hold("a", "3", "1", "1000") == "1\n1");
    CHECK(count_of("a") == "3");
    CHECK(node.hold("a", "3", clock_token, "1000") == "1\n" + std::string(clock_token));
    CHECK(fence() == clock_token);
    CHECK(left() > 50'000);
    CHECK(node.release("a") == "1");
    CHECK_FALSE(lock_exists());
  }
}

TEST_CASE("a node that lost the id for which a client waited keeps the new one only for a while") {
  redlock::net::KernelRandom random;
  const SetTerms set{.nodes = 1, .max_lease = std::chrono::milliseconds(2'000)};
  const std::string lost = "lost";
  const std::string notes(redlock_layout.notes);
  CHECK(fleet().run(0, adoption_command(random, set, "s", "", &lost)) != "written");
  const int ends_in = std::stoi(fleet().run(0, {"PTTL", notes}));
  CHECK(ends_in > 0);
  CHECK(ends_in <= 4 * 2'000 + 60'000);
  fleet().run(0, {"DEL", notes});
}
