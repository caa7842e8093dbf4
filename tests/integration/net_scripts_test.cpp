// SPDX-License-Identifier: MIT
// What the scripts make of a user that lacks rights, which only real servers check, in the form for
// Redis 7 and in the form for 6.2. What they do otherwise is in tests/simulation.
#include <algorithm>
#include <doctest/doctest.h>
#include <string>
#include <vector>

#include "cluster/fleet.hpp"
#include "net/kernel_random.hpp"
#include "net_server_kind.hpp"
#include "support/commands_in.hpp"
#include "support/text.hpp"
#include "wire/adoption.hpp"
#include "wire/script_call.hpp"

namespace redlock::testing {
namespace {

using cluster::Fleet;
using cluster::NodeClient;
using wire::ScriptSet;
using Words = RedisCommand;
using namespace std::chrono_literals;

const engine::Name the_lock = std::make_shared<const std::string>("n");
const std::string key_of_lock = wire::redlock_layout.lock(*the_lock);

Fleet& fleet() {
  static Fleet one({.nodes = 1});
  return one;
}
const ScriptForms both_forms(fleet);

std::string redis(const Words& command) {
  return fleet().run(0, command);
}

/// A user of the node without these rights, or with these alone.
NodeClient weak_user(const Words& rights) {
  Words user{"ACL", "SETUSER", "weak", "reset", "on", "nopass"};
  user.insert(user.end(), rights.begin(), rights.end());
  redis(user);
  NodeClient client(fleet().port(0));
  REQUIRE(client.command({"AUTH", "weak", "any"}) == "OK");
  return client;
}

/// What clients send in one form of the scripts.
class Calls {
 public:
  explicit Calls(ScriptSet::Flags flags) : scripts_(flags) {}

  /// Without a client the lock is taken out of turn.
  [[nodiscard]] Words acquire(std::uint64_t owner, std::string_view client = {}) const {
    return words_of(engine::AcquireCommand{.name = the_lock,
                                           .owner = {{owner}},
                                           .lease = 30s,
                                           .in_order = !client.empty(),
                                           .place = {.line = 1, .waited = 50ms, .turn = 20ms}},
                    client);
  }
  /// A client goes on waiting, with another call.
  [[nodiscard]] Words release(std::uint64_t owner, std::string_view client = {}) const {
    engine::ReleaseCommand command{.name = the_lock, .owner = {{owner}}, .alone = true};
    if (!client.empty()) command.place = next_place;
    return words_of(command, client);
  }
  [[nodiscard]] Words leave_to_the_next_call(std::string_view client) const {
    return words_of(engine::LeaveCommand{.name = the_lock, .line = 1, .next = next_place}, client);
  }

 private:
  static constexpr engine::Place next_place{.line = 1, .waited = 1ms, .turn = 20ms, .is_new = true};

  [[nodiscard]] Words words_of(const engine::Command& command, std::string_view client = {}) const {
    std::string bytes;
    wire::write_call(bytes, scripts_, engine::Form::source, command,
                     {.client = client, .subscribed = true});
    wire::ReplyReader reader;
    return wire::commands_in(bytes, reader).at(0);
  }

