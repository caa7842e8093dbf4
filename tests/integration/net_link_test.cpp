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
    handshake += healthy({"SCRIPT", "LOAD", ""});
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
