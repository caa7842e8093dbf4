// SPDX-License-Identifier: MIT
// Node URIs: what each good one means, and the sentence that each bad one gets.
#include <doctest/doctest.h>
#include <string>
#include <vector>

#include "support/text.hpp"
#include "wire/key_layout.hpp"
#include "wire/node_address.hpp"

using redlock::testing::contains;
using namespace redlock::wire;

namespace {

NodeAddress good(const std::string& uri) {
  const auto parsed = parse_node_uri(uri);
  REQUIRE_MESSAGE(parsed, uri, ": ", parsed ? "" : parsed.error());
  return *parsed;
}

std::string problem(const std::string& uri) {
  const auto parsed = parse_node_uri(uri);
  REQUIRE_MESSAGE(!parsed, uri, " was accepted as ", parsed ? parsed->label : "");
  return parsed.error();
}

}  // namespace

TEST_CASE("a host alone gets the port and the database that Redis has by default") {
  const NodeAddress node = good("redis://Example.org");
  CHECK(node.host == "example.org");
  CHECK(node.port == 6379);
  CHECK(node.db == 0);
  CHECK(node.user.empty());
  CHECK(node.password.empty());
  CHECK(node.unix_path.empty());
  CHECK(node.label == "redis://example.org:6379");
  CHECK(good("redis://example.org/").label == node.label);
}

TEST_CASE("user, password, port and database are taken from their places") {
  const NodeAddress node = good("redis://alice:secret@10.0.0.1:7001/3");
  CHECK(node.user == "alice");
  CHECK(node.password == "secret");
  CHECK(node.host == "10.0.0.1");
  CHECK(node.port == 7001);
  CHECK(node.db == 3);
  CHECK(node.label == "redis://alice@10.0.0.1:7001/3");
}

TEST_CASE("a password may stand alone, and the scheme may be in capitals") {
  const NodeAddress node = good("REDIS://:secret@host");
  CHECK(node.user.empty());
  CHECK(node.password == "secret");
  CHECK(node.label == "redis://host:6379");
}

TEST_CASE("an IPv6 address stands in brackets") {
  const NodeAddress node = good("redis://[::1]:7001");
  CHECK(node.host == "::1");
  CHECK(node.port == 7001);
  CHECK(node.label == "redis://[::1]:7001");
  CHECK(good("redis://[fe80::1%25eth0]").host == "fe80::1%eth0");
}

TEST_CASE("a host and its port need no scheme") {
  CHECK(good("Example.org:7001").label == "redis://example.org:7001");
  CHECK(good("[::1]:7001").label == "redis://[::1]:7001");
  CHECK(good("redis:6379").host == "redis");  // as compose files name it
  CHECK(good("10.0.0.1:7001").port == 7001);
}

TEST_CASE("user, password and path are percent-decoded") {
  const NodeAddress node = good("redis://a%40b:p%2Fs%3As%25@host");
  CHECK(node.user == "a@b");
  CHECK(node.password == "p/s:s%");
  CHECK(node.label == "redis://a%40b@host:6379");
  CHECK(good("unix:///a%20b").unix_path == "/a b");
}

TEST_CASE("only the last @ ends the login") {
  const NodeAddress node = good("redis://alice:p@ss@host");
  CHECK(node.password == "p@ss");
  CHECK(node.host == "host");
}

TEST_CASE("a node with TLS is written like one without, and may name its certificate") {
  const NodeAddress node = good("REDISS://alice:secret@Example.org:7001/3");
  CHECK(node.tls);
  CHECK(node.host == "example.org");
  CHECK(node.port == 7001);
  CHECK(node.db == 3);
  CHECK(node.tls_name.empty());
  CHECK(node.label == "rediss://alice@example.org:7001/3");
  const NodeAddress named = good("rediss://10.0.0.1?name=Node-1.example");
  CHECK(named.port == 6379);
  CHECK(named.tls_name == "node-1.example");
  CHECK(named.label == "rediss://10.0.0.1:6379?name=node-1.example");
  CHECK(good("rediss://[::1]/1?name=fe80::1").tls_name == "fe80::1");
  CHECK_FALSE(good("redis://host").tls);
}

TEST_CASE("a Unix socket has a path, and may have a login and a database") {
  const NodeAddress node = good("unix:///run/redis/redis.sock?db=2");
  CHECK(node.unix_path == "/run/redis/redis.sock");
  CHECK(node.host.empty());
  CHECK(node.db == 2);
  CHECK(node.label == "unix:///run/redis/redis.sock?db=2");
  const NodeAddress with_login = good("unix://alice:secret@/run/r@dis.sock");
  CHECK(with_login.unix_path == "/run/r@dis.sock");
  CHECK(with_login.password == "secret");
  CHECK(with_login.label == "unix://alice@/run/r%40dis.sock");
}

