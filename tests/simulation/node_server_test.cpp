// SPDX-License-Identifier: MIT
// The simulator's server beside a real redis-server: both are sent the same bytes, and must reply
// the same, but for what differs from server to server (numbers, times, the words of an error).
#include "simulation/node_server.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>
#include <string_view>
#include <vector>

#include "simulation/both_said.hpp"
#include "simulation/request_reader.hpp"
#include "wire/command_writer.hpp"
#include "wire/info_text.hpp"
#include "wire/redlock_scripts.hpp"
#include "wire/reply_reader.hpp"

using namespace redlock;
using namespace redlock::simulation;

namespace {

using Arguments = std::vector<std::string>;

std::string request(const Arguments& arguments) {
  std::string bytes;
  wire::CommandWriter writer(bytes, arguments.size());
  for (const std::string& argument : arguments) writer.bulk(argument);
  return bytes;
}

std::string in_words(const wire::ReplyView& reply) {
  using Kind = wire::ReplyView::Kind;
  if (reply.is(Kind::integer)) return std::to_string(reply.integer());
  if (reply.is(Kind::text)) return fmt::format("'{}'", reply.text());
  if (reply.is(Kind::error)) {
    return "error " + std::string(reply.text().substr(0, reply.text().find(' ')));
  }
  std::string text = "[";
  wire::ReplyView element = reply.size() > 0 ? reply.first() : reply;
  for (std::size_t i = 0; i < reply.size(); ++i) {
    text += in_words(element) + (i + 1 < reply.size() ? " " : "");
    if (i + 1 < reply.size()) element = element.next();
  }
  return text + "]";
}

struct Host final : NodeServerHost {
  void on_executed(StreamId, const engine::Command&, const engine::Reply&) override { ++executed; }
  void on_marked(StreamId) override { ++marked; }
  void on_time_told(StreamId) override {}
  void on_killed(StreamId stream) override { killed.push_back(stream); }
  void on_misread(StreamId, std::string_view) override { ++misread; }
  int executed = 0;
  int misread = 0;
  int marked = 0;
  std::vector<StreamId> killed;
};

class SimulatedServer {
 public:
  explicit SimulatedServer(const NodeServer::Settings& settings = {})
      : server_(model, settings, host) {
    server_.start("run", 0);
    server_.accept(1);
  }
  std::string ask(const Arguments& arguments, StreamId stream = 1) {
    std::string replies;
    static_cast<void>(server_.take(stream, request(arguments), now_us, replies));
    reader_.feed(replies);
    if (reader_.next(1'000'000) != wire::ReplyReader::Outcome::complete) return "nothing";
    if (reader_.reply().is(wire::ReplyView::Kind::text)) text = reader_.reply().text();
    return in_words(reader_.reply());
  }
  [[nodiscard]] NodeServer& server() { return server_; }

  NodeModel model;
  Host host;
  std::int64_t now_us = 1'000'000'000'000;
  std::string text;

 private:
  NodeServer server_;
  wire::ReplyReader reader_;
};

/// Both, without keys.
class BothServers {
 public:
  BothServers() : real_(fleet().port(0)) { real_.ask(request({"FLUSHALL"})); }
  /// What both replied; a difference is a text of its own.
  std::string ask(const Arguments& arguments) {
    const std::string simulated = simulated_.ask(arguments);
    const std::string real = in_words(real_.ask(request(arguments)));
    return simulated == real ? real : "simulated " + simulated + ", real " + real;
  }
  std::string call(std::string_view script, const Arguments& keys, const Arguments& arguments) {
    Arguments all{"EVAL", std::string(script), std::to_string(keys.size())};
    all.insert(all.end(), keys.begin(), keys.end());
    all.insert(all.end(), arguments.begin(), arguments.end());
    return ask(all);
  }
  [[nodiscard]] ServerConnection& real() { return real_; }
  [[nodiscard]] SimulatedServer& simulated() { return simulated_; }

 private:
  ServerConnection real_;
  SimulatedServer simulated_;
};

const wire::ScriptSet texts(wire::ScriptSet::Flags::understood);
const std::string ann_id(32, 'a');
const std::string bob_id(32, 'b');
const std::string fence = "redlock:fence:" + std::to_string(engine::stripe_of("n"));
const Arguments acquire_keys{"redlock:lock:{n}", fence, "redlock:node"};
const Arguments marker_keys{"redlock:node", "redlock:node:notes"};

}  // namespace

TEST_CASE("a request is read whole, wherever its bytes are cut") {
  const std::string bytes = request({"EVAL", "", "a\r\nb"}) + request({"TIME"});
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    RequestReader reader;
    std::vector<RequestReader::Request> read;
    std::vector<std::string> words;
    for (const auto& piece : {bytes.substr(0, cut), bytes.substr(cut)}) {
      reader.feed(piece);
      while (reader.next() == RequestReader::Outcome::complete) {
        for (const std::string_view word : reader.request()) words.emplace_back(word);
      }
    }
    CAPTURE(cut);
    CHECK(words == std::vector<std::string>{"EVAL", "", "a\r\nb", "TIME"});
  }
}

