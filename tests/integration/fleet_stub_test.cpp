// SPDX-License-Identifier: MIT
//
// The stub server and the proxy must do what they are told, or the tests that lean on them show
// nothing. They are asked here by NodeClient, which knows nothing of either.
#include <algorithm>
#include <doctest/doctest.h>
#include <utility>

#include "cluster/fleet.hpp"
#include "support/processes.hpp"
#include "support/proxy.hpp"
#include "support/stub_server.hpp"
#include "support/text.hpp"

using namespace redlock::testing;
using namespace redlock::cluster;
using std::chrono::milliseconds;

namespace {

constexpr milliseconds kShort{30};  // for replies that never come

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

  bool has_received_nothing() { return (received_ += receive(socket_).bytes).empty(); }

  bool is_cut_off() {
    return eventually([&] { return receive(socket_).end == Received::End::broken; });
  }

  bool is_ended() {
    return eventually([&] { return receive(socket_).end != Received::End::open; });
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

  /// A caller with a connection that works.
  Caller connected() {
    Caller caller(proxy);
    caller.send({"PING"});
    CHECK(caller.receives(simple("PONG")));
    return caller;
  }
  void check_it_passes() { CHECK(NodeClient(proxy.port()).command({"PING"}) == "PONG"); }
};

}  // namespace

TEST_CASE("a stub answers each command as its script says") {
  StubServer server([](const RedisCommand& command) -> StubReply {
    if (is(command, "EVALSHA")) return error("OOM command not allowed");
    if (is(command, "get")) return bulk(command.at(1));
    return like_redis(command);
  });
  NodeClient client(server.port());
  CHECK(client.command({"PING"}) == "PONG");
  CHECK(client.command({"CLIENT", "ID"}) == "7");
  CHECK(client.command({"GET", std::string("a\r\nb\0c", 6)}) == std::string("a\r\nb\0c", 6));
  CHECK(client.command({"EVALSHA", "0000", "0"}) == "(error) OOM command not allowed");
  CHECK(client.command({"CONFIG", "GET", "appendonly"}) == "appendonly\nyes");
  CHECK(contains(client.command({"NONSENSE"}), "(error) ERR unknown command"));
  CHECK(server.commands().size() == 6);
  CHECK(server.await_command("EVALSHA"));
}

TEST_CASE("a stub can answer pipelined commands in order, however they are cut") {
  StubServer server([](const RedisCommand& command) { return bulk(command.at(0)); });
  auto socket = connect_to_loopback(server.port());
  std::string replies;
  for (const char c : array({bulk("a"), bulk("1")}) + array({bulk("b")})) {
    std::string byte(1, c);
    REQUIRE(send_some(socket, byte));
  }
  const auto expected = bulk("a") + bulk("b");
  REQUIRE(eventually([&] {
    replies += receive(socket).bytes;
    return replies.size() >= expected.size();
  }));
  CHECK(replies == expected);
}

TEST_CASE("a stub can never say a word, stop in the middle of a reply, or send rubbish unchanged") {
  struct Odd {
    StubReply reply;
    const char* words;
  };
  for (const Odd& odd : {Odd{StubReply::silence(), "did not answer within"},
                         Odd{"$100\r\nonly this", "did not answer within"},
                         Odd{"HTTP/1.1 400 Bad Request\r\n\r\n", "does not speak RESP"}}) {
    StubServer server([&](const RedisCommand&) { return odd.reply; });
    NodeClient client(server.port(), kShort);
    CHECK(contains(message_of<FleetError>([&] { client.command({"PING"}); }), odd.words));
    CHECK(server.await_command("PING"));
  }
}

TEST_CASE("a stub can reset the connections that are open") {
  StubServer server(like_redis);
  NodeClient client(server.port());
  CHECK(client.command({"PING"}) == "PONG");
  server.reset_all();
  CHECK(message_of<FleetError>([&] { client.command({"PING"}); }) != "(no error)");
  CHECK(NodeClient(server.port()).command({"PING"}) == "PONG");
  CHECK(server.accepted() == 2);
}

TEST_CASE_FIXTURE(Proxied, "a proxy that passes is not noticed") {
  NodeClient client(proxy.port());
  const std::string large(3'000'000, 'x');
  CHECK(client.command({"SET", "key", large}) == "OK");
  CHECK(client.command({"GET", "key"}) == large);
  CHECK(proxy.accepted() == 1);
  CHECK(proxy.await_request_bytes(large.size()));
}

TEST_CASE_FIXTURE(Proxied, "a proxy that holds forwards nothing, and forwards all of it later") {
  Caller before = connected();
  proxy.hold();
  before.send({"INCR", "count"});
  Caller during(proxy);
  during.send({"INCR", "other"});
  CHECK(fleet.run(0, {"EXISTS", "count", "other"}) == "0");
  proxy.pass();
  CHECK(before.receives(integer(1)));
  CHECK(during.receives(integer(1)));
}

