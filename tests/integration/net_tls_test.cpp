// SPDX-License-Identifier: MIT
// A link through TLS to real nodes, and to nodes that break off, say nothing or have no TLS;
// tests/tls has the rest, without sockets.
#include "net_link_fixture.hpp"
#include "support/tls_nodes.hpp"
#include "tls/tls_context.hpp"

using namespace redlock::net;
using redlock::TlsOptions;

namespace {

const TlsFiles& files() {
  return TlsFiles::get();
}

Fleet tls_node(bool clients_need_certificates = false) {
  return Fleet({.nodes = 1, .tls = files().of(files().node, clients_need_certificates)});
}

/// Certificates as the node wants them, and a link that uses them.
struct TlsLink {
  explicit TlsLink(const std::string& uri, const TlsOptions& options = files().trusting(),
                   const std::function<void(Link::Config&)>& change = {})
      : context(redlock::tls::load(options).value()), link(uri, change, context.get()) {}

  std::shared_ptr<redlock::tls::TlsContext> context;
  LinkFixture link;
};

/// The cause with this sentence, once there is one: a machine that stands still has others before.
Cause await_reason(LinkFixture& link, const std::string& part,
                   const std::function<void()>& play = {}) {
  auto cause = Cause::none;
  link.run_until([&] {
    if (play) play();
    for (const auto& down : link.downs) {
      if (contains(down.detail, part)) cause = down.cause;
    }
    return cause != Cause::none;
  });
  return cause;
}

std::string with_tls(std::uint16_t port) {
  return "rediss://127.0.0.1:" + std::to_string(port);
}

}  // namespace

TEST_CASE(
    "a lock is taken and given back through TLS, and the next connection resumes the session") {
  if (!server_has_tls()) return;
  const Fleet fleet = tls_node();
  TlsLink with(fleet.uri(0));
  LinkFixture& link = with.link;
  link.run_until_up();
  CHECK_FALSE(link.resumed_session());
  CHECK(std::holds_alternative<Granted>(link.call(LinkFixture::acquire())));
  link.call(LinkFixture::release());
  fleet.run(0, {"CLIENT", "KILL", "TYPE", "normal"});
  link.run_until_down();
  CHECK(link.downs[0].cause == Cause::connection_lost);
  link.run_until_up();
  CHECK(link.resumed_session());
}

TEST_CASE("requests and replies of many records arrive whole") {
  if (!server_has_tls()) return;
  const Fleet fleet = tls_node();
  TlsLink with(fleet.uri(0));
  const std::string text(3'000'000, 'x');
  const Answer echo = with.link.question({"ECHO", text});
  REQUIRE(echo.has_value());
  CHECK(std::get<std::string>(echo->data) == text);
}

TEST_CASE("what a node does not read for a while arrives when it reads again") {
  if (!server_has_tls()) return;
  Fleet fleet = tls_node();
  TlsLink with(fleet.uri(0), files().trusting(),
               [](Link::Config& config) { config.silence = std::chrono::hours(1); });
  LinkFixture& link = with.link;
  link.run_until_up();
  fleet.pause(0);
  const std::string name(2'000, 'x');
  for (std::uint64_t number = 1; number <= 5'000; ++number) {
    link.submit(number, LinkFixture::acquire(name));
    if (number % 1'000 == 0) link.run_once();
  }
  fleet.resume(0);
  link.run_until([&] { return link.replies.size() == 5'000; });
  CHECK(link.downs.empty());
}

TEST_CASE("a node that says nothing in the TLS handshake is given up at the connect timeout") {
  StubServer node = StubServer::silent();
  TlsLink with(with_tls(node.port()), files().trusting(),
               [](Link::Config& config) { config.connect_timeout = milliseconds(100); });
  with.link.submit(1, LinkFixture::acquire());
  CHECK(await_reason(with.link, "no answer to the TLS handshake within 100 ms; ") ==
        Cause::timed_out);
  CHECK(unavailable(with.link.replies.at(0).second).delivery == Delivery::not_sent);
}

TEST_CASE("a TLS handshake that a node does not go on with is given up, too") {
  const UniqueFd listener = listen_on_loopback();
  TlsLink with(with_tls(port_of(listener)), files().trusting(),
               [](Link::Config& config) { config.connect_timeout = milliseconds(300); });
  const std::string beginning("\x16\x03\x03\x00\x50\x02", 6);  // of a ServerHello
  std::vector<UniqueFd> connections;
  const auto begin_each = [&] {
    while (UniqueFd node = accept_from(listener)) {
      std::string bytes = beginning;
      static_cast<void>(send_some(node, bytes));
      connections.push_back(std::move(node));
    }
  };
  CHECK(await_reason(with.link, "the TLS handshake was not complete within 300 ms", begin_each) ==
        Cause::timed_out);
}

TEST_CASE("a TLS handshake that is cut off is repeated") {
  if (!server_has_tls()) return;
  const Fleet fleet = tls_node();
  Proxy network(fleet.port(0));
  network.hold_replies();
  TlsLink with(with_tls(network.port()));
  REQUIRE(eventually([&] {
    with.link.run_once();
    return network.request_bytes() > 0;
  }));
  network.reset_all();
  with.link.run_until_down();
  CHECK(with.link.downs[0].cause == Cause::connection_failed);
  CHECK(contains(with.link.downs[0].detail, "amid the TLS handshake"));
  network.pass();
  with.link.run_until_up();
}

TEST_CASE("TLS to a port without, and no TLS to a port with it, end as their own sentences") {
  const Fleet plain({.nodes = 1});  // it waits for the end of a line
  TlsLink with(with_tls(plain.port(0)), files().trusting(),
               [](Link::Config& config) { config.connect_timeout = milliseconds(300); });
  CHECK(await_reason(with.link, "if it is one, write redis://") == Cause::timed_out);
  // An alert in place of a reply.
  StubServer alerts(
      [](const RedisCommand&) { return std::string("\x15\x03\x01\x00\x02\x02\x46", 7); });
  LinkFixture alerted(alerts.uri());
  alerted.run_until_down();
  CHECK(alerted.downs[0].cause == Cause::tls);
  CHECK(contains(alerted.downs[0].detail, "it answers with TLS; write rediss://"));
  if (!server_has_tls()) return;
  const Fleet fleet = tls_node();
  LinkFixture without("redis://127.0.0.1:" + std::to_string(fleet.port(0)));
  without.run_until_down();
  CHECK(contains(without.downs[0].detail, "write rediss://"));
}

TEST_CASE(
    "a node that wants a certificate says so after the handshake, and it is told every time") {
  if (!server_has_tls()) return;
  const Fleet fleet = tls_node(true);
  for (int i = 0; i < 10; ++i) {
    TlsLink with(fleet.uri(0));
    with.link.submit(1, LinkFixture::acquire());
    with.link.run_until_down();
    CHECK(with.link.downs[0].cause == Cause::tls);
    CHECK(contains(with.link.downs[0].detail, "it wants a certificate of this client"));
    CHECK(unavailable(with.link.replies.at(0).second).delivery == Delivery::not_sent);
  }
  TlsLink complete(fleet.uri(0), files().complete());
  complete.link.run_until_up();
}
