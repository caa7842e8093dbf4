// SPDX-License-Identifier: MIT
//
// What a relay keeps back and forwards later. A test in which it did not would pass and show
// nothing; what else a relay does wrong, the tests that use it notice.
#include <algorithm>
#include <doctest/doctest.h>
#include <utility>

#include "cluster/fleet.hpp"
#include "support/processes.hpp"
#include "support/proxy.hpp"
#include "support/stub_replies.hpp"

using namespace redlock::testing;
using namespace redlock::cluster;

namespace {

// A client of a proxy that need not wait for its replies.
class Caller {
 public:
  explicit Caller(Proxy& proxy) : proxy_(proxy), socket_(connect_to_loopback(proxy.port())) {}

  // Returns when the proxy has got the command, whatever it does with it.
  void send(const RedisCommand& command) {
    std::vector<std::string> words;
    for (const auto& word : command) words.push_back(bulk(word));
    auto bytes = array(words);
    const auto until = proxy_.request_bytes() + bytes.size();
    REQUIRE(send_some(socket_, bytes));
    REQUIRE(proxy_.await_request_bytes(until));
  }

  bool receives(const std::string& reply) {
    const bool arrived = eventually([&] {
      received_ += receive(socket_).bytes;
      return received_.size() >= reply.size();
    });
    return arrived && std::exchange(received_, "") == reply;
  }

  void give_up() { reset(socket_); }

 private:
  Proxy& proxy_;
  UniqueFd socket_;
  std::string received_;
};

/// A real node behind a proxy.
struct Proxied {
  const Fleet fleet = Fleet({.nodes = 1});
  Proxy proxy = Proxy(fleet.port(0));
};

}  // namespace

TEST_CASE_FIXTURE(Proxied, "a proxy that holds forwards nothing, and forwards all of it later") {
  Caller before(proxy);
  before.send({"PING"});
  CHECK(before.receives(simple("PONG")));
  proxy.hold();
  before.send({"INCR", "count"});
  Caller during(proxy);
  during.send({"INCR", "other"});
  CHECK(fleet.run(0, {"EXISTS", "count", "other"}) == "0");
  proxy.pass();
  CHECK(before.receives(integer(1)));
  CHECK(during.receives(integer(1)));
}

TEST_CASE_FIXTURE(
    Proxied, "what a client sent before it gave up reaches the node when the proxy passes again") {
  proxy.hold_requests();
  {
    Caller caller(proxy);
    caller.send({"SET", "key", "late"});
    caller.give_up();
  }
  REQUIRE(proxy.await_given_up(1));
  CHECK(fleet.run(0, {"GET", "key"}) == "(nil)");
  proxy.pass();
  CHECK(eventually([&] { return fleet.run(0, {"GET", "key"}) == "late"; }));
}

TEST_CASE_FIXTURE(Proxied, "a proxy that hangs keeps no connection that its client gave up") {
  const auto connections_at_node = [&] {
    const auto clients = fleet.run(0, {"CLIENT", "LIST"});
    return std::count(clients.begin(), clients.end(), '\n');
  };
  Caller patient(proxy);
  patient.send({"INCR", "count"});
  CHECK(patient.receives(integer(1)));
  proxy.hang();
  patient.send({"INCR", "count"});
  for (std::size_t i = 1; i <= 5; ++i) {
    Caller caller(proxy);
    caller.send({"INCR", "count"});
    caller.give_up();
    REQUIRE(proxy.await_given_up(i));
  }
  // That of the patient one, and that which asks.
  CHECK(eventually([&] { return connections_at_node() <= 2; }));
  CHECK(fleet.run(0, {"GET", "count"}) == "1");
  proxy.pass();
  CHECK(patient.receives(integer(2)));
}