TEST_CASE("what is no array of bulk strings is recognised, however it is cut") {
  for (const std::string bytes : {"PING\r\n", "*0\r\n", "*1\r\n:1\r\n", "*1\r\n$x\r\n",
                                  "*1\r\n$1\r\nab\r\n", "*-1\r\n", "*1\r\n$\r\n", "*1\rx"}) {
    RequestReader reader;
    auto outcome = RequestReader::Outcome::incomplete;
    for (const char byte : bytes) {
      reader.feed({&byte, 1});
      outcome = reader.next();
      if (outcome == RequestReader::Outcome::broken) break;
    }
    CAPTURE(bytes);
    CHECK(outcome == RequestReader::Outcome::broken);
  }
}

TEST_CASE("both servers reply the same to what a handshake asks") {
  BothServers both;
  CHECK(both.ask({"CLIENT", "SETNAME", "me"}) == "'OK'");
  CHECK(both.ask({"SELECT", "0"}) == "'OK'");
  CHECK(both.ask({"HGETALL", "redlock:node"}) == "[]");
  CHECK(both.ask({"CONFIG", "GET", "maxmemory-policy"}) == "['maxmemory-policy' 'noeviction']");
  CHECK(both.ask({"CONFIG", "GET", "nothing-of-the-kind"}) == "[]");
  CHECK(both.ask({"EXISTS", "redlock:node", "redlock:node:notes"}) == "0");
  CHECK(both.ask({"CLIENT", "KILL", "ID", "123456789"}) == "0");
  CHECK(both.ask({"EVALSHA", std::string(40, '0'), "0"}) == "error NOSCRIPT");
  CHECK(both.ask({"AUTH", "x"}) == "error ERR");
  CHECK(in_words(both.real().ask(request({"TIME"}))).size() >
        both.simulated().ask({"TIME"}).size() - 8);
  const std::string real(both.real().ask(request({"INFO"})).text());
  both.simulated().ask({"INFO"});
  for (const char* const field : {"role", "redis_mode", "cluster_enabled"}) {
    CAPTURE(field);
    CHECK(wire::InfoText(real).value(field) == wire::InfoText(both.simulated().text).value(field));
  }
}

TEST_CASE("a server that was a replica says so") {
  SimulatedServer server;
  server.ask({"INFO"});
  const std::string before(wire::InfoText(server.text).promotion());
  CHECK_FALSE(wire::InfoText(server.text).was_replica());
  server.model.set_ailment(NodeModel::Ailment::read_only);
  server.ask({"INFO", "replication"});
  CHECK(wire::InfoText(server.text).value("role") == "slave");
  server.model.set_ailment(NodeModel::Ailment::none);
  server.server().promote();
  server.ask({"INFO"});
  CHECK(wire::InfoText(server.text).was_replica());
  CHECK(wire::InfoText(server.text).promotion() != before);
}

TEST_CASE("both servers reply the same to the calls of all scripts") {
  BothServers both;
  const auto& acquire = texts.source(wire::script_for<engine::AcquireCommand>);
  const auto& hold = texts.source(wire::script_for<engine::HoldCommand>);
  const auto& release = texts.source(wire::script_for<engine::ReleaseCommand>);
  const auto& force = texts.source(wire::script_for<engine::ForceCommand>);
  CHECK(both.call(acquire, acquire_keys, {ann_id, "600000", "7", ""}) == "[1 7]");
  CHECK(both.call(acquire, acquire_keys, {ann_id, "600000", "1", "", "who"}) == "[4]");
  const std::string other = neighbour_of("n");
  const Arguments two{"redlock:lock:{n}", fence, "redlock:lock:{" + other + "}", fence};
  CHECK(both.call(hold, two, {ann_id, "2", "9", "600000", bob_id, "1", "0", "600000"}) ==
        "[[1 9] [0]]");
  CHECK(both.call(hold, {two[0], fence}, {bob_id, "1", "0", "600000"}) == "[[-1]]");
  CHECK(both.call(force, {two[0], fence, two[0] + ":forced"}, {ann_id, "600000"}) == "[1]");
  CHECK(both.call(acquire, acquire_keys, {ann_id, "600000", "1", ""}) == "[3]");
  CHECK(both.call(hold, {two[0], fence}, {ann_id, "1", "0", "600000"}) == "[[-3]]");
  CHECK(both.call(acquire, acquire_keys, {bob_id, "600000", "1", ""}) == "[1 11]");
  CHECK(both.call(release, {two[0], two[2]}, {bob_id, "", bob_id, ""}) == "[1 0]");
  CHECK(both.simulated().host.misread == 0);
  CHECK(both.simulated().host.executed == 11);
}

