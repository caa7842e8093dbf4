// SPDX-License-Identifier: MIT
// A link over real sockets, and a node that does what nodes should not do; tests/wire has the rest,
// without sockets.
#include <doctest/doctest.h>
#include <string>

#include "cluster/fleet.hpp"
#include "cluster/free_port.hpp"
#include "net_link_fixture.hpp"
#include "support/processes.hpp"
#include "support/proxy.hpp"

using namespace redlock::net;
using namespace redlock::wire;
using namespace redlock::testing;
using redlock::Cause;
using redlock::cluster::listen_on_loopback;
using redlock::cluster::Received;
using redlock::engine::Delivery;
using redlock::engine::Granted;

namespace {

// Healthy but for its answers to the scripts.
StubServer node_answering(StubReply reply) {
  return StubServer([reply = std::move(reply)](const RedisCommand& command) -> StubReply {
    return is(command, "EVALSHA") ? reply : healthy(command);
  });
}

void quick(Link::Config& config) {
  config.silence = milliseconds(50);
}

/// A node played by the test itself, byte by byte: its side of the connection, once the link is up.
UniqueFd shake_hands(LinkFixture& link, const UniqueFd& listener) {
  UniqueFd node;
  link.run_until([&] { return static_cast<bool>(node = accept_from(listener)); });
  std::string handshake = simple("OK") + healthy({"CLIENT", "ID"}) + healthy({"INFO"}) +
                          healthy({"HGETALL"}) + array({}) + array({}) + array({});
  REQUIRE(send_some(node, handshake));
  std::string bytes;
  link.run_until([&] { return contains(bytes += receive(node).bytes, "TIME"); });
  handshake.clear();
  for (std::size_t at = bytes.find("SCRIPT"); at != std::string::npos;
       at = bytes.find("SCRIPT", at + 1)) {
    handshake += healthy({"SCRIPT", "LOAD"});
  }
  handshake += healthy({"TIME"});
  REQUIRE(send_some(node, handshake));
  link.run_until_up();
  return node;
}

}  // namespace

TEST_CASE("a node that refuses connections fails commands at once, unsent, with the reason") {
  const auto port = redlock::cluster::FreePort::pick();  // nobody comes to listen there
  LinkFixture link("redis://127.0.0.1:" + std::to_string(port.number()));
  link.submit(1, LinkFixture::acquire());
  link.run_until_down();
  REQUIRE(link.replies.size() == 1);
  const auto& why = unavailable(link.replies[0].second);
  CHECK(why.cause == Cause::connection_failed);
  CHECK(why.delivery == Delivery::not_sent);
  CHECK(contains(why.detail, "connection refused"));
  link.submit(2, LinkFixture::acquire());
  REQUIRE(link.replies.size() == 2);
  CHECK(unavailable(link.replies[1].second).delivery == Delivery::not_sent);
}

TEST_CASE("one reason is told once, however often connecting fails for it") {
  StubServer node = StubServer::resetting();
  LinkFixture link(node.uri());
  link.run_until([&] { return node.accepted() >= 6; });
  REQUIRE(link.downs.size() >= 1);
  CHECK(link.downs[0].cause == Cause::connection_failed);
  // A reset is noticed while connecting or while reading, in any order.
  for (std::size_t i = 1; i < link.downs.size(); ++i) {
    CHECK(link.downs[i].detail != link.downs[i - 1].detail);
  }
}

TEST_CASE("a node that accepts and never speaks is given up at the connect timeout") {
  StubServer node = StubServer::silent();
  LinkFixture link(node.uri(),
                   [](Link::Config& config) { config.connect_timeout = milliseconds(30); });
  link.submit(1, LinkFixture::acquire());
  link.run_until_down();
  CHECK(link.downs[0].cause == Cause::timed_out);
  CHECK(unavailable(link.replies.at(0).second).delivery == Delivery::not_sent);
  node.set_script(healthy);
  link.run_until_up();
}

TEST_CASE("half a reply and then the end leaves open what the node did") {
  for (const auto then : {StubReply::Then::close, StubReply::Then::reset}) {
    StubServer node = node_answering(StubReply("*2\r\n:1\r\n", then));
    LinkFixture link(node.uri());
    link.run_until_up();
    link.submit(1, LinkFixture::acquire());
    link.run_until_down();
    REQUIRE(link.replies.size() == 1);
    CHECK(unavailable(link.replies[0].second).cause == Cause::connection_lost);
    CHECK(unavailable(link.replies[0].second).delivery == Delivery::unknown);
  }
}

