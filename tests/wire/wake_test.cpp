// SPDX-License-Identifier: MIT
// How nodes wake a client's waiters: from the handshake, which asks for it, to what a push means.
#include "wire/wake.hpp"

#include <doctest/doctest.h>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "rig.hpp"
#include "support/text.hpp"

using namespace redlock::wire;
using namespace redlock::testing;
using namespace std::chrono_literals;
namespace engine = redlock::engine;
using redlock::Cause;

namespace {

constexpr const char* client = "00112233445566ff";
constexpr const char* channel = "redlock:wake:00112233445566ff";

std::string pushed(const std::vector<std::string>& parts) {
  std::string text = ">" + std::to_string(parts.size()) + "\r\n";
  for (const auto& part : parts) text += part;
  return text;
}
std::string message(const std::string& text, const std::string& to = channel) {
  return pushed({bulk("message"), bulk(to), bulk(text)});
}
std::string subscription() {
  return pushed({bulk("subscribe"), bulk(channel), integer(1)});
}

/// Speaks RESP3 where Redis does.
std::string waking(const RedisCommand& command) {
  if (is(command, "HELLO")) return "%1\r\n+proto\r\n:3\r\n";
  if (is(command, "SUBSCRIBE")) return subscription();
  std::string reply = healthy(command);
  const bool is_map = is(command, "CONFIG GET") || is(command, "HGETALL");
  if (is_map)
    reply = "%" + std::to_string(std::stoi(reply.substr(1)) / 2) + reply.substr(reply.find('\r'));
  if (is(command, "INFO")) {
    const std::string text = reply.substr(reply.find('\n') + 1);
    reply = "=" + std::to_string(text.size() - 2 + 4) + "\r\ntxt:" + text;
  }
  return reply;
}

void as_client(Link::Config& config) {
  config.handshake.client = client;
}

struct ClientRig : ConnectedRig {
  explicit ClientRig(Script script = waking) : ConnectedRig(std::move(script), as_client) {}
};

/// Answers one command so, and the rest as this node does.
LinkRig::Script but(const std::string& name, const std::string& reply,
                    const LinkRig::Script& node = waking) {
  return [=](const RedisCommand& command) { return is(command, name) ? reply : node(command); };
}

std::optional<Wake> wake_in(const std::string& bytes) {
  ReplyReader reader;
  reader.feed(bytes);
  REQUIRE(reader.next(10'000) == ReplyReader::Outcome::push);
  return read_wake(reader.reply(), channel);
}

}  // namespace

TEST_CASE("a handshake in RESP3 learns what one in RESP2 does, and that the node wakes waiters") {
  LinkRig rig(waking, as_client, "redis://:secret@host/3");
  rig.run();
  REQUIRE(rig.facts);
  CHECK(rig.facts->subscribed);
  CHECK(rig.facts->marker);
  CHECK(rig.facts->durable == true);
  CHECK(rig.facts->run_id.size() == 40);
  CHECK(rig.warnings == std::vector<std::string>{""});
  CHECK(rig.commands[0] == RedisCommand{"AUTH", "secret"});
  CHECK(rig.commands[1] == RedisCommand{"HELLO", "3"});
  CHECK(rig.commands[2] == RedisCommand{"SELECT", "3"});
  CHECK(std::ranges::count(rig.commands, RedisCommand{"SUBSCRIBE", channel}) == 1);
  CHECK(rig.commands.back() == RedisCommand{"TIME"});
  CHECK(rig.clocks.size() == 1);
}

TEST_CASE("a node that refuses RESP3 or the channel is met all the same") {
  for (const char* refusal : {"NOPERM this user has no permissions to run the 'hello' command",
                              "ERR unknown command `HELLO`, with args beginning with: `3`, ",
                              "NOPROTO unsupported protocol version"}) {
    ClientRig rig(but("HELLO", error(refusal), healthy));
    REQUIRE_MESSAGE(rig.facts, refusal);
    CHECK_FALSE(rig.facts->subscribed);
    CHECK(rig.said("SUBSCRIBE") == 0);
    CHECK(rig.warnings == std::vector<std::string>{""});
    CHECK(std::holds_alternative<engine::Granted>(rig.call(LinkRig::acquire())));
  }
  ClientRig rig(but("SUBSCRIBE", error("NOPERM this user has no permissions to access one of the "
                                       "channels used as arguments")));
  REQUIRE(rig.facts);
  CHECK_FALSE(rig.facts->subscribed);
  REQUIRE(rig.warnings.size() == 1);
  CHECK(rig.warnings[0].starts_with(
      "it refuses the channel of turns, "
      "so it cannot tell waiting calls that their turn has come (NOPERM "));
  CHECK(rig.warnings[0].ends_with("; permit &redlock:wake:*)"));
}

TEST_CASE("a node that wants a password first, or is full, is refused as before") {
  for (const char* refusal :
       {"NOAUTH HELLO must be called with the client already authenticated",
        "ERR max number of clients reached", "LOADING Redis is loading the dataset in memory"}) {
    ClientRig rig(but("HELLO", error(refusal)));
    REQUIRE_MESSAGE(rig.downs.size() == 1, refusal);
    CHECK_FALSE(rig.facts);
    CHECK(rig.downs.front().detail.starts_with(refusal));
  }
}

TEST_CASE("pushes may stand anywhere in the handshake, and say nothing yet") {
  const std::string other = pushed({bulk("subscribe"), bulk("another"), integer(1)});
  for (const char* before : {"SUBSCRIBE", "SCRIPT", "TIME"}) {
    ClientRig rig([&](const RedisCommand& command) {
      const std::string reply = waking(command);
      return is(command, before) ? message("1 0") + other + reply + message("2 0") : reply;
    });
    REQUIRE_MESSAGE(rig.facts, before);
    CHECK(rig.facts->subscribed);
    // What follows the last reply comes when the connection is ready.
    CHECK(rig.wakes.size() == (std::string_view(before) == "TIME" ? 1 : 0));
  }
  // Nor do they confirm a subscription that is refused behind them.
  ClientRig rig(but("SUBSCRIBE", other + message("1 0") +
                                     error("NOPERM this user has no permissions to access one of "
                                           "the channels")));
  REQUIRE(rig.facts);
  CHECK_FALSE(rig.facts->subscribed);
}

TEST_CASE("a subscription that is confirmed as a reply is none") {
  ClientRig rig(but("SUBSCRIBE", array({bulk("subscribe"), bulk(channel), integer(1)})));
  CHECK_FALSE(rig.facts);
  CHECK(rig.only_down().cause == Cause::protocol_error);
}

TEST_CASE("a client that finds a copy of itself connects again with a new name, once") {
  // From the second connection on somebody else is there, whatever the channel.
  int receivers = 0;
  std::vector<std::string> channels;
  ClientRig rig([&](const RedisCommand& command) {
    if (is(command, "PUBLISH")) return integer(receivers);
    if (!is(command, "SUBSCRIBE")) return waking(command);
    channels.push_back(command[1]);
    return pushed({bulk("subscribe"), bulk(command[1]), integer(1)});
  });
  CHECK(rig.said("PUBLISH") == 0);
  receivers = 1;
  rig.break_stream();
  rig.pass(2s);
  CHECK(rig.said("PUBLISH") > 0);
  CHECK(channels == std::vector<std::string>{channel, channel});
  receivers = 2;
  rig.break_stream();
  rig.pass(5s);
  CHECK(rig.is_open());
  REQUIRE(channels.size() == 4);
  CHECK(channels[2] == channel);
  CHECK(channels[3].starts_with(channel));
  CHECK(channels[3].size() == std::string(channel).size() + 8);
}

TEST_CASE("a message on the client's channel wakes a waiter, whatever is awaited") {
  ClientRig rig;
  rig.receive(message("7 0"));
  REQUIRE(rig.wakes.size() == 1);
  CHECK(rig.wakes[0].line == 7);
  CHECK(rig.wakes[0].after == 0ms);
  rig.node = [](const RedisCommand& command) {
    const std::string reply = is(command, "PING") ? bulk("PONG") : waking(command);
    return message("18446744073709551615 20") + reply + message("8 60");
  };
  CHECK(std::holds_alternative<engine::Granted>(rig.call(LinkRig::acquire())));
  CHECK(std::get<std::string>(rig.answer_to({"PING"})->data) == "PONG");
  REQUIRE(rig.wakes.size() == 5);
  CHECK(rig.wakes[1].line == 18'446'744'073'709'551'615U);
  CHECK(rig.wakes[1].after == 20ms);
  CHECK(rig.wakes[4].after == 60ms);
  CHECK(rig.downs.empty());
}

TEST_CASE("what is no wake-up of this client is ignored") {
  for (const std::string text :
       {"", " ", "1", "1 ", " 0", "0 0", "1 -1", "-1 0", "1 0 ", "1  0", "01 0", "1 00", "x 0",
        "1 x", "18446744073709551616 0", "1 10001", "+1 0", "1 0\r\n", "1.0 0"}) {
    CHECK_MESSAGE(!wake_in(message(text)), text);
  }
  CHECK(wake_in(message("1 10000"))->after == 10s);
  CHECK_FALSE(wake_in(message("1 0", "redlock:wake:another")));
  CHECK_FALSE(wake_in(pushed({})));
  CHECK_FALSE(wake_in(pushed({bulk("message"), bulk(channel)})));
  CHECK_FALSE(wake_in(pushed({bulk("message"), bulk(channel), integer(1)})));
  CHECK_FALSE(wake_in(pushed({bulk("pmessage"), bulk(channel), bulk("1 0")})));
  CHECK_FALSE(wake_in(pushed({bulk("message"), bulk(channel), bulk("1 0"), bulk("1 0")})));
  CHECK_FALSE(wake_in(pushed({bulk("invalidate"), array({bulk(channel)})})));
  CHECK_FALSE(wake_in(subscription()));
  ClientRig rig;
  rig.receive(subscription() + message("nonsense") + pushed({}));
  CHECK(rig.downs.empty());
  // But as a reply it is one that nobody asked for.
  rig.receive(array({bulk("message"), bulk(channel), bulk("1 0")}));
  CHECK(rig.wakes.empty());
  CHECK(rig.only_down().cause == Cause::protocol_error);
}

TEST_CASE("a node that answers nothing is given up, however often it wakes somebody") {
  for (const bool question : {false, true}) {
    ClientRig rig;
    rig.node = silent;
    if (question) {
      rig.ask({"PING"});
    } else {
      rig.submit(1, LinkRig::acquire());
    }
    const std::string bytes = message("1 0");
    for (std::size_t i = 0; i < 30 && rig.downs.empty(); ++i) {
      rig.pass(50ms);
      if (rig.downs.empty()) rig.receive(bytes.substr(0, 20));
      if (rig.downs.empty()) rig.receive(bytes.substr(20));
    }
    CHECK(contains(rig.only_down().detail, "silent for 1000 ms"));
    CHECK(rig.wakes.size() > 10);
  }
}

TEST_CASE(
    "a node that pushes more than any node needs to is cut off, during the handshake as well") {
  for (const std::string& push : {pushed({bulk("")}), message("1 0"), pushed({}), subscription()}) {
    for (const bool amid_handshake : {false, true}) {
      LinkRig rig(waking, as_client);
      if (amid_handshake) rig.node = silent;
      rig.run();
      std::string thousand;
      for (int i = 0; i < 1'000; ++i) thousand += push;
      for (int i = 0; i < 19; ++i) rig.receive(thousand);
      CHECK(rig.downs.empty());
      rig.receive(thousand + push);
      CHECK(rig.only_down().cause == Cause::protocol_error);
      CHECK(rig.downs[0].detail ==
            "it sent more than 20000 unrequested messages within a second; the "
            "connection was given up");
      CHECK(rig.closings == std::vector{Closing::reset});
      CHECK(rig.link().deadline() - rig.now >= 1s);
    }
  }
}

TEST_CASE("large messages that nobody asked for count as several") {
  ClientRig rig;
  const std::string push = message(std::string(100'000, 'x'));
  std::size_t received = 0;
  for (; rig.downs.empty() && received < (std::size_t{64} << 20); received += push.size()) {
    rig.receive(push);
  }
  CHECK(received < std::size_t{32} << 20);
}

TEST_CASE("a node may push so much in each second") {
  ClientRig rig;
  std::string thousand;
  for (int i = 0; i < 1'000; ++i) thousand += message("7 0");
  for (int second = 0; second < 5; ++second) {
    rig.pass(1s);
    for (int i = 0; i < 20; ++i) rig.receive(thousand);
  }
  CHECK(rig.downs.empty());
  CHECK(rig.wakes.size() == 100'000);
}

TEST_CASE("an acquire says to each connection whether its node wakes the waiter") {
  const auto order_said_to = [](const LinkRig::Script& node) {
    ClientRig rig(node);
    auto acquire = LinkRig::acquire();
    acquire.in_order = true;
    acquire.place = {.line = 3};
    rig.call(acquire);
    return rig.commands.back().at(15) + " " + rig.commands.back().at(16);
  };
  CHECK(order_said_to(waking) == "w " + std::string(client) + ":3");
  CHECK(order_said_to(healthy) == "p " + std::string(client) + ":3");
}
