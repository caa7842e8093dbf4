// SPDX-License-Identifier: MIT
// The simulator's server beside a real redis-server: both are sent the same bytes, and must reply
// the same, but for what differs from server to server (numbers, times, the words of an error).
#include "simulation/node_server.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <memory>
#include <random>
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
  void on_push(StreamId stream, std::string_view bytes) override {
    pushed.emplace_back(stream, bytes);
  }
  void on_time_told(StreamId) override {}
  void on_killed(StreamId stream) override { killed.push_back(stream); }
  void on_misread(StreamId, std::string_view) override { ++misread; }
  int executed = 0;
  int misread = 0;
  int marked = 0;
  std::vector<StreamId> killed;
  std::vector<std::pair<StreamId, std::string>> pushed;
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
  /// What it answers with a push alone.
  std::string ask_push(const Arguments& arguments, StreamId stream) {
    std::string replies;
    static_cast<void>(server_.take(stream, request(arguments), now_us, replies));
    reader_.feed(replies);
    if (reader_.next(1'000'000) != wire::ReplyReader::Outcome::push) return "no push";
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

/// With the clients aa... and bb... subscribed. No time passes by itself in the simulated server;
/// in the real one it passes only where nothing depends on it.
class WaitingOnBoth {
 public:
  enum Subscriber : StreamId { aa = 2, bb = 3 };

  WaitingOnBoth() {
    for (const Subscriber who : {aa, bb}) {
      const std::string client(16, who == aa ? 'a' : 'b');
      real_.push_back(std::make_unique<ServerConnection>(fleet().port(0)));
      simulated().server().accept(who);
      const std::string hello = in_words(real_.back()->ask(request({"HELLO", "3"})));
      CHECK(hello.starts_with("['server' 'redis' 'version' "));
      CHECK(simulated().ask({"HELLO", "3"}, who).starts_with("['server' 'redis' 'version' "));
      const Arguments subscribe{"SUBSCRIBE", "redlock:wake:" + client};
      const std::string confirmed = in_words(real_.back()->ask(request(subscribe)));
      CHECK(simulated().ask_push(subscribe, who) == confirmed);
    }
  }

  std::string acquire(const std::string& owner, const std::string& order) {
    const auto& script = texts.source(wire::script_for<engine::AcquireCommand>);
    return call(script, acquire_keys, {owner, "600000", "1", order});
  }
  std::string release(const std::string& owner, const std::string& order) {
    const auto& script = texts.source(wire::script_for<engine::ReleaseCommand>);
    return call(script, {acquire_keys[0]}, {owner, order});
  }
  std::string force(const std::string& owner) {
    const auto& script = texts.source(wire::script_for<engine::ForceCommand>);
    return call(script, {acquire_keys[0], fence, acquire_keys[0] + ":forced"}, {owner, "600000"});
  }

  std::string queue() {
    std::string simulated_words = "[";
    if (const auto* queue = found()) {
      for (const auto& entry : queue->entries) {
        simulated_words += (simulated_words == "[" ? "'" : " '") + entry.waiter + "'";
      }
    }
    return same(simulated_words + "]", in_words(real({"ZRANGE", queue_key, "0", "-1"})));
  }
  std::string turn() {
    const std::string told = in_words(real({"HGET", waiters_key, "turn"}));
    const auto* queue = found();
    const bool simulated_has = queue != nullptr && !queue->turn.empty();
    return same(simulated_has ? queue->turn : "none",
                told == "[]" ? "none" : told.substr(1, told.size() - 2));
  }

  /// If it is not over.
  void keep_turn() {
    const bool runs = found()->turn_ends_ms > simulated().now_us / 1'000;
    if (runs) real({"HSET", waiters_key, "until", far});
  }
  void end_turn() {
    real({"HSET", waiters_key, "until", "1"});
    simulated().now_us += 25'000;
  }
  /// It is alive for long, as none that polls is.
  void lengthen_life(const std::string& waiter) {
    real({"HSET", waiters_key, waiter, std::string(far) + " p"});
  }
  /// Nobody asks again in time.
  void end_lives() {
    for (const auto& entry : found()->entries) real({"HSET", waiters_key, entry.waiter, "1 w"});
    end_turn();
    simulated().now_us += 2'600'000;
  }

  /// From now on, or no more.
  void deny_publish(bool denied) {
    real({"ACL", "SETUSER", "default", denied ? "-publish" : "+publish"});
    simulated().server().set_denied(Denied::publish, denied);
  }

  /// The texts of all messages.
  std::string pushes(Subscriber who) {
    std::string real_said;
    auto& connection = *real_[who - aa];
    for (auto reply = connection.ask(request({"PING"}));; reply = connection.receive()) {
      if (reply.is(wire::ReplyView::Kind::text)) break;
      real_said += message(reply);
    }
    std::string simulated_said;
    for (const auto& [stream, bytes] : simulated().host.pushed) {
      wire::ReplyReader reader;
      reader.feed(bytes);
      REQUIRE(reader.next(10'000) == wire::ReplyReader::Outcome::push);
      if (stream == who) simulated_said += message(reader.reply());
    }
    return same(simulated_said, real_said);
  }
  int misread() { return simulated().host.misread; }

 private:
  static constexpr const char* queue_key = "redlock:lock:{n}:queue";
  static constexpr const char* waiters_key = "redlock:lock:{n}:waiters";
  static constexpr const char* far = "9999999999999";

  static std::string same(const std::string& simulated, const std::string& real) {
    return simulated == real ? real : "simulated " + simulated + ", real " + real;
  }
  static std::string message(const wire::ReplyView& push) {
    CHECK(push.first().text() == "message");
    return fmt::format("[{}]", push.first().next().next().text());
  }
  /// How many milliseconds are left is another number in each.
  static std::string without_time(std::string words) {
    if (!words.starts_with("[0 ")) return words;
    const std::size_t end = words.find_first_of(" ]", 3);
    return words.replace(3, end - 3, "left");
  }
  std::string call(std::string_view script, const Arguments& keys, const Arguments& arguments) {
    Arguments all{"EVAL", std::string(script), std::to_string(keys.size())};
    all.insert(all.end(), keys.begin(), keys.end());
    all.insert(all.end(), arguments.begin(), arguments.end());
    const std::string simulated_said = without_time(simulated().ask(all));
    return same(simulated_said, without_time(in_words(real(all))));
  }
  wire::ReplyView real(const Arguments& arguments) { return both_.real().ask(request(arguments)); }
  SimulatedServer& simulated() { return both_.simulated(); }
  const NodeQueues::Queue* found() {
    return simulated().model.find_queue("n", simulated().now_us / 1'000);
  }

  BothServers both_;
  std::vector<std::unique_ptr<ServerConnection>> real_;
};

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

TEST_CASE("both servers reply the same to those who wait, and push the same") {
  WaitingOnBoth both;
  CHECK(both.acquire(ann_id, "") == "[1 1]");
  CHECK(both.acquire(bob_id, "0") == "[0 left]");
  CHECK(both.acquire(bob_id, "cccccccccccccccc:1 7 w") == "[0 left 0]");  // not subscribed
  CHECK(both.acquire(bob_id, "aaaaaaaaaaaaaaaa:2 5 w") == "[0 left 0]");
  CHECK(both.acquire(bob_id, "aaaaaaaaaaaaaaaa:1 5 w") == "[0 left 0]");
  CHECK(both.acquire(bob_id, "bbbbbbbbbbbbbbbb:9 8 w") == "[0 left 3]");
  CHECK(both.acquire(bob_id, "aaaaaaaaaaaaaaaa:10 5 w") == "[0 left 1]");
  CHECK(both.queue() ==
        "['aaaaaaaaaaaaaaaa:1' 'aaaaaaaaaaaaaaaa:10' 'aaaaaaaaaaaaaaaa:2' "
        "'cccccccccccccccc:1' 'bbbbbbbbbbbbbbbb:9']");
  CHECK(both.release(bob_id, "aaaaaaaaaaaaaaaa:10") == "[0]");
  CHECK(both.turn() == "none");
  CHECK(both.release(ann_id, "") == "[1]");
  CHECK(both.turn() == "aaaaaaaaaaaaaaaa:1");
  both.keep_turn();
  CHECK(both.acquire(bob_id, "0") == "[0 left]");
  CHECK(both.acquire(bob_id, "bbbbbbbbbbbbbbbb:8 1 w") == "[0 left 0]");
  CHECK(both.release(bob_id, "aaaaaaaaaaaaaaaa:1") == "[0]");  // passes its turn on
  CHECK(both.turn() == "bbbbbbbbbbbbbbbb:8");
  both.end_turn();
  CHECK(both.acquire(ann_id, "aaaaaaaaaaaaaaaa:2 5 w") == "[1 2]");  // the other did not use it
  CHECK(both.turn() == "none");
  CHECK(both.queue() == "['cccccccccccccccc:1' 'bbbbbbbbbbbbbbbb:9']");
  CHECK(both.release(ann_id, "aaaaaaaaaaaaaaaa:2 9 w") == "[3]");
  CHECK(both.turn() == "bbbbbbbbbbbbbbbb:9");  // nobody was there to be told
  CHECK(both.queue() == "['bbbbbbbbbbbbbbbb:9' 'aaaaaaaaaaaaaaaa:2']");
  CHECK(both.acquire(bob_id, "") == "[1 3]");  // out of turn
  CHECK(both.turn() == "none");
  CHECK(both.force(bob_id) == "[1]");
  CHECK(both.turn() == "bbbbbbbbbbbbbbbb:9");
  CHECK(both.acquire(ann_id, "bbbbbbbbbbbbbbbb:9 8 w") == "[1 5]");
  CHECK(both.release(bob_id, "aaaaaaaaaaaaaaaa:2") == "[0]");
  CHECK(both.queue() == "[]");
  CHECK(both.acquire(bob_id, "aaaaaaaaaaaaaaaa:3 5 p") == "[0 left 0]");
  CHECK(both.acquire(bob_id, "aaaaaaaaaaaaaaaa:4 6 w") == "[0 left 1]");
  both.lengthen_life("aaaaaaaaaaaaaaaa:3");
  CHECK(both.release(ann_id, "") == "[1]");
  CHECK(both.turn() == "aaaaaaaaaaaaaaaa:3");
  both.end_lives();
  CHECK(both.acquire(ann_id, "0") == "[1 6]");
  CHECK(both.queue() == "[]");
  CHECK(both.pushes(WaitingOnBoth::aa) == "[1 0][2 20][2 20][2 20][2 20][4 60]");
  CHECK(both.pushes(WaitingOnBoth::bb) == "[8 0][9 0][9 0]");
  CHECK(both.misread() == 0);
}

TEST_CASE("both servers go on as if nobody waited where nobody may be told") {
  WaitingOnBoth both;
  CHECK(both.acquire(ann_id, "") == "[1 1]");
  CHECK(both.acquire(bob_id, "aaaaaaaaaaaaaaaa:1 5 w") == "[0 left 0]");
  both.deny_publish(true);
  const std::string released = both.release(ann_id, "");
  const std::string turn = both.turn();
  const std::string granted = both.acquire(bob_id, "0");
  const std::string entered = both.acquire(ann_id, "aaaaaaaaaaaaaaaa:2 4 p");
  both.lengthen_life("aaaaaaaaaaaaaaaa:2");
  const std::string again = both.release(bob_id, "");
  const std::string turn_of_polling = both.turn();
  both.deny_publish(false);
  CHECK(released == "[1]");
  CHECK(turn == "none");
  CHECK(granted == "[1 2]");
  CHECK(entered == "[0 left 0]");
  CHECK(again == "[1]");
  CHECK(turn_of_polling == "aaaaaaaaaaaaaaaa:2");
  CHECK(both.queue() == "['aaaaaaaaaaaaaaaa:2' 'aaaaaaaaaaaaaaaa:1']");
  CHECK(both.pushes(WaitingOnBoth::aa).empty());
  CHECK(both.misread() == 0);
}

TEST_CASE("both servers reply and push the same, whatever those who wait do") {
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    WaitingOnBoth both;
    std::minstd_rand random(seed);
    const auto one_of = [&](const Arguments& all) { return all[random() % all.size()]; };
    const auto waiter = [&] {
      return std::string(16, one_of({"a", "a", "b", "c"})[0]) + one_of({":1", ":2", ":10"});
    };
    const auto place = [&] { return " " + one_of({"5", "6", "7", "60"}) + " w"; };
    const auto owner = [&] { return one_of({ann_id, bob_id}); };
    for (int step = 0; step < 60; ++step) {
      CAPTURE(step);
      const auto kind = random() % 10;
      std::string said;
      if (kind < 4) said = both.acquire(owner(), one_of({"", "0", waiter() + place()}));
      if (kind == 4 || kind == 5) said = both.acquire(owner(), waiter() + place());
      if (kind == 6) said = both.release(owner(), waiter());
      if (kind == 7) said = both.release(owner(), waiter() + place());
      if (kind == 8) said = both.release(owner(), "");
      if (kind == 9 && random() % 3 == 0) said = both.force(owner());
      REQUIRE_MESSAGE(!said.starts_with("simulated"), said);
      REQUIRE(both.queue().front() == '[');
      const std::string turn = both.turn();
      REQUIRE_MESSAGE(!turn.starts_with("simulated"), turn);
      if (turn != "none" && random() % 2 == 0) {
        both.keep_turn();
      } else if (turn != "none") {
        both.end_turn();
      }
    }
    CHECK(!both.pushes(WaitingOnBoth::aa).starts_with("simulated"));
    CHECK(!both.pushes(WaitingOnBoth::bb).starts_with("simulated"));
    CHECK(both.misread() == 0);
  }
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
  CHECK(call(wrong_fence, {ann_id, "60000", "1", ""}) == "error ERR");
  CHECK(call(acquire_keys, {"ann", "60000", "1", ""}) == "error ERR");
  CHECK(call(acquire_keys, {ann_id, "-5", "1", ""}) == "error ERR");
  CHECK(call(acquire_keys, {ann_id, "60000", "0", ""}) == "error ERR");
  for (const char* order : {"1", "x", "aaaaaaaaaaaaaaaa:1", "aaaaaaaaaaaaaaaa:1 5", "a:1 5 w",
                            "aaaaaaaaaaaaaaaa:1 5 x", "aaaaaaaaaaaaaaaa:x 5 w"}) {
    CHECK_MESSAGE(call(acquire_keys, {ann_id, "60000", "1", order}) == "error ERR", order);
  }
  CHECK(server.ask({"EVAL", "return 1", "0"}) == "error ERR");
  CHECK(server.ask({"GET", "x"}) == "error ERR");
  CHECK(server.host.misread == 13);
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
  denied.set(static_cast<std::size_t>(Denied::hello));
  denied.set(static_cast<std::size_t>(Denied::subscribe));
  SimulatedServer server({.password = "secret", .denied = denied});
  CHECK(server.ask({"TIME"}) == "error NOAUTH");
  CHECK(server.ask({"AUTH", "wrong"}) == "error WRONGPASS");
  CHECK(server.ask({"AUTH", "secret"}) == "'OK'");
  CHECK(server.ask({"INFO"}) == "error NOPERM");
  CHECK(server.ask({"CLIENT", "KILL", "ID", "7"}) == "error NOPERM");
  CHECK(server.ask({"HELLO", "3"}) == "error NOPERM");
  CHECK(server.ask({"SUBSCRIBE", "redlock:wake:aaaaaaaaaaaaaaaa"}) == "error NOPERM");
  CHECK(server.ask({"CLIENT", "ID"}) == "1");
}
