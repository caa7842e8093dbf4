// SPDX-License-Identifier: MIT
// The script that releases by force, and what acquire and hold make of it, on a real server, in the
// form for Redis 7 and in the form for 6.2: what it does, what a server can refuse, and calls with
// many locks.
#include <doctest/doctest.h>
#include <string>
#include <vector>

#include "cluster/fleet.hpp"
#include "net_narrow_user.hpp"
#include "net_server_kind.hpp"
#include "support/text.hpp"
#include "wire/script_set.hpp"

using namespace redlock::wire;
using redlock::cluster::Fleet;
using redlock::testing::contains;
using redlock::testing::eval;
using redlock::testing::joined;
using redlock::testing::LockKeys;
using redlock::testing::NarrowUser;
using redlock::testing::Words;
namespace engine = redlock::engine;

namespace {

const LockKeys keys("n");
const std::string& lock_key = keys.lock;
const std::string& fence_key = keys.fence;
const std::string forced_key = keys.forced("a");

Fleet& fleet() {
  static Fleet one({.nodes = 1});
  return one;
}
const redlock::testing::ScriptForms both_forms(fleet);

std::string redis(const Words& command) {
  return fleet().run(0, command);
}

template <typename Command>
std::string source(ScriptSet::Flags flags) {
  return ScriptSet(flags).source(script_for<Command>);
}
Words acquire(ScriptSet::Flags flags, const std::string& owner) {
  return eval(source<engine::AcquireCommand>(flags), keys.of_acquire(owner),
              {owner, "30000", "1", "", "", ""});
}
Words hold(ScriptSet::Flags flags, const std::string& owner) {
  return eval(source<engine::HoldCommand>(flags), keys.of_hold(owner), {owner, "1", "1", "30000"});
}
Words force(ScriptSet::Flags flags, const std::string& owner, const std::string& ms = "40000") {
  return eval(source<engine::ForceCommand>(flags), keys.of_force(owner), {owner, ms});
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
    CHECK(redis(force(flags, "a", "10")) == "0");  // does not shorten it
    CHECK(std::stoll(redis({"PTTL", forced_key})) > 20'000);
    CHECK(redis(force(flags, "a", "90000")) == "0");
    CHECK(std::stoll(redis({"PTTL", forced_key})) > 60'000);
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
    redis({"SET", "o2", "", "PX", "60000"});
    redis({"HSET", "o3", "of another", "type"});
    redis({"HSET", "l4", "z", "1"});
    Words all;
    Words arguments;
    for (const std::string number : {"1", "2", "3", "4", "5"}) {
      all = joined(all, {"l" + number, "f" + number, "o" + number});
      arguments = joined(arguments, {"a", "1", "10", "1000"});
    }
    CHECK(NarrowUser(fleet()).eval(source<engine::HoldCommand>(flags), all, arguments) ==
          "1\n10\n-3\n-3\n-1\n0");
  }
}

TEST_CASE("each owner is kept out until its own time is over") {
  for (const auto flags : both_forms) {
    redis({"FLUSHALL"});
    CHECK(redis(force(flags, "a", "60000")) == "0");
    CHECK(redis(force(flags, "b", "90000")) == "0");
    CHECK(std::stoll(redis({"PTTL", forced_key})) <= 60'000);
    redis({"DEL", forced_key});  // as if its time had passed
    CHECK(redis(acquire(flags, "b")) == "3");
    CHECK(redis(acquire(flags, "a")) == "1\n1");
  }
}

TEST_CASE("a key of another type keeps its owner out as well, and is replaced by a longer time") {
  for (const auto flags : both_forms) {
    redis({"FLUSHALL"});
    redis({"HSET", forced_key, "some", "body"});
    CHECK(redis(acquire(flags, "a")) == "3");
    CHECK(redis(force(flags, "a")) == "0");
    CHECK(redis({"GET", forced_key}).empty());
    CHECK(std::stoll(redis({"PTTL", forced_key})) > 30'000);
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
    CHECK(redis({"EXISTS", forced_key, keys.forced("b")}) == "2");
    CHECK(redis(hold(flags, "a")) == "-3");
    REQUIRE(redis({"CONFIG", "SET", "maxmemory", "0"}) == "OK");
  }
}
