// SPDX-License-Identifier: MIT
// A link over real sockets, and a node that does what nodes should not do; tests/wire has the rest,
// without sockets.
#include "net_link_fixture.hpp"

using namespace redlock::net;

namespace {

/// A node played by the test itself, byte by byte: its side of the connection, once the link is up.
UniqueFd shake_hands(LinkFixture& link, const UniqueFd& listener) {
  UniqueFd node;
  link.run_until([&] { return static_cast<bool>(node = accept_from(listener)); });
  std::string handshake = simple("OK") + healthy({"CLIENT", "ID"}) + healthy({"INFO"}) +
                          healthy({"HGETALL"}) + healthy({"PTTL"}) + array({}) + array({}) +
                          array({});
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
    const std::uint64_t last = sent + 8'000;
    while (sent < last) link.submit(++sent, LinkFixture::acquire(name));
    link.run_once();
  }
  REQUIRE_FALSE(link.downs.empty());
  CHECK(contains(link.downs[0].detail, "does not read"));
  CHECK(link.replies.size() == sent);
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
  acquire.place = {.line = 7};
  const auto refused = waiting.call(acquire);
  REQUIRE(std::holds_alternative<redlock::engine::Refused>(refused));
  CHECK(std::get<redlock::engine::Refused>(refused).place == 0);
  CHECK(waiting.wakes.empty());
  holding.call(LinkFixture::release("n", 1));
  waiting.run_until([&] { return !waiting.wakes.empty(); });
  CHECK(waiting.wakes[0].line == 7);
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
    waits.place = {.line = 7};
    CHECK(std::holds_alternative<redlock::engine::Refused>(link.call(waits)));
    const auto waiter = fleet.run(0, {"HGET", "redlock:waiters:{n}", "00112233445566ff:7"});
    CHECK_MESSAGE(waiter.ends_with(" p 60"), denied, waiter);
    const auto subscribers = fleet.run(0, {"PUBSUB", "NUMSUB", "redlock:wake:00112233445566ff"});
    CHECK_MESSAGE(subscribers.ends_with("\n0"), denied, subscribers);
  }
}