TEST_CASE("both servers reply the same about markers and pending nodes") {
  BothServers both;
  const auto& acquire = texts.source(wire::script_for<engine::AcquireCommand>);
  const auto adopt = wire::scripts::adopt;
  const auto pending = wire::scripts::pending;
  const Arguments marker{"id", "redlock-1", "3", "60000", "mine", "", "first"};
  CHECK(both.call(acquire, acquire_keys, {ann_id, "600000", "1", "", "", ""}) == "error NOMARKER");
  Arguments early = marker;
  early.front() = "first";
  CHECK(both.call(adopt, marker_keys, early) == "'first'");
  early.back() = "other";
  CHECK(both.call(adopt, marker_keys, early) == "'first'");
  CHECK(both.call(pending, marker_keys, {"me", "600000"}) == "'first'");
  CHECK(both.call(pending, marker_keys, {"you", "600000"}) == "'first'");
  CHECK(both.call(acquire, acquire_keys, {ann_id, "600000", "1", ""}) == "error HASMARKER");
  Arguments stranger = marker;
  stranger.back() = "you";
  CHECK(both.call(adopt, marker_keys, stranger) == "'first'");
  CHECK(both.call(adopt, marker_keys, marker) == "'written'");
  const std::string fields = "'id' 'id' 'layout' 'redlock-1' 'nodes' '3' 'max_lease_ms' '60000'";
  CHECK(both.call(pending, marker_keys, {"me", "600000"}) == "[" + fields + " 'set' 'mine']");
  Arguments vouching = marker;
  vouching[5] = "promotion";
  const std::string vouched = "[" + fields + " 'set' 'mine' 'vouched' 'promotion']";
  CHECK(both.call(adopt, marker_keys, vouching) == vouched);
  CHECK(both.ask({"HGETALL", "redlock:node"}) == vouched);
  CHECK(both.ask({"EXISTS", "redlock:node", "redlock:node:notes"}) == "1");
  CHECK(both.call(acquire, acquire_keys, {ann_id, "600000", "1", "", "", "yours"}) ==
        "error OTHERSET");
  CHECK(both.call(acquire, acquire_keys, {ann_id, "600000", "1", "", "", "mine"}) == "[1 1]");
  CHECK(both.simulated().host.misread == 0);
  CHECK(both.simulated().host.marked == 1);
}

TEST_CASE("what a node could not read is reported") {
  SimulatedServer server;
  const auto& acquire = texts.source(wire::script_for<engine::AcquireCommand>);
  const auto call = [&](Arguments keys, const Arguments& arguments) {
    Arguments all{"EVAL", acquire, std::to_string(keys.size())};
    all.insert(all.end(), keys.begin(), keys.end());
    all.insert(all.end(), arguments.begin(), arguments.end());
    return server.ask(all);
  };
  Arguments wrong_fence = acquire_keys;
  wrong_fence[1] = "redlock:fence:1";
  CHECK(call(wrong_fence, {ann_id, "60000", "1"}) == "error ERR");
  CHECK(call(acquire_keys, {"ann", "60000", "1"}) == "error ERR");
  CHECK(call(acquire_keys, {ann_id, "-5", "1"}) == "error ERR");
  CHECK(call(acquire_keys, {ann_id, "60000", "0"}) == "error ERR");
  CHECK(server.ask({"EVAL", "return 1", "0"}) == "error ERR");
  CHECK(server.ask({"GET", "x"}) == "error ERR");
  CHECK(server.host.misread == 6);
  CHECK(server.host.executed == 0);
}

TEST_CASE("CLIENT KILL ends another connection of the same start, and none of an older one") {
  SimulatedServer server;
  server.server().accept(2);
  CHECK(server.ask({"CLIENT", "ID"}, 2) == "2");
  CHECK(server.ask({"CLIENT", "KILL", "ID", "2"}) == "1");
  CHECK(server.host.killed == std::vector<StreamId>{2});
  CHECK(server.ask({"CLIENT", "ID"}, 2) == "nothing");
  server.server().start("another run", server.now_us);
  CHECK(server.ask({"CLIENT", "ID"}) == "nothing");
  server.server().accept(3);
  CHECK(server.ask({"CLIENT", "ID"}, 3) == "1");
}

TEST_CASE("a node server asks for its password, and denies what its user may not do") {
  DeniedCommands denied;
  denied.set(static_cast<std::size_t>(Denied::client_kill));
  denied.set(static_cast<std::size_t>(Denied::info));
  SimulatedServer server({.password = "secret", .denied = denied});
  CHECK(server.ask({"TIME"}) == "error NOAUTH");
  CHECK(server.ask({"AUTH", "wrong"}) == "error WRONGPASS");
  CHECK(server.ask({"AUTH", "secret"}) == "'OK'");
  CHECK(server.ask({"INFO"}) == "error NOPERM");
  CHECK(server.ask({"CLIENT", "KILL", "ID", "7"}) == "error NOPERM");
  CHECK(server.ask({"CLIENT", "ID"}) == "1");
}