  ScriptSet scripts_;
};

TEST_CASE("a lease that the user may not set leaves no lock behind") {
  for (const auto flags : both_forms) {
    redis({"FLUSHALL"});
    auto client = weak_user({"~*", "+@all", "-pexpire"});
    const std::string refusal = client.command(Calls(flags).acquire(1));
    CHECK((contains(refusal, "can't run this command") ||
           contains(refusal, "has no permissions to run the 'pexpire' command")));
    CHECK(redis({"EXISTS", key_of_lock}) == "0");
    // Nor a line.
    CHECK(redis(Calls(flags).acquire(1)).starts_with("1\n"));
    const std::string held = client.command(Calls(flags).acquire(2, "aa"));
    CHECK((held.starts_with("0\n") && std::ranges::count(held, '\n') == 1));  // no place
    CHECK(redis({"EXISTS", wire::redlock_layout.line(*the_lock)}) == "0");
  }
}

TEST_CASE("a client that may not be in line gives others their turn") {
  for (const auto flags : both_forms) {
    const Calls calls(flags);
    NodeClient both(fleet().port(0));
    REQUIRE(contains(both.command({"SUBSCRIBE", "redlock:wake:aa", "redlock:wake:bb"}), "subsc"));
    const auto has_turn = [] {
      const auto keys = wire::redlock_layout;
      return redis({"HGET", keys.waiters(*the_lock), key_of_lock}).substr(0, 4);
    };
    for (const char* denied : {"-zadd", "-pexpire"}) {
      CAPTURE(denied);
      auto client = weak_user({"~*", "allchannels", "+@all", denied});
      redis({"FLUSHALL"});
      REQUIRE(redis(calls.acquire(1)) == "1\n1");
      REQUIRE(redis(calls.acquire(2, "aa")).starts_with("0\n"));
      REQUIRE(redis(calls.acquire(3, "bb")).starts_with("0\n"));
      CHECK(client.command(calls.release(1, "cc")) == "1");
      CHECK(has_turn() == "aa:1");
      client.command(calls.leave_to_the_next_call("aa"));
      CHECK(has_turn() == "bb:1");
    }
  }
}

TEST_CASE("a client that may not be in line takes locks out of turn") {
  for (const auto flags : both_forms) {
    const Calls calls(flags);
    NodeClient its_client(fleet().port(0));
    REQUIRE(contains(its_client.command({"SUBSCRIBE", "redlock:wake:aa"}), "subscribe"));
    const auto one_waits = [&] {
      redis({"FLUSHALL"});
      REQUIRE(redis(calls.acquire(1)) == "1\n1");
      REQUIRE(redis(calls.acquire(2, "aa")).starts_with("0\n"));
    };
    for (const char* denied : {"-zadd", "-publish", "-hmget", "-zrange", "-zrem", "-time"}) {
      CAPTURE(denied);
      auto client = weak_user({"~*", "allchannels", "+@all", denied});
      one_waits();
      CHECK(client.command(calls.acquire(3, "bb")).starts_with("0\n"));
      redis({"DEL", key_of_lock});
      const std::string reply = client.command(calls.acquire(3, "bb"));
      const bool has_a_line = contains("-zrem -publish", denied);
      if (has_a_line) {  // it has no need of the one, and is as if its messages were lost
        CHECK(reply == "0\n20\n1");
      } else {
        CHECK(reply == "1\n2");
        CHECK(client.command(calls.release(3)) == "1");
      }
    }
    // A user with the commands that locking takes.
    auto client = weak_user({"resetchannels", "~redlock:*", "+eval", "+type", "+hexists", "+hget",
                             "+hset", "+hdel", "+get", "+set", "+incr", "+pttl", "+pexpire", "+del",
                             "+exists", "+time"});
    one_waits();
    CHECK(client.command(calls.acquire(3, "bb")).starts_with("0\n"));
    redis({"DEL", key_of_lock});
    CHECK(client.command(calls.acquire(3, "bb")) == "1\n2");
    CHECK(client.command(calls.release(3)) == "1");
    CHECK(redis({"ZRANGE", wire::redlock_layout.line(*the_lock), "0", "-1"}) == "aa:1");
  }
}

TEST_CASE("a node that lost the id for which a client waited keeps the new one only for a while") {
  net::KernelRandom random;
  const wire::SetTerms set{.max_lease = std::chrono::milliseconds(2'000)};
  const wire::StillPending lost{"lost", wire::random_id(random)};
  redis({"FLUSHALL"});
  const engine::Membership marker{wire::random_id(random), {"s", 1, {}}};
  CHECK(redis(wire::adoption_command(set, marker, {}, "", &lost)) == lost.next);
  const int ends_in = std::stoi(redis({"PTTL", std::string(wire::redlock_layout.notes)}));
  CHECK(ends_in > 0);
  CHECK(ends_in <= 4 * 2'000 + 60'000);
}

}  // namespace
}  // namespace redlock::testing
