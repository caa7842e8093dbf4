// SPDX-License-Identifier: MIT
// A node whose reply never ends, beside four healthy ones that the same thread serves.
#include "net_core_fixture.hpp"

using namespace redlock::net;

namespace {

// What may stand in the buffers of a connection, several times over. A question may be answered
// with 64 MB.
constexpr std::size_t soon = std::size_t{24} << 20;

// It has no marker, and to the question for one (the note script) it gives an error without end.
StubReply endless(const RedisCommand& command) {
  if (is(command, "HGETALL")) return array({});
  if (is(command, "EVAL")) return StubReply::without_end("-ERR ");
  return like_redis(command);
}

}  // namespace

TEST_CASE("a node that answers the note script with an error without end is cut off soon") {
  StubServer stub(endless);
  CoreConfig config = Running::config_for({stub.uri()});
  config.engine.quarantine = true;
  Running client(std::move(config));
  REQUIRE(stub.await_command("EVAL"));
  const engine::Unavailable why = client.sink.await_down(0);
  CHECK(why.cause == Cause::protocol_error);
  CHECK(contains(why.detail, "a line longer than any in a reply"));
  CHECK(stub.letters_sent() < soon);
}

TEST_CASE("healthy nodes go on answering beside one whose errors have no end") {
  const Fleet fleet({.nodes = 4});
  StubServer stub(endless);
  auto uris = fleet.uris();
  uris.push_back(stub.uri());
  Running client(uris);
  constexpr engine::NodeIndex mad = 4;
  for (const engine::RequestId request : {1U, 3U, 5U}) {
    client.sink.await_up(mad);
    client.sink.forget_up(mad);
    const std::size_t before = stub.letters_sent();
    auto question = client.ask(mad, {"EVAL"});
    const auto grant = granted(client.acquire(request, "n"));
    client.release(request + 1, grant.grant);
    const Answer answer = question.get();
    REQUIRE_FALSE(answer.has_value());
    CHECK(answer.error().cause == Cause::protocol_error);
    CHECK(stub.letters_sent() - before < soon);
  }
  for (engine::NodeIndex node = 0; node < mad; ++node) CHECK(client.sink.why_down(node).empty());
}