TEST_CASE("a silent node is given up after the silence, and replaced") {
  StubServer node = node_answering(StubReply::silence());
  LinkFixture link(node.uri(), quick);
  link.run_until_up();
  link.submit(1, LinkFixture::acquire());
  link.submit(2, LinkFixture::release());
  link.run_until_down();
  REQUIRE(link.replies.size() == 2);
  CHECK(link.replies[0].first == 1);
  CHECK(unavailable(link.replies[0].second).cause == Cause::timed_out);
  CHECK(unavailable(link.replies[0].second).delivery == Delivery::unknown);
  node.set_script(healthy);
  link.run_until_up();
}

TEST_CASE("a node that does not read is given up after the silence, however much waits for it") {
  const UniqueFd listener = listen_on_loopback();
  LinkFixture link("redis://127.0.0.1:" + std::to_string(port_of(listener)), quick);
  const UniqueFd node = shake_hands(link, listener);
  const std::string name(1'000, 'x');
  for (std::uint64_t number = 1; number <= 20'000; ++number) {
    link.submit(number, LinkFixture::acquire(name));
  }
  link.run_until_down();
  CHECK(contains(link.downs[0].detail, "silent for"));
  REQUIRE(link.replies.size() == 20'000);
}

TEST_CASE("a node that does not read is given up before its output grows without end") {
  const UniqueFd listener = listen_on_loopback();
  LinkFixture link("redis://127.0.0.1:" + std::to_string(port_of(listener)),
                   [](Link::Config& config) {
                     config.silence = milliseconds(3'600'000);
                     config.unsent_limit = std::size_t{16} << 20;
                   });
  const UniqueFd node = shake_hands(link, listener);
  const std::string name(512, 'x');
  std::uint64_t sent = 0;
  while (link.downs.empty() && sent < 200'000) {
    link.submit(++sent, LinkFixture::acquire(name));
    if (sent % 100 == 0) link.run_once();
  }
  REQUIRE_FALSE(link.downs.empty());
  CHECK(contains(link.downs[0].detail, "does not read"));
  REQUIRE(link.replies.size() == sent);
  CHECK(unavailable(link.replies.front().second).delivery == Delivery::unknown);
  CHECK(unavailable(link.replies.back().second).delivery == Delivery::not_sent);
}

TEST_CASE("what waits in the socket's queue counts as output that the node does not read") {
  const UniqueFd listener = listen_on_loopback();
  LinkFixture link("redis://127.0.0.1:" + std::to_string(port_of(listener)),
                   [](Link::Config& config) {
                     config.silence = milliseconds(3'600'000);
                     config.unsent_limit = std::size_t{24} << 20;
                   });
  const UniqueFd node = shake_hands(link, listener);
  const std::string name(512, 'x');
  std::uint64_t sent = 0;
  // Each burst alone, of some 19 MB, is below the limit. The system takes a few of the first.
  for (int burst = 0; burst < 2; ++burst) {
    CHECK(link.downs.empty());
    const std::uint64_t last = sent + 25'000;
    while (sent < last) link.submit(++sent, LinkFixture::acquire(name));
    link.run_once();
  }
  REQUIRE_FALSE(link.downs.empty());
  CHECK(contains(link.downs[0].detail, "does not read"));
  CHECK(link.replies.size() == sent);
}

TEST_CASE("questions are answered with values, errors and reasons, each once") {
  StubServer node(healthy);
  LinkFixture link(node.uri());
  link.ask({"PING"});  // before there is a connection
  link.run_until([&] { return link.answers.size() == 1; });
  CHECK(std::get<std::string>(link.answers[0]->data) == "PONG");
  const Answer unknown = link.question({"NONSENSE"});
  CHECK(contains(std::get<Value::ErrorText>(unknown->data).text, "unknown command"));
  node.set_script([](const RedisCommand&) { return StubReply("", StubReply::Then::close); });
  const Answer lost = link.question({"PING"});
  REQUIRE_FALSE(lost);
  CHECK(lost.error().cause == Cause::connection_lost);
  const Answer refused = link.question({"PING"});
  CHECK_FALSE(refused);
}

TEST_CASE("a question ends at its timeout, and its late answer disturbs nothing") {
  StubServer node(healthy);
  Proxy network(node.port());
  LinkFixture link(network.uri());
  link.run_until_up();
  network.hold_replies();
  link.ask({"PING"}, milliseconds(10));
  link.run_until([&] { return link.answers.size() == 1; });
  REQUIRE_FALSE(link.answers[0]);
  CHECK(link.answers[0].error().cause == Cause::timed_out);
  network.pass();
  CHECK(std::holds_alternative<Granted>(link.call(LinkFixture::acquire())));
  CHECK(link.answers.size() == 1);
  CHECK(link.downs.empty());
}

TEST_CASE("stopping answers the questions, and only once") {
  StubServer node = StubServer::silent();
  LinkFixture link(node.uri());
  link.ask({"PING"});
  link.run_once();
  link.ask({"PING"});
  link.stop();
  REQUIRE(link.answers.size() == 2);
  CHECK_FALSE(link.answers[0]);
  CHECK_FALSE(link.answers[1]);
}

TEST_CASE("a connection that is given up is reset, one that is no longer needed is closed") {
  const UniqueFd listener = listen_on_loopback();
  UniqueFd node;
  const auto end_of = [&] {
    auto end = Received::End::open;
    eventually([&] { return (end = receive(node).end) != Received::End::open; });
    return end;
  };
  const std::string uri = "redis://127.0.0.1:" + std::to_string(port_of(listener));
  {
    LinkFixture hasty(uri, [](Link::Config& config) { config.connect_timeout = milliseconds(30); });
    hasty.run_until([&] { return static_cast<bool>(node = accept_from(listener)); });
    hasty.run_until_down();
    CHECK(end_of() == Received::End::broken);
  }
  while (accept_from(listener)) {
  }
  LinkFixture link(uri);
  link.run_until([&] { return static_cast<bool>(node = accept_from(listener)); });
  link.run_once();
  link.stop();
  link.run_once();
  CHECK(end_of() == Received::End::closed);
}

TEST_CASE("a real node wakes the client that waits, on the connection of its commands") {
  redlock::cluster::Fleet fleet({.nodes = 1});
  LinkFixture waiting(fleet.uri(0),
                      [](Link::Config& config) { config.handshake.client = "00112233445566ff"; });
  LinkFixture holding(fleet.uri(0));
  waiting.run_until_up();
  holding.run_until_up();
  REQUIRE(
      std::holds_alternative<redlock::engine::Granted>(holding.call(LinkFixture::acquire("n", 1))));
  auto acquire = LinkFixture::acquire("n", 2);
  acquire.in_order = true;
  acquire.waiter = {.number = 7, .ticket = 1};
  const auto refused = waiting.call(acquire);
  REQUIRE(std::holds_alternative<redlock::engine::Refused>(refused));
  CHECK(std::get<redlock::engine::Refused>(refused).place == 0);
  CHECK(waiting.wakes.empty());
  holding.call(LinkFixture::release("n", 1));
  waiting.run_until([&] { return !waiting.wakes.empty(); });
  CHECK(waiting.wakes[0].waiter == 7);
  CHECK(waiting.wakes[0].after == milliseconds(0));
  CHECK(std::holds_alternative<redlock::engine::Granted>(waiting.call(acquire)));
  // What questions show is as it is in RESP2.
  const auto marker = waiting.question({"HGETALL", "redlock:lock:{n}"});
  CHECK(std::get<std::vector<Value>>(marker->data).size() == 4);
  const auto list = waiting.question({"CLIENT", "LIST"});
  CHECK(std::get<std::string>(list->data).starts_with("id="));
  const auto none = waiting.question({"GET", "redlock:none"});
  CHECK(std::holds_alternative<Value::Nil>(none->data));
}

TEST_CASE("a real node whose user may not subscribe wakes nobody, and grants") {
  for (const char* denied : {"-subscribe", "resetchannels"}) {
    redlock::cluster::Fleet fleet(
        {.nodes = 1, .settings = {std::string("user ann on >pw ~* &* +@all ") + denied}});
    LinkFixture link("redis://ann:pw@127.0.0.1:" + std::to_string(fleet.port(0)),
                     [](Link::Config& config) { config.handshake.client = "00112233445566ff"; });
    link.run_until_up();
    CHECK(std::holds_alternative<redlock::engine::Granted>(link.call(LinkFixture::acquire())));
    auto waits = LinkFixture::acquire("n", 2);
    waits.in_order = true;
    waits.waiter = {.number = 7, .ticket = 1};
    CHECK(std::holds_alternative<redlock::engine::Refused>(link.call(waits)));
    const auto waiter = fleet.run(0, {"HGET", "redlock:lock:{n}:waiters", "00112233445566ff:7"});
    CHECK_MESSAGE(waiter.ends_with(" p"), denied, waiter);
    const auto subscribers = fleet.run(0, {"PUBSUB", "NUMSUB", "redlock:wake:00112233445566ff"});
    CHECK_MESSAGE(subscribers.ends_with("\n0"), denied, subscribers);
  }
}
