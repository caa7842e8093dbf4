// SPDX-License-Identifier: MIT
// The script that releases by force, and what acquire and hold make of it, on a real server, in the
// form for Redis 7 and in the form for 6.2: what it does, what a server can refuse, and calls with
// many locks.
#include <doctest/doctest.h>
#include <string>
#include <vector>

#include "cluster/fleet.hpp"
#include "net_server_kind.hpp"
#include "support/text.hpp"
#include "wire/script_set.hpp"

using namespace redlock::wire;
using redlock::cluster::Fleet;
using redlock::testing::contains;
namespace engine = redlock::engine;

namespace {

using Words = std::vector<std::string>;

constexpr const char* lock_key = "redlock:lock:{n}";
constexpr const char* fence_key = "redlock:fence:1";
constexpr const char* forced_key = "redlock:lock:{n}:forced";

Fleet& fleet() {
  static Fleet one({.nodes = 1});
  return one;
}
const redlock::testing::ScriptForms both_forms(fleet);

std::string redis(const Words& command) {
  return fleet().run(0, command);
}

Words eval(ScriptSet::Flags flags, Script script, const std::string& keys, const Words& rest) {
  Words command{"EVAL", ScriptSet(flags).source(script), keys};
  command.insert(command.end(), rest.begin(), rest.end());
  return command;
}
Words acquire(ScriptSet::Flags flags, const std::string& owner) {
  return eval(flags, script_for<engine::AcquireCommand>, "2",
              {lock_key, fence_key, owner, "30000", "1"});
}
Words hold(ScriptSet::Flags flags, const std::string& owner) {
  return eval(flags, script_for<engine::HoldCommand>, "2",
              {lock_key, fence_key, owner, "1", "1", "30000"});
}
Words force(ScriptSet::Flags flags, const std::string& owner, const std::string& ms = "40000") {
  return eval(flags, script_for<engine::ForceCommand>, "3",
              {lock_key, fence_key, forced_key, owner, ms});
}

}  // namespace

