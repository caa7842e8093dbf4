// SPDX-License-Identifier: MIT
// A node that does more than nodes do, or less, beside four healthy ones that the same thread
// serves: what it costs the others is bounded by what we allow.
#include <cstddef>

#include "net_core_fixture.hpp"
#include "net_link_fixture.hpp"

using namespace redlock::net;

namespace {

constexpr engine::NodeIndex hostile = 4;

std::vector<std::string> beside(const Fleet& fleet, const StubServer& stub) {
  auto uris = fleet.uris();
  uris.push_back(stub.uri());
  return uris;
}

/// One lock after the other is taken and given back, each by the other four nodes.
class Cycles {
 public:
  explicit Cycles(Running& client) : client_(client) {}

  void run(int count) {
    for (; count > 0; --count) {
      const auto grant = granted(client_.acquire(++request_, "n"));
      client_.release(++request_, grant.grant);
    }
  }
  double seconds_for(int count) {
    const auto before = BootClock::now();
    run(count);
    return std::chrono::duration<double>(BootClock::now() - before).count();
  }

 private:
  Running& client_;
  engine::RequestId request_ = 0;
};

/// It has no marker.
std::string without_marker(const RedisCommand& command) {
  return is(command, "HGETALL") ? array({}) : like_redis(command);
}

/// To any script in full (the note of a node without a marker, say) it gives an error without end.
StubReply endless(const RedisCommand& command) {
  return is(command, "EVAL") ? StubReply::without_end("-ERR ") : StubReply(without_marker(command));
}

}  // namespace

TEST_CASE("a node whose errors have no end is cut off soon, and the others go on beside it") {
  // What may stand in the buffers of a connection, several times over. A question may be answered
  // with 64 MB.
  constexpr std::size_t soon = std::size_t{24} << 20;
  const Fleet fleet({.nodes = 4});
  StubServer stub(endless);
  Running client(beside(fleet, stub));
  Cycles calls(client);
  for (int round = 0; round < 3; ++round) {
    client.sink.await_up(hostile);
    client.sink.forget_up(hostile);
    const std::size_t before = stub.letters_sent();
    auto question = client.ask(hostile, {"EVAL"});
    calls.run(1);
    const Answer answer = question.get();
    REQUIRE_FALSE(answer.has_value());
    CHECK(answer.error().cause == Cause::protocol_error);
    CHECK(contains(answer.error().detail, "a line longer than any in a reply"));
    CHECK(stub.letters_sent() - before < soon);
  }
  for (engine::NodeIndex node = 0; node < hostile; ++node) {
    CHECK(client.sink.why_down(node).empty());
  }
}

TEST_CASE("a node that pushes without end is cut off, and cycles go on beside it") {
  const Fleet fleet({.nodes = 4});
  constexpr int cycles = 300;
  double undisturbed = 0;
  {
    StubServer silent = StubServer::silent();
    Running client(beside(fleet, silent));
    Cycles calls(client);
    calls.run(cycles / 10);
    undisturbed = calls.seconds_for(cycles);
  }
  const std::vector<std::string> floods{
      ">1\r\n$0\r\n\r\n", ">0\r\n",
      ">3\r\n" + bulk("message") + bulk("redlock:wake:" + std::string(16, '0')) + bulk("1 0")};
  for (const std::string& flood : floods) {
    StubServer stub([&](const RedisCommand& command) {
      return is(command, "EVALSHA") ? StubReply::without_end("", flood)
                                    : StubReply(without_marker(command));
    });
    Running client(beside(fleet, stub));
    Cycles calls(client);
    client.sink.await_up(hostile);
    const auto began = std::chrono::steady_clock::now();
    const double flooded = calls.seconds_for(cycles);
    MESSAGE(cycles << " cycles take " << flooded / undisturbed
                   << " times as long beside a flood of " << flood.size() << " bytes a push");
    const auto why = client.sink.await_down(hostile);
    CHECK(why.cause == Cause::protocol_error);
    CHECK(contains(why.detail, "unrequested messages within a second"));
    // What may be pushed, in each second and at its edge, and what stands in the buffers of one.
    const auto lasted = std::chrono::steady_clock::now() - began;
    const auto seconds =
        static_cast<std::size_t>(std::chrono::ceil<std::chrono::seconds>(lasted).count());
    const std::size_t connections = stub.accepted();
    CHECK(stub.letters_sent() <
          connections * (std::size_t{16} << 20) + 20'000 * flood.size() * (connections + seconds));
    for (engine::NodeIndex node = 0; node < hostile; ++node) {
      CHECK(client.sink.why_down(node).empty());
    }
  }
}

namespace {

struct Reader final : StreamListener {
  void on_connected() override { connected = true; }
  void on_bytes(std::string_view bytes) override {
    in_turn += bytes.size();
    received += bytes.size();
  }
  void on_writable() override {}
  void on_stream_failed(int) override { failed = true; }

  bool connected = false;
  bool failed = false;
  std::size_t in_turn = 0;
  std::size_t received = 0;
};

}  // namespace

TEST_CASE("of one stream no more is read in a turn of the loop than a share") {
  StubServer stub([](const RedisCommand&) { return StubReply::without_end("+"); });
  uv_loop_t uv{};
  REQUIRE(uv_loop_init(&uv) == 0);
  Loop loop(uv);
  {
    sockaddr_in address{};
    uv_ip4_addr("127.0.0.1", stub.port(), &address);
    Reader reader;
    int status = 0;
    const Stream::Owned stream =
        Stream::connect(loop, reinterpret_cast<const sockaddr&>(address), reader, status);
    REQUIRE(status == 0);
    while (!reader.connected && !reader.failed) uv_run(&uv, UV_RUN_ONCE);
    std::string ping = array({bulk("PING")});
    REQUIRE(stream->write(ping) == 0);
    // Much is there before the first turn, and there is always more.
    REQUIRE(eventually([&] { return stub.letters_sent() > (std::size_t{1} << 20); }));
    std::size_t most = 0;
    while (reader.received < (std::size_t{16} << 20) && !reader.failed) {
      reader.in_turn = 0;
      uv_run(&uv, UV_RUN_ONCE);
      most = std::max(most, reader.in_turn);
    }
    CHECK_FALSE(reader.failed);
    CHECK(most <= std::size_t{320} << 10);
  }
  uv_run(&uv, UV_RUN_DEFAULT);
  CHECK(uv_loop_close(&uv) == 0);
}
