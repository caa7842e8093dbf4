// SPDX-License-Identifier: MIT
// A link over real sockets; tests/wire has the rest, without sockets. With a real redis-server:
// restarts, lost connections, permissions, sockets of all kinds, and the holds or releases of one
// turn, which travel in one call. And with a node that does what nodes should not do.
#include <arpa/inet.h>
#include <sys/socket.h>

#include "net_link_fixture.hpp"

using namespace redlock::net;

namespace {

bool has_ipv6() {
  const int probe = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (probe < 0) return false;
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  const bool bound = ::bind(probe, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  ::close(probe);
  return bound;
}

bool is_granted(const engine::Reply& reply) {
  return std::holds_alternative<Granted>(reply);
}

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
    handshake += healthy({"SCRIPT", "LOAD", ""});
  }
  handshake += healthy({"TIME"});
  REQUIRE(send_some(node, handshake));
  link.run_until_up();
  return node;
}

}  // namespace

TEST_CASE("names may have any bytes that the library lets through") {
  Fleet fleet({.nodes = 1});
  LinkFixture link(fleet.uri(0));
  const std::string odd = "a b\r\n$3\r\n\xff\x01\"'*";
  CHECK(is_granted(link.call(LinkFixture::acquire(odd))));
  CHECK(fleet.run(0, {"EXISTS", "redlock:lock:{" + odd + "}"}) == "1");
}

TEST_CASE("a node that was restarted is connected to again, by TCP or a Unix socket") {
  for (const bool unix_socket : {false, true}) {
    Fleet fleet({.nodes = 1, .unix_sockets = true});
    LinkFixture link(unix_socket ? fleet.unix_uri(0) : fleet.uri(0));
    link.run_until_up();
    CHECK(is_granted(link.call(LinkFixture::acquire())));
    fleet.kill(0);
    link.run_until_down();
    CHECK(link.downs[0].cause == Cause::connection_lost);
    fleet.restart(0, Data::empty);
    link.run_until_up();
    CHECK(is_granted(link.call(LinkFixture::acquire())));  // it knows the scripts again
    // It numbers its clients anew: the connection of before may be somebody else's.
    CHECK_FALSE(contains(fleet.run(0, {"INFO", "commandstats"}), "cmdstat_client|kill"));
  }
}

TEST_CASE("a connection that was reset to a stranger's is replaced by one that logs in") {
  Fleet fleet({.nodes = 1, .password = "sesame"});
  LinkFixture link(fleet.uri(0));
  REQUIRE(is_granted(link.call(LinkFixture::acquire())));
  REQUIRE(link.question({"RESET"}));
  const auto why = unavailable(link.call(LinkFixture::release()));
  CHECK(why.cause == Cause::authentication);
  CHECK(why.delivery == Delivery::refused);
  link.run_until_up();
  CHECK(std::holds_alternative<engine::Held>(link.call(LinkFixture::hold())));
}

TEST_CASE("a database other than 0 is where the locks are") {
  Fleet fleet({.nodes = 1});
  LinkFixture link(fleet.uri(0) + "/2");
  CHECK(is_granted(link.call(LinkFixture::acquire())));
  CHECK(fleet.run(0, {"EXISTS", "redlock:lock:{n}"}) == "0");
  CHECK(contains(fleet.run(0, {"INFO", "keyspace"}), "db2:keys=2"));
  LinkFixture none(fleet.uri(0) + "/9999");
  none.run_until_down();
  CHECK(contains(none.downs[0].detail, "DB index is out of range"));
}

TEST_CASE("a Unix socket that does not exist is a failure to connect") {
  LinkFixture link("unix:///no/such/socket");
  link.run_until_down();
  CHECK(link.downs[0].cause == Cause::connection_failed);
}

TEST_CASE("IPv6 works like IPv4, where the machine has it") {
  if (!has_ipv6()) {
    MESSAGE("no IPv6 on this machine: not tested");
    return;
  }
  Fleet fleet({.nodes = 1});
  if (fleet.run(0, {"CONFIG", "SET", "bind", "127.0.0.1 ::1"}) != "OK") {
    MESSAGE("the node cannot listen on ::1: not tested");
    return;
  }
  LinkFixture link("redis://[::1]:" + std::to_string(fleet.port(0)));
  link.run_until_up();
  CHECK(is_granted(link.call(LinkFixture::acquire())));
}

TEST_CASE("what a lost connection still carries is not run once the next one is up") {
  const Fleet fleet({.nodes = 1});
  Proxy network(fleet.port(0));
  LinkFixture link(network.uri(), [](Link::Config& config) { config.silence = milliseconds(50); });
  link.run_until_up();
  network.strand();
  const std::size_t before = network.request_bytes();
  link.submit(1, LinkFixture::acquire());
  link.run_until([&] { return network.request_bytes() > before && !link.replies.empty(); });
  CHECK(unavailable(link.replies[0].second).delivery == Delivery::unknown);
  link.run_until([&] {
    return !link.replies.empty() &&
           std::holds_alternative<engine::NotHeld>(link.call(LinkFixture::release()));
  });
  network.deliver_late();
  REQUIRE(network.await_late());
  CHECK(fleet.run(0, {"EXISTS", "redlock:lock:{n}"}) == "0");
}

TEST_CASE("a real node refuses a call as a whole over one lock that the user may not touch") {
  Fleet fleet({.nodes = 1, .settings = {"user ann on >pw ~* +@all"}});
  LinkFixture link("redis://ann:pw@127.0.0.1:" + std::to_string(fleet.port(0)));
  link.call(LinkFixture::acquire("a"));
  link.call(LinkFixture::acquire("b"));
  fleet.run(0, {"ACL", "SETUSER", "ann", "resetkeys", "~redlock:*:{a}*", "~redlock:fence:*",
                "~redlock:node"});
  // Both are answered as if the script were missing, and so are sent again, each alone.
  link.replies.clear();
  link.submit(1, LinkFixture::hold("a"));
  link.submit(2, LinkFixture::hold("b"));
  link.run_until([&] { return link.replies.size() == 2; });
  for (const auto& entry : link.replies) {
    CHECK(std::holds_alternative<engine::NoScript>(entry.second));
  }
  CHECK(std::holds_alternative<engine::Held>(link.call(LinkFixture::hold("a"))));

  link.replies.clear();
  link.submit(1, LinkFixture::release("a"));
  link.submit(2, LinkFixture::release("b"));
  link.run_until([&] { return link.replies.size() == 2; });
  for (const auto& entry : link.replies) {
    CHECK(unavailable(entry.second).cause == Cause::permission);
  }
  auto alone = LinkFixture::release("a");
  alone.alone = true;
  CHECK(std::holds_alternative<engine::ReleasedHere>(link.call(alone)));
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