TEST_CASE("each bad URI gets a sentence that says what is wrong") {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "empty"},
      {"localhost", "neither scheme nor port"},
      {"6379", "neither scheme nor port"},
      {"[::1]", "neither scheme nor port"},
      {"[::1", "neither scheme nor port"},
      {"::1:6379", "write an IPv6 address in brackets"},
      {"localhost:", "port is not a number from 1 to 65535"},
      {"localhost:0", "port is not a number from 1 to 65535"},
      {"localhost:redis", "port is not a number from 1 to 65535"},
      {":6379", "host is missing"},
      {"alice:secret@localhost:6379", "no scheme"},
      {"localhost:6379/1", "no scheme"},
      {"/run/redis.sock", "no scheme"},
      {"redis:/host", "no scheme"},
      {"http://host", "neither redis://, rediss:// (TLS) nor unix://"},
      {"redis-sentinel://host", "neither redis://, rediss:// (TLS) nor unix://"},
      {"rediss://", "host is missing"},
      {"rediss://host?db=1", "one option only: ?name=NAME"},
      {"rediss://host?name=", "neither a host name nor an address"},
      {"rediss://host?name=a&b", "neither a host name nor an address"},
      {"rediss://host?name=*.example", "neither a host name nor an address"},
      {"rediss://host?name=.example", "behind ?name= begins with a dot"},
      {"rediss://host?name=.", "behind ?name= begins with a dot"},
      {"rediss://.example", "the host begins with a dot; write the whole name"},
      {"redis://.", "the host begins with a dot; write the whole name"},
      {".example:6379", "the host begins with a dot; write the whole name"},
      {"rediss://host?name=a?name=b", "neither a host name nor an address"},
      {"rediss://host#x", "takes no options"},
      {"redis://host?name=a", "takes no options"},
      {"redis://", "host is missing"},
      {"redis://:7001", "host is missing"},
      {"redis:///1", "host is missing"},
      {"redis://user:pass@", "host is missing"},
      {"redis://[]", "host is missing"},
      {"redis://host:", "port is not a number from 1 to 65535"},
      {"redis://host:0", "port is not a number from 1 to 65535"},
      {"redis://host:65536", "port is not a number from 1 to 65535"},
      {"redis://host:80a", "port is not a number from 1 to 65535"},
      {"redis://host:-1", "port is not a number from 1 to 65535"},
      {"redis://host/x", "database is not a number"},
      {"redis://host/-1", "database is not a number"},
      {"redis://host/1/2", "database is not a number"},
      {"redis://host/99999999999", "database is not a number"},
      {"redis://host?db=1", "takes no options"},
      {"redis://host/1#x", "takes no options"},
      {"redis://ho st", "a character that no host name has"},
      {"redis://host ", "a character that no host name has"},
      {"redis://ho\nst", "a character that no host name has"},
      {"redis://::1", "write an IPv6 address in brackets"},
      {"redis://[::1", "never closed"},
      {"redis://[::1]x", "between ']' and the port"},
      {"redis://[nonsense]", "no IPv6 address between the brackets"},
      {"redis://alice@host", "no password before it"},
      {"redis://:@host", "no password before it"},
      {"redis://:p%2@host", "write '%' itself as %25"},
      {"redis://:p%00@host", "write '%' itself as %25"},
      {"redis://:p/w@host", "inside a password write %2F"},
      {"unix://", "path of the Unix socket is missing"},
      {"unix:///", "path of the Unix socket is missing"},
      {"unix://relative/path", "needs an absolute path"},
      {"unix:///sock?db=x", "database is not a number"},
      {"unix:///sock?timeout=1", "one option only"},
      {"unix:///sock?db=1&x=2", "database is not a number"},
      {"unix:///" + std::string(200, 'x'), "longer than the system allows"},
  };
  for (const auto& entry : cases) {
    const auto& uri = entry.first;
    const auto& part = entry.second;
    const std::string sentence = problem(uri);
    CHECK_MESSAGE(contains(sentence, part), uri, ": ", sentence);
    CHECK(sentence.back() != '\n');
  }
}

TEST_CASE("a byte of value zero is refused wherever it is") {
  using namespace std::string_view_literals;
  for (const std::string_view uri : {"redis://:a\0b@host"sv, "redis://h\0st"sv, "unix:///a\0b"sv}) {
    const auto node = parse_node_uri(uri);
    REQUIRE_FALSE(node.has_value());
    CHECK(node.error() == "the node URI has a byte of value zero; take it out");
  }
}

TEST_CASE("no sentence repeats a password, wherever a mistake puts it") {
  for (const char* uri :
       {"redis://:hunter2", "redis://alice:hunter2", "redis://alice:hunter2@",
        "http://:hunter2@host", "redis://alice:hunter2@host:port", "redis://:hunter2/x@host",
        "redis://:%2hunter2@host", "redis://host:hunter2", "redis://hunter2 @host",
        "rediss://:hunter2", "rediss://host?name=hunter2!", "hunter2@host",
        "unix://alice:hunter2@relative", "unix://:hunter2/sock", "redis://host/hunter2"}) {
    CHECK_MESSAGE(!contains(problem(uri), "hunter2"), uri);
  }
}

TEST_CASE("keys have the form that the layout promises") {
  CHECK(redlock_layout.lock("seat A05") == "redlock:lock:{seat A05}");
  CHECK(redlock_layout.fence("seat A05").substr(0, 14) == "redlock:fence:");
  CHECK(redlock_layout.fence("seat A05") == redlock_layout.fence("seat A05"));
  CHECK(redlock_layout.fence("") == "redlock:fence:61457");
}
