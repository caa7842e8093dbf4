// SPDX-License-Identifier: MIT
// A link and a node that does what nodes should not do: every command gets its one reply, with the
// reason, and the link goes on.
#include <doctest/doctest.h>
#include <string>
#include <thread>

#include "io_link_fixture.hpp"
#include "support/processes.hpp"
#include "support/proxy.hpp"

using namespace redlock::net;
using namespace redlock::wire;
using namespace redlock::testing;
using redlock::Cause;
using redlock::engine::Delivery;
using redlock::engine::Granted;
namespace engine = redlock::engine;

namespace {

// Healthy but for its answers to the scripts.
StubServer node_answering(StubReply reply) {
  return StubServer([reply = std::move(reply)](const Command& command) -> StubReply {
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
  handshake = bulk("a") + bulk("b") + bulk("c") + healthy({"TIME"});
  REQUIRE(send_some(node, handshake));
  link.run_until_up();
  return node;
}

}  // namespace

TEST_CASE("commands submitted before there is a connection are sent once there is one, in order") {
  StubServer node(healthy);
  LinkFixture link(node.uri());
  link.submit(1, LinkFixture::acquire());
  link.submit(2, LinkFixture::release());
  link.run_until([&] { return !link.replies.empty(); });
  CHECK(link.warnings == std::vector<std::string>{""});
  CHECK(link.replies[0].first == 1);
  CHECK(std::get<Granted>(link.replies[0].second).token == 7);
  CHECK(link.clocks.size() == 1);
}

TEST_CASE("an uptime that cannot be is taken for none, or for a century") {
  const std::pair<const char*, std::chrono::seconds> cases[] = {
      {"-86400", std::chrono::seconds::zero()},
      {"9223372036854775807", std::chrono::years(100)},
      {"99999999999999999999", std::chrono::seconds::zero()},
      {"a day", std::chrono::seconds::zero()}};
  for (const auto& [said, understood] : cases) {
    const std::string info = "redis_version:7.0.15\r\nrole:master\r\nuptime_in_seconds:";
    StubServer node([text = info + said](const Command& command) -> StubReply {
      return is(command, "INFO") ? bulk(text) : healthy(command);
    });
    LinkFixture link(node.uri());
    link.run_until_up();
    CHECK(link.uptime == understood);
  }
}

TEST_CASE("a node that refuses connections fails commands at once, unsent, with the reason") {
  std::uint16_t port = 0;
  { port = StubServer(healthy).port(); }
  LinkFixture link("redis://127.0.0.1:" + std::to_string(port));
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

TEST_CASE("an error reply is a node that did not vote, and the connection stays") {
  const std::pair<const char*, Cause> cases[] = {
      {"LOADING Redis is loading the dataset in memory", Cause::loading},
      {"BUSY Redis is busy running a script.", Cause::busy},
      {"OOM command not allowed when used memory > 'maxmemory'.", Cause::out_of_memory},
      {"MISCONF Errors writing to the AOF file", Cause::write_error},
      {"NOPERM this user has no permissions", Cause::permission},
      {"ERR something else", Cause::server_error},
  };
  StubServer node(healthy);
  LinkFixture link(node.uri());
  link.run_until_up();
  for (const auto& [text, cause] : cases) {
    node.set_script([answer = error(text)](const Command&) -> StubReply { return answer; });
    const auto why = unavailable(link.call(LinkFixture::acquire()));
    CHECK(why.cause == cause);
    CHECK(why.detail == text);
  }
  node.set_script(healthy);
  CHECK(std::holds_alternative<Granted>(link.call(LinkFixture::acquire())));
  CHECK(node.accepted() == 1);
}

TEST_CASE("NOSCRIPT is handed on, and the source in full can be sent instead") {
  StubServer node = node_answering(error("NOSCRIPT No matching script. Please use EVAL."));
  LinkFixture link(node.uri());
  link.run_until_up();
  CHECK(std::holds_alternative<engine::NoScript>(link.call(LinkFixture::acquire())));
  CHECK(std::holds_alternative<Granted>(link.call(LinkFixture::acquire(), engine::Form::source)));
  CHECK(node.accepted() == 1);
}

TEST_CASE("rubbish ends the connection, and every outstanding command with it") {
  for (const char* rubbish :
       {"HTTP/1.1 400 Bad Request\r\n\r\n", "+OK\r\n", "*0\r\n", "$-1\r\n", "*2\r\n:1\r\n:-5\r\n",
        "*99999999999\r\n", "*2\r\n:9\r\n:9\r\n", "\x16\x03\x01\x02\x00\r\n"}) {
    StubServer node = node_answering(rubbish);
    LinkFixture link(node.uri());
    link.run_until_up();
    link.submit(1, LinkFixture::acquire());
    link.submit(2, LinkFixture::acquire());
    link.run_until_down();
    REQUIRE_MESSAGE(link.replies.size() == 2, rubbish);
    for (const auto& [number, reply] : link.replies) {
      CHECK(unavailable(reply).cause == Cause::protocol_error);
      CHECK(unavailable(reply).delivery == Delivery::unknown);
    }
    node.set_script(healthy);
    link.run_until_up();
    CHECK(std::holds_alternative<Granted>(link.call(LinkFixture::acquire())));
  }
}

TEST_CASE("a reply that nobody asked for ends the connection") {
  StubServer node = node_answering(array({integer(1), integer(7)}) + "+surprise\r\n");
  LinkFixture link(node.uri());
  link.run_until_up();
  link.submit(1, LinkFixture::acquire());
  link.run_until_down();
  CHECK(std::holds_alternative<Granted>(link.replies.at(0).second));
  CHECK(link.downs[0].cause == Cause::protocol_error);
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

TEST_CASE("the time that we take to write is not counted as the node's silence") {
  const UniqueFd listener = listen_on_loopback();
  static constexpr milliseconds silence{500};
  LinkFixture link("redis://127.0.0.1:" + std::to_string(port_of(listener)),
                   [](Link::Config& config) { config.silence = silence; });
  const UniqueFd node = shake_hands(link, listener);
  link.submit(1, LinkFixture::acquire());
  std::this_thread::sleep_for(silence + milliseconds(50));  // a turn of the loop as long as this
  for (int i = 0; i < 5; ++i) {
    link.run_once();
    std::this_thread::sleep_for(milliseconds(2));
  }
  std::string reply = array({integer(1), integer(7)});
  REQUIRE(send_some(node, reply));
  link.run_until([&] { return !link.replies.empty(); });
  CHECK(link.downs.empty());
}

TEST_CASE("a node that drips bytes and never ends a reply is given up as a silent one is") {
  const UniqueFd listener = listen_on_loopback();
  LinkFixture link("redis://127.0.0.1:" + std::to_string(port_of(listener)),
                   [](Link::Config& config) { config.silence = milliseconds(50); });
  UniqueFd node = shake_hands(link, listener);
  link.submit(1, LinkFixture::acquire());
  std::string begun = "*2\r\n$900000\r\n";
  REQUIRE(send_some(node, begun));
  link.run_until([&] {
    // A byte in each turn of the loop; the connection may be gone before the test looks.
    std::string byte = "x";
    static_cast<void>(send_some(node, byte));
    return !link.downs.empty();
  });
  CHECK(link.downs[0].cause == Cause::timed_out);
  REQUIRE(link.replies.size() == 1);
  CHECK(unavailable(link.replies[0].second).delivery == Delivery::unknown);
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
                     config.silence = milliseconds(60'000);
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

TEST_CASE("questions are answered with values, errors and reasons, each once") {
  StubServer node(healthy);
  LinkFixture link(node.uri());
  link.ask({"PING"});  // before there is a connection
  link.run_until([&] { return link.answers.size() == 1; });
  CHECK(std::get<std::string>(link.answers[0]->data) == "PONG");
  const Answer unknown = link.question({"NONSENSE"});
  CHECK(contains(std::get<Value::ErrorText>(unknown->data).text, "unknown command"));
  node.set_script([](const Command&) { return StubReply("", StubReply::Then::close); });
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

TEST_CASE("a question may be answered at length, a command may not") {
  const std::string long_text = bulk(std::string(3'000'000, 'x'));
  StubServer node(healthy);
  LinkFixture link(node.uri());
  link.run_until_up();
  node.set_script([long_text](const Command&) { return StubReply(long_text); });
  const Answer answer = link.question({"KEYS", "*"});
  CHECK(std::get<std::string>(answer->data).size() == 3'000'000);
  link.submit(1, LinkFixture::acquire());
  link.run_until_down();
  CHECK(link.downs[0].cause == Cause::protocol_error);
}

TEST_CASE("a question asked from within an answer is answered too") {
  StubServer node(healthy);
  LinkFixture link(node.uri());
  link.run_until_up();
  link.ask({"PING"});
  link.run_until([&] { return link.answers.size() == 1; });
  CHECK(link.question({"PING"}));
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
  LinkFixture link("redis://127.0.0.1:" + std::to_string(port_of(listener)),
                   [](Link::Config& config) { config.connect_timeout = milliseconds(30); });
  link.run_until([&] { return static_cast<bool>(node = accept_from(listener)); });
  link.run_until_down();
  CHECK(end_of() == Received::End::broken);
  link.run_until([&] { return static_cast<bool>(node = accept_from(listener)); });
  link.run_once();
  link.stop();
  link.run_once();
  CHECK(end_of() == Received::End::closed);
}

TEST_CASE("an objection refuses a node as incompatible, with the sentence") {
  StubServer node(healthy);
  LinkFixture link(node.uri());
  link.objection = "it is the same server as another";
  link.submit(1, LinkFixture::acquire());
  link.run_until_down();
  CHECK(link.downs[0].cause == Cause::incompatible);
  CHECK(link.downs[0].detail == "it is the same server as another");
  CHECK(unavailable(link.replies.at(0).second).delivery == Delivery::not_sent);
  link.objection.reset();
  link.run_until_up();
}