TEST_CASE("a forced owner loses the lock, and is turned away for the time given and no longer") {
  for (const auto flags : both_forms) {
    redis({"FLUSHALL"});
    REQUIRE(redis(acquire(flags, "a")) == "1\n1");
    CHECK(redis(force(flags, "a")) == "1");
    CHECK(redis({"GET", fence_key}) == "2");
    CHECK(redis(acquire(flags, "a")) == "3");
    CHECK(redis(hold(flags, "a")) == "-3");
    CHECK(std::stoll(redis({"PTTL", forced_key})) > 30'000);
    CHECK(std::stoll(redis({"PTTL", forced_key})) <= 40'000);
    CHECK(redis(force(flags, "b", "10")) == "0");  // does not shorten it
    CHECK(std::stoll(redis({"PTTL", forced_key})) > 20'000);
    CHECK(redis(acquire(flags, "c")) == "1\n3");
    CHECK(redis(hold(flags, "a")) == "-3");
  }
}

TEST_CASE("force takes nothing from another owner, nor a key of another type") {
  for (const auto flags : both_forms) {
    redis({"FLUSHALL"});
    REQUIRE(redis(acquire(flags, "b")) == "1\n1");
    CHECK(redis(force(flags, "a")) == "0");
    CHECK(redis({"GET", fence_key}) == "1");
    CHECK(redis(hold(flags, "b")) == "1\n1");
    redis({"SET", lock_key, "somebody's"});
    CHECK(redis(force(flags, "b")) == "0");
    CHECK(redis({"GET", lock_key}) == "somebody's");
  }
}

TEST_CASE("several are forced out beside each other") {
  for (const auto flags : both_forms) {
    redis({"FLUSHALL"});
    for (const char* const owner : {"a", "b"}) {
      REQUIRE(redis(acquire(flags, owner)).starts_with("1\n"));
      CHECK(redis(force(flags, owner)) == "1");
    }
    for (const char* const owner : {"a", "b"}) CHECK(redis(acquire(flags, owner)) == "3");
    CHECK(redis(acquire(flags, "c")) == "1\n5");
  }
}

TEST_CASE("a fence of no use does not keep a lock from being forced") {
  for (const auto flags : both_forms) {
    for (const char* const damaged : {"abc", "9007199254740991", "9007199254740992"}) {
      CAPTURE(damaged);
      redis({"FLUSHALL"});
      REQUIRE(redis(acquire(flags, "a")) == "1\n1");
      redis({"SET", fence_key, damaged});
      CHECK(redis(force(flags, "a")) == "1");
      CHECK(redis({"GET", fence_key}) == damaged);
      CHECK(redis(acquire(flags, "a")) == "3");
    }
  }
}

TEST_CASE("in one hold of many locks only the forced one says so") {
  for (const auto flags : both_forms) {
    redis({"FLUSHALL"});
    redis({"HSET", "l1", "a", "1"});
    redis({"HSET", "l2:forced", "a", "1"});
    redis({"SET", "l3:forced", "of another type"});
    redis({"HSET", "l4", "z", "1"});
    redis({"HSET", "l4:forced", "b", "1"});
    Words words{"l1", "f1", "l2", "f2", "l3", "f3", "l4", "f4"};
    for (int lock = 0; lock < 4; ++lock) {
      words.insert(words.end(), {"a", "1", "10", "1000"});
    }
    CHECK(redis(eval(flags, script_for<engine::HoldCommand>, "8", words)) == "1\n10\n-3\n0\n-1");
  }
}

TEST_CASE("a user who may not look at who was forced out holds on, and is granted nothing") {
  redis({"FLUSHALL"});
  redis({"ACL", "SETUSER", "narrow", "on", "nopass", "~redlock:lock:{n}", "~redlock:fence:1",
         "+@all"});
  redlock::cluster::NodeClient client(fleet().port(0));
  REQUIRE(client.command({"AUTH", "narrow", "any"}) == "OK");
  for (const auto flags : both_forms) {
    CHECK(client.command(hold(flags, "a")) == "0");
    redis({"HSET", lock_key, "b", "1"});
    CHECK(client.command(hold(flags, "a")) == "-1");
    CHECK(client.command(hold(flags, "b")) == "1\n1");
    redis({"DEL", lock_key});
    const std::string refusal = client.command(acquire(flags, "a"));
    CHECK((contains(refusal, "can't access at least one of the keys") ||
           contains(refusal, "No permissions to access a key")));
    CHECK(redis({"EXISTS", lock_key}) == "0");
  }
  redis({"ACL", "DELUSER", "narrow"});
}

TEST_CASE(
    "a key of another type where forced owners are kept fails the force, nothing is written") {
  for (const auto flags : both_forms) {
    redis({"FLUSHALL"});
    REQUIRE(redis(acquire(flags, "a")) == "1\n1");
    redis({"SET", forced_key, "somebody's"});
    CHECK(contains(redis(force(flags, "a")), "WRONGTYPE"));
    CHECK(redis(hold(flags, "a")) == "1\n1");
    CHECK(redis({"GET", fence_key}) == "1");
  }
}

TEST_CASE("on a full node a lock can be forced, whether it is there or not") {
  for (const auto flags : both_forms) {
    redis({"FLUSHALL"});
    REQUIRE(redis(acquire(flags, "a")) == "1\n1");
    redis({"SET", "ballast", std::string(100'000, 'x')});
    REQUIRE(redis({"CONFIG", "SET", "maxmemory", "1"}) == "OK");
    CHECK(redis(force(flags, "b")) == "0");
    CHECK(redis(force(flags, "a")) == "1");
    CHECK(redis({"HKEYS", forced_key}) == "b\na");
    CHECK(redis(hold(flags, "a")) == "-3");
    REQUIRE(redis({"CONFIG", "SET", "maxmemory", "0"}) == "OK");
  }
}
