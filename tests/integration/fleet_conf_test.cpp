// SPDX-License-Identifier: MIT
//
// cluster/redis.conf and cluster/users.acl are what operators copy. A real server must understand
// them and do what their comments say.
#include <doctest/doctest.h>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <fstream>
#include <sstream>

#include "cluster/fleet.hpp"
#include "support/lock_keys.hpp"
#include "support/text.hpp"

using namespace redlock::cluster;
using redlock::testing::contains;
using redlock::testing::eval;
using redlock::testing::joined;
using redlock::testing::LockKeys;
using redlock::testing::Words;

namespace {

std::string text_of(const std::string& file) {
  std::ifstream text(std::string(REDLOCK_SOURCE_DIR) + "/" + file);
  REQUIRE(text);
  return {std::istreambuf_iterator<char>(text), {}};
}

std::vector<std::string> users_of(const std::string& file) {
  std::istringstream text(text_of("cluster/" + file));
  std::vector<std::string> users;
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("user redlock")) users.push_back(line);
  }
  return users;
}

}  // namespace

TEST_CASE("a node with the project's redis.conf is durable, never evicts, and is small") {
  const Fleet fleet({.nodes = 1, .persistence = Persistence::always});
  const auto setting = [&](const std::string& name) {
    const auto reply = fleet.run(0, {"CONFIG", "GET", name});
    return reply.substr(reply.find('\n') + 1);
  };
  CHECK(setting("appendonly") == "yes");
  CHECK(setting("appendfsync") == "always");
  CHECK(setting("no-appendfsync-on-rewrite") == "no");
  CHECK(setting("save") == "");
  CHECK(setting("maxmemory-policy") == "noeviction");
  CHECK(setting("maxmemory") == "134217728");
  CHECK(setting("protected-mode") == "yes");
  CHECK(setting("bind") == "127.0.0.1 -::1");
  CHECK(setting("cluster-enabled") == "no");
}

TEST_CASE("the user of users.acl may do what locking, judging and showing a node takes") {
  Fleet fleet({.nodes = 1, .settings = users_of("users.acl")});
  NodeClient client(fleet.port(0));
  const auto allowed = [&](std::vector<std::string> command) {
    const auto reply = client.command(command);
    INFO(fmt::format("{}: {}", fmt::join(command, " "), reply));
    CHECK(reply.find("(error)") == std::string::npos);
    return reply;
  };
  allowed({"AUTH", "redlock", "change-me"});
  allowed({"CLIENT", "SETNAME", "redlock"});
  allowed({"CLIENT", "ID"});
  allowed({"CLIENT", "KILL", "ID", "123456"});
  allowed({"TIME"});
  allowed({"INFO"});
  allowed({"CONFIG", "GET", "appendonly"});
  allowed({"HSET", "redlock:node", "id", "0123"});
  allowed({"HGETALL", "redlock:node"});
  allowed({"TYPE", "redlock:lock:{a}"});
  allowed({"PTTL", "redlock:lock:{a}"});
  allowed({"GET", "redlock:fence:1"});

  const LockKeys keys("a");
  const auto script = [](const std::string& name) {
    return text_of("src/wire/scripts/line.lua") + text_of("src/wire/scripts/" + name + ".lua");
  };
  const auto run = [&](const std::string& name, const Words& its_keys, const Words& arguments) {
    const auto digest = allowed({"SCRIPT", "LOAD", script(name)});
    const auto count = std::to_string(its_keys.size());
    return allowed(joined(joined({"EVALSHA", digest, count}, its_keys), arguments));
  };
  const auto acquire = [&](const std::string& owner, const Words& order) {
    return run("acquire", keys.of_acquire(owner), joined({owner, "30000", "7", "", ""}, order));
  };
  const auto hold = [&](const std::string& owner) {
    return run("hold", keys.of_hold(owner), {owner, "2", "9", "60000"});
  };
  const auto release = [&](const std::string& owner) {
    return run("release", keys.of_release(), {owner, "2"});
  };
  CHECK(acquire("me", {""}) == "1\n7");
  CHECK(acquire("other", {""})[0] == '0');
  CHECK(hold("me") == "1\n9");
  CHECK(release("me") == "1");
  CHECK(allowed(eval(script("release"), keys.of_release(), {"me", "2"})) == "0");
  CHECK(acquire("me", {""}) == "1\n10");
  CHECK(allowed(eval(script("force"), keys.of_force("me"), {"me", "30000"})) == "1");
  CHECK(hold("me") == "-3");
  CHECK(acquire("me", {""}) == "3");

  // Waiting: the channel on a connection of its own, which takes no other commands in RESP2.
  allowed({"HELLO", "2"});
  NodeClient waiting(fleet.port(0));
  REQUIRE(waiting.command({"AUTH", "redlock", "change-me"}) == "OK");
  CHECK(contains(waiting.command({"SUBSCRIBE", "redlock:wake:aa"}), "subscribe"));
  CHECK(acquire("you", {""})[0] == '1');
  CHECK(acquire("first", {"w", "aa:1", "90000000", "20", ""}).ends_with("\n0"));
  CHECK(acquire("second", {"w", "bb:1", "60000000", "20", ""}).ends_with("\n1"));  // not subscribed
  CHECK(acquire("third", {"w", "aa:2", "30000000", "20", ""}).ends_with("\n2"));
  CHECK(release("you") == "1");
  CHECK(contains(waiting.command({"SUBSCRIBE", "redlock:wake:aa"}), "redlock:wake:aa\n1 0"));
  CHECK(fleet.run(0, {"ZRANGE", keys.line, "0", "-1"}) == "aa:1\naa:2");
  CHECK(acquire("first", {"w", "aa:1", "90000000", "20", ""})[0] == '1');
  CHECK(release("first") == "1");
  CHECK(run("leave", keys.of_leave(), {"aa:2"}) == "0");
  CHECK(fleet.run(0, {"EXISTS", keys.line, keys.waiters}) == "0");
}

TEST_CASE("the user of users.acl may do nothing else") {
  Fleet fleet({.nodes = 1, .settings = users_of("users.acl")});
  NodeClient client(fleet.port(0));
  REQUIRE(client.command({"AUTH", "redlock", "change-me"}) == "OK");
  const std::vector<std::vector<std::string>> forbidden{
      {"GET", "else"},
      {"SET", "else", "1"},
      {"EVAL", "return redis.call('get', 'else')", "0"},
      {"EVAL", "return redis.call('flushall')", "0"},
      {"FLUSHALL"},
      {"FLUSHDB"},
      {"KEYS", "*"},
      {"SCAN", "0"},
      {"DECR", "redlock:fence:1"},
      {"CONFIG", "SET", "appendonly", "no"},
      {"CLIENT", "LIST"},
      {"SCRIPT", "FLUSH"},
      {"SCRIPT", "KILL"},
      {"SHUTDOWN", "NOSAVE"},
      {"REPLICAOF", "127.0.0.1", "1"},
      {"ACL", "LIST"},
      {"PUBLISH", "redlock:x", "y"},
      {"SUBSCRIBE", "redlock:x"},
      {"PSUBSCRIBE", "redlock:wake:*"},
      {"EVAL", "return redis.call('publish', 'redlock:x', 'y')", "0"},
      {"MONITOR"},
  };
  for (const auto& command : forbidden) {
    const auto reply = client.command(command);
    INFO(fmt::format("{}: {}", fmt::join(command, " "), reply));
    CHECK(reply.find("(error)") == 0);
    CHECK((contains(reply, "NOPERM") || contains(reply, "ACL failure in script: ") ||
           contains(reply, "The user executing the script can't")));
  }
}
