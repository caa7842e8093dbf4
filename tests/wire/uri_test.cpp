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

TEST_CASE("user, password, host, port and database are taken from their places, in any form") {
  struct Parts {
    std::string uri;
    std::string user, password, host;
    int port;
    std::uint32_t db;
    std::string label;
  };
  const Parts cases[] = {
      // The port and the database that Redis has by default.
      {"redis://Example.org", "", "", "example.org", 6379, 0, "redis://example.org:6379"},
      {"redis://example.org/", "", "", "example.org", 6379, 0, "redis://example.org:6379"},
      {"redis://alice:secret@10.0.0.1:7001/3", "alice", "secret", "10.0.0.1", 7001, 3,
       "redis://alice@10.0.0.1:7001/3"},
      // A password alone, and a scheme in capitals.
      {"REDIS://:secret@host", "", "secret", "host", 6379, 0, "redis://host:6379"},
      {"redis://[::1]:7001", "", "", "::1", 7001, 0, "redis://[::1]:7001"},
      {"redis://[fe80::1%25eth0]", "", "", "fe80::1%eth0", 6379, 0,
       "redis://[fe80::1%25eth0]:6379"},
      // A host and its port need no scheme.
      {"Example.org:7001", "", "", "example.org", 7001, 0, "redis://example.org:7001"},
      {"[::1]:7001", "", "", "::1", 7001, 0, "redis://[::1]:7001"},
      {"redis:6379", "", "", "redis", 6379, 0, "redis://redis:6379"},  // as compose files name it
      {"10.0.0.1:7001", "", "", "10.0.0.1", 7001, 0, "redis://10.0.0.1:7001"},
      // Percent-decoded; and only the last @ ends the login.
      {"redis://a%40b:p%2Fs%3As%25@host", "a@b", "p/s:s%", "host", 6379, 0,
       "redis://a%40b@host:6379"},
      {"redis://alice:p@ss@host", "alice", "p@ss", "host", 6379, 0, "redis://alice@host:6379"},
      {"REDISS://alice:secret@Example.org:7001/3", "alice", "secret", "example.org", 7001, 3,
       "rediss://alice@example.org:7001/3"},
  };
  for (const Parts& parts : cases) {
    CAPTURE(parts.uri);
    const NodeAddress node = good(parts.uri);
    CHECK(node.user == parts.user);
    CHECK(node.password == parts.password);
    CHECK(node.host == parts.host);
    CHECK(node.port == parts.port);
    CHECK(node.db == parts.db);
    CHECK(node.label == parts.label);
    CHECK(node.unix_path.empty());
    CHECK(node.tls == node.label.starts_with("rediss:"));
    CHECK(node.tls_name.empty());
  }
}

TEST_CASE("a node with TLS may name its certificate") {
  const NodeAddress named = good("rediss://10.0.0.1?name=Node-1.example");
  CHECK(named.port == 6379);
  CHECK(named.tls_name == "node-1.example");
  CHECK(named.label == "rediss://10.0.0.1:6379?name=node-1.example");
  CHECK(good("rediss://[::1]/1?name=fe80::1").tls_name == "fe80::1");
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
  CHECK(good("unix:///a%20b").unix_path == "/a b");
}

TEST_CASE("each bad URI gets a sentence that says what is wrong") {
  struct Mistake {
    std::string says;
    std::vector<std::string> uris;
  };
  const Mistake mistakes[] = {
      {"empty", {""}},
      {"neither scheme nor port", {"localhost", "6379", "[::1]", "[::1"}},
      {"write an IPv6 address in brackets", {"::1:6379", "redis://::1"}},
      {"port is not a number from 1 to 65535",
       {"localhost:", "localhost:0", "localhost:redis", "redis://host:", "redis://host:0",
        "redis://host:65536", "redis://host:80a", "redis://host:-1"}},
      {"host is missing",
       {":6379", "rediss://", "redis://", "redis://:7001", "redis:///1", "redis://user:pass@",
        "redis://[]"}},
      {"no scheme",
       {"alice:secret@localhost:6379", "localhost:6379/1", "/run/redis.sock", "redis:/host"}},
      {"neither redis://, rediss:// (TLS) nor unix://", {"http://host", "redis-sentinel://host"}},
      {"one option only: ?name=NAME", {"rediss://host?db=1"}},
      {"neither a host name nor an address",
       {"rediss://host?name=", "rediss://host?name=a&b", "rediss://host?name=*.example",
        "rediss://host?name=a?name=b"}},
      {"behind ?name= begins with a dot", {"rediss://host?name=.example", "rediss://host?name=."}},
      {"the host begins with a dot; write the whole name",
       {"rediss://.example", "redis://.", ".example:6379"}},
      {"takes no options",
       {"rediss://host#x", "redis://host?name=a", "redis://host?db=1", "redis://host/1#x"}},
      {"database is not a number",
       {"redis://host/x", "redis://host/-1", "redis://host/1/2", "redis://host/99999999999",
        "unix:///sock?db=x", "unix:///sock?db=1&x=2"}},
      {"a character that no host name has", {"redis://ho st", "redis://host ", "redis://ho\nst"}},
      {"never closed", {"redis://[::1"}},
      {"between ']' and the port", {"redis://[::1]x"}},
      {"no IPv6 address between the brackets", {"redis://[nonsense]"}},
      {"no password before it", {"redis://alice@host", "redis://:@host"}},
      {"write '%' itself as %25", {"redis://:p%2@host", "redis://:p%00@host"}},
      {"inside a password write %2F", {"redis://:p/w@host"}},
      {"path of the Unix socket is missing", {"unix://", "unix:///"}},
      {"needs an absolute path", {"unix://relative/path"}},
      {"one option only", {"unix:///sock?timeout=1"}},
      {"longer than the system allows", {"unix:///" + std::string(200, 'x')}},
  };
  for (const Mistake& mistake : mistakes) {
    for (const std::string& uri : mistake.uris) {
      const std::string sentence = problem(uri);
      CHECK_MESSAGE(contains(sentence, mistake.says), uri, ": ", sentence);
      CHECK(sentence.back() != '\n');
    }
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

TEST_CASE("keys have the form that the layout promises, and stripes never change") {
  CHECK(redlock_layout.lock("seat A05") == "redlock:lock:{seat A05}");
  CHECK(redlock_layout.fence("seat A05") == "redlock:fence:47627");
  CHECK(redlock_layout.fence("") == "redlock:fence:61457");
}
