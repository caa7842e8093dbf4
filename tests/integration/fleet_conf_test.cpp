// SPDX-License-Identifier: MIT
//
// cluster/redis.conf and cluster/users.acl are what operators copy. A real server must understand
// them and do what their comments say. What the users may do is in api_rights_test.cpp.
#include <doctest/doctest.h>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <fstream>
#include <sstream>

#include "cluster/fleet.hpp"
#include "support/text.hpp"

using namespace redlock::cluster;
using redlock::testing::contains;

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