TEST_CASE_FIXTURE(Proxied, "a proxy that holds replies lets requests through") {
  proxy.hold_replies();
  Caller caller(proxy);
  caller.send({"INCR", "count"});
  CHECK(eventually([&] { return fleet.run(0, {"GET", "count"}) == "1"; }));
  CHECK(caller.has_received_nothing());
  proxy.pass();
  CHECK(caller.receives(integer(1)));
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

TEST_CASE_FIXTURE(Proxied, "a proxy that delays passes on everything, later and in order") {
  proxy.delay(milliseconds(20));
  NodeClient client(proxy.port());
  const auto start = std::chrono::steady_clock::now();
  for (int i = 1; i <= 3; ++i) CHECK(client.command({"INCR", "count"}) == std::to_string(i));
  // Three commands there and back: never earlier than that, whatever the machine is busy with.
  CHECK(std::chrono::steady_clock::now() - start >= 6 * milliseconds(20));
}

TEST_CASE_FIXTURE(Proxied, "a proxy with jitter passes on everything in order") {
  proxy.delay(milliseconds(1), milliseconds(5));
  Caller caller(proxy);
  std::string replies;
  for (int i = 1; i <= 20; ++i) {
    caller.send({"INCR", "count"});
    replies += integer(i);
  }
  CHECK(caller.receives(replies));
}

TEST_CASE_FIXTURE(
    Proxied,
    "a proxy that drips passes replies on byte by byte, and the rest at once when it passes") {
  proxy.drip(milliseconds(2));
  Caller caller(proxy);
  const auto start = std::chrono::steady_clock::now();
  caller.send({"PING"});
  CHECK(caller.receives(simple("PONG")));
  // Seven bytes: never earlier than that, whatever the machine is busy with.
  CHECK(std::chrono::steady_clock::now() - start >= 6 * milliseconds(2));
  proxy.drip(std::chrono::hours(1));
  caller.send({"INCR", "count"});
  CHECK(caller.receives(":"));
  CHECK(caller.has_received_nothing());
  proxy.pass();
  CHECK(caller.receives("1\r\n"));
}

TEST_CASE_FIXTURE(
    Proxied, "a proxy can cut replies off, of old and new connections, until it passes again") {
  Caller before = connected();
  proxy.cut_replies(4);
  Caller after(proxy);
  for (Caller* caller : {&before, &after}) {
    caller->send({"PING"});
    CHECK(caller->receives("+PON"));
    CHECK(caller->is_ended());
  }
  proxy.pass();
  check_it_passes();
}

TEST_CASE_FIXTURE(Proxied, "a proxy can put rubbish before replies, on old and new connections") {
  Caller before = connected();
  proxy.spoil_replies("rubbish");
  CHECK(before.receives("rubbish"));
  Caller after(proxy);
  CHECK(after.receives("rubbish"));
  proxy.pass();
  check_it_passes();
}

TEST_CASE_FIXTURE(Proxied,
                  "a proxy keeps what went through in both directions, if it is asked to") {
  NodeClient client(proxy.port());
  client.command({"SET", "key", "not kept"});
  CHECK(proxy.recorded().empty());
  proxy.record();
  CHECK(client.command({"GET", "key"}) == "not kept");
  CHECK(contains(proxy.recorded(), "GET"));
  CHECK(contains(proxy.recorded(), "not kept"));
}

TEST_CASE_FIXTURE(Proxied,
                  "a proxy can reset all connections, on both sides, and forgets what it held") {
  Caller caller(proxy);
  caller.send({"CLIENT", "SETNAME", "through-proxy"});
  CHECK(caller.receives(simple("OK")));
  proxy.hold_requests();
  caller.send({"SET", "key", "held"});
  proxy.reset_all();
  proxy.pass();
  CHECK(caller.is_cut_off());
  CHECK(eventually([&] { return !contains(fleet.run(0, {"CLIENT", "LIST"}), "through-proxy"); }));
  CHECK(fleet.run(0, {"GET", "key"}) == "(nil)");
  check_it_passes();
}

TEST_CASE_FIXTURE(Proxied,
                  "a proxy that refuses resets old and new connections until it passes again") {
  NodeClient before(proxy.port());
  CHECK(before.command({"PING"}) == "PONG");
  proxy.refuse();
  CHECK(message_of<FleetError>([&] { before.command({"PING"}); }) != "(no error)");
  CHECK(message_of<FleetError>([&] { NodeClient(proxy.port()).command({"PING"}); }) !=
        "(no error)");
  proxy.pass();
  check_it_passes();
}
