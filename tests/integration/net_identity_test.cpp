// SPDX-License-Identifier: MIT
// Two nodes of a list that are one server under two addresses. (Of nodes that only claim to be
// another: tests/wire.)
#include <iterator>
#include <sstream>

#include "net_core_fixture.hpp"

using namespace redlock::net;

namespace {

/// As users.acl says of applications that are not to touch each other's locks.
void permit_application(const Fleet& fleet) {
  const char* const rights =
      "ACL SETUSER app on >word resetkeys resetchannels &redlock:wake:* ~redlock:lock:{app:* "
      "~redlock:node ~redlock:node:* ~redlock:line:{app:* -@all ~redlock:fence:* +client|id "
      "+client|kill +client|setname +config|get +eval +evalsha +exists +get +hgetall +info "
      "+script|load +set +subscribe +time";
  std::istringstream words(rights);
  fleet.run(0, {std::istream_iterator<std::string>(words), {}});
}

}  // namespace

TEST_CASE("two addresses of one server are proved to be one, by a key that ends") {
  const Fleet fleet({.nodes = 2, .unix_sockets = true});
  permit_application(fleet);
  const std::string host = "127.0.0.1:" + std::to_string(fleet.port(0));
  const std::string path = fleet.unix_uri(0).substr(std::string("unix://").size());
  const std::vector<std::vector<std::string>> pairs{
      {fleet.uri(0), fleet.unix_uri(0)}, {"redis://app:word@" + host, "unix://app:word@" + path}};
  for (const auto& uris : pairs) {
    Running client({uris[0], uris[1], fleet.uri(1)});
    const auto proved = [&] {
      return contains(client.sink.why_down(0) + client.sink.why_down(1),
                      "it is the same server as");
    };
    REQUIRE(eventually(proved));
    client.sink.await_up(2);
    const bool first = client.ask(0, {"TIME"}).get().has_value();
    const bool second = client.ask(1, {"TIME"}).get().has_value();
    CHECK(first != second);
  }
  const std::string text = fleet.run(
      0, {"EVAL",
          "local n = 0 for _, key in ipairs(redis.call('KEYS', 'redlock:fence:identity:*')) do "
          "local ends = redis.call('PTTL', key) "
          "if ends <= 0 or ends > 60000 then return -1 end n = n + 1 end return n",
          "0"});
  CHECK(std::stoi(text) >= 2);
}
