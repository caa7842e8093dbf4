// SPDX-License-Identifier: MIT
// The driver with its engine and three nodes that the test scripts, in virtual time: what a client
// does down to the bytes.
#include "wire/driver.hpp"

#include <array>
#include <map>

#include "wire/marker_tending.hpp"
#include "wire/objection_text.hpp"
#include "wire/rig.hpp"

using namespace redlock::wire;

namespace {

constexpr std::size_t node_count = 3;

std::string member(const RedisCommand& command, std::size_t node = 0,
                   const std::string& epoch = "1") {
  if (!is(command, "HGETALL")) return healthy(command);
  return marker_of("3", "0=redis://host0:6379 1=redis://host1:6379 2=redis://host2:6379",
                   std::to_string(node), epoch);
}

/// A run id for each, or they were one server.
std::string member_number(std::size_t node, const RedisCommand& command) {
  if (call_in(command) == "release 1") return array({integer(1)});
  if (!is(command, "INFO")) return member(command, node);
  return bulk("redis_version:7.0.15\r\nrole:master\r\nrun_id:" +
              std::string(40, static_cast<char>('a' + node)) + "\r\nuptime_in_seconds:100000\r\n");
}

constexpr engine::Instant start{std::chrono::hours(1)};
constexpr std::int64_t start_us = 1'700'000'000'000'000;

class DriverRig final : Streams, DriverHost {
 public:
  explicit DriverRig(bool quarantine = true) {
    DriverConfig config;
    for (std::size_t i = 0; i < node_count; ++i)
      config.nodes.push_back(*parse_node_uri("redis://host" + std::to_string(i)));
    config.engine.quarantine = quarantine;
    config.unanswered_for = 1ms;  // but twice the silence, which is a second
    Streams& streams = *this;
    DriverHost& host = *this;
    driver = std::make_unique<Driver>(std::move(config), random_, streams, host);
    driver->start(now, start_us);
  }

  void run() {
    bool more = true;
    while (more) {
      more = driver->pending();
      if (more) driver->turn(now);
      for (engine::NodeIndex index = 0; index < node_count; ++index) more = serve(index) || more;
    }
  }
  void pass(engine::Duration time) {
    const engine::Instant until = now + time;
    run();
    while (driver->deadline() <= until) {
      now = std::max(now, driver->deadline());
      driver->on_deadline(now);
      run();
    }
    now = until;
  }
  void acquire(engine::RequestId request, const std::string& name = "n") {
    driver->engine().acquire(now, request,
                             {.name = std::make_shared<const std::string>(name),
                              .lease = 30'000ms,
                              .max_hold = {},
                              .deadline = now + 10s});
  }
  /// Whether the lock is granted without time.
  bool acquires(engine::RequestId request, const std::string& name = "n") {
    acquire(request, name);
    run();
    return granted(request);
  }
  [[nodiscard]] bool granted(engine::RequestId request) const {
    return finished.contains(request) &&
           std::holds_alternative<engine::AcquireSucceeded>(finished.at(request).result);
  }
  [[nodiscard]] std::ptrdiff_t said(std::string_view name) const {
    return std::ranges::count_if(commands, [&](const auto& one) { return is(one, name); });
  }
  [[nodiscard]] std::ptrdiff_t count_of(const RedisCommand& command) const {
    return std::ranges::count(commands, command);
  }

  engine::Instant now = start;
  std::function<std::string(std::size_t node, const RedisCommand&)> node = member_number;
  std::map<engine::RequestId, engine::Finish> finished;
  std::vector<RedisCommand> commands;
  std::vector<std::string> ups;
  std::vector<std::string> downs;
  std::map<engine::NodeIndex, std::string> moved;
  std::array<int, node_count> writes{};
  std::array<engine::Duration, node_count> ahead{};  // of virtual time, by each node's clock
  std::unique_ptr<Driver> driver;

 private:
  struct Peer {
    bool connecting = false;
    bool open = false;
    std::string bytes;
    std::unique_ptr<ReplyReader> reader;
  };

  [[nodiscard]] std::string time_of(engine::NodeIndex index) const {
    const auto us = start_us + (now - start + ahead[index]) / 1us;
    return array({bulk(std::to_string(us / 1'000'000)), bulk(std::to_string(us % 1'000'000))});
  }

  bool serve(engine::NodeIndex index) {
    Peer& peer = peers_[index];
    if (peer.connecting) {
      peer = {.connecting = false, .open = true, .bytes = {}, .reader = nullptr};
      peer.reader = std::make_unique<ReplyReader>();
      driver->link(index).on_connected(now, now + 1s);
      return true;
    }
    if (!peer.open || peer.bytes.empty()) return false;
    std::string answers;
    for (const RedisCommand& command : commands_in(std::exchange(peer.bytes, {}), *peer.reader)) {
      commands.push_back(command);
      answers += is(command, "TIME") ? time_of(index) : node(index, command);
    }
    if (!answers.empty()) driver->link(index).on_bytes(now, answers);
    return true;
  }

  void move(engine::NodeIndex index, const NodeAddress& address) override {
    CHECK(!peers_[index].open);
    moved[index] = address.label;
  }
  void connect(engine::NodeIndex index) override { peers_[index].connecting = true; }
  void disconnect(engine::NodeIndex index, Closing) override { peers_[index] = {}; }
  std::size_t write(engine::NodeIndex index, std::string& bytes) override {
    REQUIRE(peers_[index].open);
    ++writes[index];
    peers_[index].bytes += bytes;
    bytes.clear();
    return 0;
  }
  void on_output(engine::ClientOutput&& output) override {
    if (auto* finish = std::get_if<engine::Finish>(&output)) {
      finished.emplace(finish->request, std::move(*finish));
    }
  }
  void on_node_up(engine::NodeIndex, std::string_view warning) override {
    ups.emplace_back(warning);
  }
  void on_node_down(engine::NodeIndex, const engine::Unavailable& why) override {
    downs.push_back(sentence_of(why.objection, why.detail));
  }

  NumberedRandom random_;
  std::array<Peer, node_count> peers_;
};

}  // namespace

TEST_CASE("a lock is acquired over three nodes, in one write to each") {
  DriverRig rig;
  rig.run();
  CHECK(rig.ups == std::vector<std::string>(3));
  rig.writes = {};
  for (engine::RequestId request = 1; request <= 20; ++request) {
    rig.acquire(request, "n" + std::to_string(request));
  }
  rig.run();
  for (engine::RequestId request = 1; request <= 20; ++request) CHECK(rig.granted(request));
  CHECK(rig.writes == std::array<int, node_count>{1, 1, 1});
}

TEST_CASE(
    "nothing is pending after an input that changes nothing, and a deadline is always known") {
  DriverRig rig;
  rig.run();
  CHECK_FALSE(rig.driver->pending());
  CHECK(rig.driver->deadline() <= rig.now + 10s);  // the next probe
  rig.pass(1min);
  CHECK(rig.said("TIME") >= 3 * 6);
  CHECK(rig.downs.empty());
}

namespace {

/// Nodes 1 and 2 report one run id, and keep keys: their own, or each other's.
struct Namesakes {
  explicit Namesakes(bool one_server) : one_server_(one_server) {}

  std::string operator()(std::size_t node, const RedisCommand& command) {
    auto& keys = keys_[one_server_ ? 1 : node];
    if (is(command, "SET") && writes) {
      CHECK(command.at(3) == "PX");
      keys[command.at(1)] = command.at(2);
      return simple("OK");
    }
    if (is(command, "SET")) return error("OOM command not allowed");
    if (is(command, "GET"))
      return keys.contains(command.at(1)) ? bulk(keys.at(command.at(1))) : nil();
    if (is(command, "HGETALL")) return member(command, node);
    return member_number(node == 2 ? 1 : node, command);
  }

  bool writes = true;

 private:
  bool one_server_;
  std::map<std::size_t, std::map<std::string, std::string>> keys_;
};

}  // namespace

TEST_CASE("two nodes of the list that are one server do not both vote, others of one run id do") {
  for (const bool one_server : {true, false}) {
    DriverRig rig;
    rig.node = Namesakes(one_server);
    rig.pass(1s);
    const std::size_t up = one_server ? 2 : 3;
    CHECK(rig.ups.size() == up);
    REQUIRE(rig.downs.size() == (one_server ? 2 : 1));
    CHECK(contains(rig.downs[0], "it reports the run id of"));
    if (one_server) CHECK(contains(rig.downs[1], "it is the same server as"));
    rig.pass(10min);
    CHECK(rig.ups.size() == up);
    if (!one_server) CHECK(rig.downs.size() == 1);
  }
}

TEST_CASE("a node that does not write the key of the check leaves its place to the other") {
  DriverRig rig;
  Namesakes namesakes(true);
  namesakes.writes = false;
  rig.node = namesakes;
  rig.pass(50s);
  CHECK(rig.ups.size() == 2);  // of which one gave way
  CHECK(contains(rig.downs.back(), "takes its place"));
  rig.pass(20s);
  CHECK(rig.ups.size() == 3);
}

TEST_CASE("a node without its marker is pending, and gets its marker when old leases are over") {
  DriverRig rig;
  std::string pending;  // of node 2
  bool marked = false;
  rig.node = [&](std::size_t node, const RedisCommand& command) -> std::string {
    if (node != 2) return member_number(node, command);
    if (is(command, "HGETALL") && !marked) return array({});
    if (!is(command, "EVAL")) return member_number(node, command);
    if (command.at(3) != "redlock:node") return member_number(node, command);
    const bool adopts = command.size() > 7;
    if (pending.empty()) pending = command.at(5);
    if (!adopts) return bulk(pending);
    CHECK(command.at(7) == "2");
    CHECK(command.at(16) == pending);
    marked = true;
    return bulk("written");
  };
  rig.run();
  CHECK(rig.ups == std::vector<std::string>(2));
  REQUIRE(rig.downs.size() == 1);
  CHECK(contains(rig.downs[0], "with --replaced NODE if this member lost"));
  rig.pass(70s);
  CHECK(marked);
  // By the connections of the beginning, and told as soon as it votes.
  CHECK(rig.ups == std::vector<std::string>(3));
  CHECK(rig.downs.size() == 1);
  CHECK(rig.acquires(1));
}

TEST_CASE("an acquire that was decided before the handshake is not written if the node waits") {
  DriverRig rig;
  bool begun = false;
  rig.node = [&](std::size_t node, const RedisCommand& command) {
    if (is(command, "SCRIPT") && !std::exchange(begun, true)) rig.acquire(1);
    if (is(command, "CONFIG GET") && command[2] == "appendonly") {
      return array({bulk("appendonly"), bulk("no")});
    }
    if (!is(command, "INFO")) return member_number(node, command);
    return bulk("redis_version:7.0.15\r\nrole:master\r\nrun_id:" +
                std::string(40, static_cast<char>('a' + node)) + "\r\nuptime_in_seconds:1\r\n");
  };
  rig.run();
  REQUIRE(begun);
  CHECK(std::ranges::none_of(rig.commands, [](const RedisCommand& command) {
    return call_in(command).starts_with("acquire");
  }));
  CHECK_FALSE(rig.granted(1));
}

TEST_CASE("a marker that somebody else wrote is judged by a new handshake") {
  DriverRig rig;
  bool marked = false;
  rig.node = [&](std::size_t node, const RedisCommand& command) -> std::string {
    if (node != 2) return member_number(node, command);
    if (is(command, "HGETALL") && !marked) return array({});
    if (is(command, "EVAL") && command.at(3) == "redlock:node") {
      return marked ? member({"HGETALL"}, node) : bulk("noted");
    }
    return member_number(node, command);
  };
  rig.pass(5s);
  REQUIRE(rig.ups.size() == 2);
  marked = true;
  rig.pass(20s);
  CHECK(rig.ups == std::vector<std::string>(3));
  REQUIRE(rig.downs.size() == 2);
  CHECK(contains(rig.downs[0], "with --replaced NODE if this member lost"));
  CHECK(rig.downs[1] == "its marker was written");
}

TEST_CASE("an acquire or hold that named former members is sent once more, by the read marker") {
  DriverRig rig;
  std::map<std::size_t, int> refused;
  std::map<std::size_t, int> granted;
  int epoch = 1;  // in which the markers name their members
  rig.node = [&](std::size_t node, const RedisCommand& command) -> std::string {
    if (is(command, "HGETALL")) return member(command, node, std::to_string(epoch));
    const std::string call = call_in(command);
    if (call != "acquire" && call != "hold 1") return member_number(node, command);
    const bool agrees = std::ranges::count(command, "=own:" + std::to_string(epoch)) > 0;
    ++(agrees ? granted : refused)[node];
    if (!agrees) return error("OTHERSET redlock: later members");
    const std::string reply = array({integer(1), integer(7)});
    return call == "acquire" ? reply : array({reply});
  };
  const auto each_once = [&](int times) {
    for (std::size_t node = 0; node < 3; ++node) {
      CHECK(refused[node] == times);
      CHECK(granted[node] == times);
    }
  };
  rig.run();
  REQUIRE(rig.ups.size() == 3);
  epoch = 2;
  CHECK(rig.acquires(1));
  each_once(1);
  epoch = 3;
  const auto grant = std::get<engine::AcquireSucceeded>(rig.finished.at(1).result).grant;
  rig.driver->engine().extend(rig.now, 2, grant, 30'000ms);
  rig.run();
  REQUIRE(rig.finished.contains(2));
  CHECK(std::holds_alternative<engine::ExtendSucceeded>(rig.finished.at(2).result));
  each_once(2);
  CHECK(rig.downs.empty());
}

TEST_CASE("a command that was on its way while new members were read is sent once more, too") {
  DriverRig rig;
  int epoch = 1;
  bool late = false;
  rig.node = [&](std::size_t node, const RedisCommand& command) -> std::string {
    const std::string name = "=own:" + std::to_string(epoch);
    if (call_in(command) == "acquire" && std::ranges::count(command, name) == 0) {
      return error("OTHERSET redlock: later members");
    }
    if (is(command, "HGETALL") && epoch == 2 && !std::exchange(late, true)) {
      rig.acquire(2, "late");
      rig.driver->turn(rig.now);
    }
    if (is(command, "HGETALL")) return member(command, node, std::to_string(epoch));
    return member_number(node, command);
  };
  rig.run();
  epoch = 2;
  CHECK(rig.acquires(1));
  CHECK(late);
  CHECK(rig.granted(2));
  CHECK(rig.downs.empty());
}

TEST_CASE("a client that asks for nothing finds out that a node has lost its marker") {
  DriverRig rig;
  bool lost = false;
  rig.node = [&](std::size_t node, const RedisCommand& command) {
    const bool shows_none = lost && node == 1 && is(command, "HGETALL");
    return shows_none ? array({}) : member_number(node, command);
  };
  rig.pass(5s);
  CHECK(rig.downs.empty());
  lost = true;
  rig.pass(20s);
  REQUIRE(rig.downs.size() == 1);
  CHECK(contains(rig.downs[0], "redlock adopt"));
}

TEST_CASE(
    "a client without quarantine is warned of a node without marker, which confirms as such") {
  DriverRig rig(false);
  rig.node = [](std::size_t node, const RedisCommand& command) {
    return is(command, "HGETALL") ? array({}) : member_number(node, command);
  };
  rig.run();
  REQUIRE(rig.ups.size() == 3);
  CHECK(contains(rig.ups[0], "run redlock adopt"));
  REQUIRE(rig.acquires(1));
  const auto grant = std::get<engine::AcquireSucceeded>(rig.finished.at(1).result).grant;
  rig.driver->engine().extend(rig.now, 2, grant, 30'000ms);
  rig.run();
  int holds = 0;
  for (const RedisCommand& command : rig.commands) {
    if (call_in(command) != "hold 1") continue;
    ++holds;
    CHECK(command.back() == "=");  // it confirms only as long as it has none
  }
  CHECK(holds == 3);
}

TEST_CASE("a script that no connection has loaded goes in full at once") {
  DriverRig rig;
  rig.run();
  rig.driver->engine().release(rig.now, 1, std::make_shared<const std::string>("n"), {{1, 2}});
  rig.run();
  REQUIRE(rig.finished.contains(1));
  CHECK(std::ranges::count_if(rig.commands, [](const RedisCommand& command) {
          return is(command, "EVALSHA") && command[1].empty();
        }) == 0);
}

TEST_CASE("a client that asks for nothing finds out that a member was replaced, and goes there") {
  DriverRig rig;
  int epoch = 1;
  rig.node = [&](std::size_t node, const RedisCommand& command) -> std::string {
    if (!is(command, "HGETALL") || epoch == 1) return member_number(node, command);
    if (node == 1) return rig.moved.empty() ? member_number(node, command) : array({});
    return marker_of("3", "0=redis://host0:6379 9=redis://host9:6379 2=redis://host2:6379",
                     std::to_string(node), "2");
  };
  rig.run();
  REQUIRE(rig.ups.size() == 3);
  rig.pass(9s);
  epoch = 2;
  CHECK(rig.moved.empty());
  rig.pass(11s);
  CHECK(rig.moved == std::map<engine::NodeIndex, std::string>{{1, "redis://host9:6379"}});
  REQUIRE(rig.downs.size() >= 2);
  CHECK(contains(rig.downs[0], "names other members of the set"));
  CHECK(rig.downs[1] == "redis://host1:6379 has lost its place in the set to redis://host9:6379");
  CHECK(rig.acquires(1));
}

TEST_CASE("a connected node whose memory is full is down until it would take a write again") {
  DriverRig rig;
  bool full = false;
  rig.node = [&](std::size_t node, const RedisCommand& command) -> std::string {
    if (node == 1 && full && is(command, "EVALSHA")) return error("OOM command not allowed");
    if (!is(command, "SET")) return member_number(node, command);
    CHECK(node == 1);
    CHECK(command == RedisCommand{"SET", "redlock:node:nothing", "", "XX"});
    return full ? error("OOM command not allowed") : "$-1\r\n";
  };
  rig.run();
  CHECK(rig.ups.size() == 3);
  full = true;
  CHECK(rig.acquires(1));
  REQUIRE(rig.downs.size() == 1);
  CHECK(contains(rig.downs[0], "raise maxmemory"));
  rig.pass(1min);
  CHECK(rig.downs.size() == 1);
  full = false;
  SUBCASE("nobody asks for a lock") {
    rig.pass(15s);
  }
  SUBCASE("it grants one") {
    rig.acquire(2, "other");
    rig.run();
  }
  CHECK(rig.ups == std::vector<std::string>(4));
  CHECK(rig.downs.size() == 1);
}

TEST_CASE("a node that falls behind is cut off when one answer takes more than twice the silence") {
  DriverRig rig;
  int asked = 0;
  rig.node = [&](std::size_t node, const RedisCommand& command) -> std::string {
    if (node != 1 || !is(command, "EVALSHA")) return member_number(node, command);
    return ++asked % 2 == 0 ? error("ERR not now") : "";
  };
  for (engine::RequestId request = 1; rig.downs.empty() && request < 100; ++request) {
    rig.acquire(request, "n" + std::to_string(request));
    rig.pass(250ms);
  }
  REQUIRE(rig.downs.size() == 1);
  CHECK(contains(rig.downs[0], "answers behind, the first of them for 2000 ms"));
}

TEST_CASE("one lock that a node refuses to the user says nothing of the node") {
  DriverRig rig;
  rig.node = [](std::size_t node, const RedisCommand& command) -> std::string {
    if (node != 1 || !is(command, "EVALSHA")) return member_number(node, command);
    return error("NOPERM this user has no permissions to access one of the keys used as arguments");
  };
  rig.run();
  rig.acquire(1, "n");
  rig.run();
  CHECK(rig.downs.empty());
}

TEST_CASE("a node whose clock moved is down until it has kept time, and ours is not blamed on it") {
  DriverRig rig;
  rig.pass(15s);
  REQUIRE(rig.ups.size() == 3);
  SUBCASE("the clock of one node") {
    rig.ahead[2] = 1h;
    rig.pass(25s);
    REQUIRE(rig.downs.size() == 1);
    CHECK(contains(rig.downs[0], "its clock went ahead by 3600000 ms"));
    // For clients that start later, who have not seen it.
    const RedisCommand note{"SET", "redlock:node:clock", "moved", "PX", "60000"};
    CHECK(rig.count_of(note) == 1);
    rig.pass(80s);
    CHECK(rig.ups == std::vector<std::string>(4));
    CHECK(rig.downs.size() == 1);
  }
  SUBCASE("this machine's") {
    rig.ahead = {1h, 1h, 1h};
    rig.pass(80s);
    CHECK(rig.ups.size() == 3);
    CHECK(rig.downs.empty());
    CHECK(rig.said("SET") == 0);
  }
}

TEST_CASE("all connections of a client subscribe to one channel, its own") {
  DriverRig rig;
  rig.node = [](std::size_t node, const RedisCommand& command) -> std::string {
    if (is(command, "HELLO")) return "%0\r\n";
    if (!is(command, "SUBSCRIBE")) return member_number(node, command);
    return ">3\r\n+subscribe\r\n" + bulk(command.at(1)) + ":1\r\n";
  };
  rig.run();
  REQUIRE(rig.ups.size() == node_count);
  CHECK(rig.said("SUBSCRIBE") == node_count);
  // Of the first number that the rig draws.
  CHECK(rig.count_of({"SUBSCRIBE", "redlock:wake:0000000000000001"}) == node_count);
}

TEST_CASE("a promotion is new when it is shown for the first time, and not once it is known") {
  const auto promoted = [](const std::string& promotion, const std::string& vouched = {}) {
    ServerFacts facts;
    facts.vouched = vouched;
    facts.promotion = promotion;
    facts.was_replica = true;
    return facts;
  };
  NumberedRandom random;
  const SetTerms terms;
  MarkerTending tending(random, terms, 3, true);
  CHECK_FALSE(tending.on_facts(0, {}).pending);
  // Also the first one: the node may wait for what it forgot before.
  CHECK(tending.on_facts(0, promoted("a")).is_new);
  CHECK_FALSE(tending.on_facts(0, promoted("a")).is_new);
  CHECK(tending.on_facts(0, promoted("a")).pending);
  CHECK(tending.on_facts(1, promoted("a")).is_new);
  CHECK(tending.on_facts(0, promoted("b")).is_new);
  // Nothing waits for what somebody vouches for.
  CHECK_FALSE(tending.on_facts(0, promoted("b", "b")).pending);
  CHECK_FALSE(tending.on_facts(0, promoted("b", "b")).is_new);
  CHECK(tending.on_facts(0, promoted("c", "b")).is_new);
}

TEST_CASE("a marker that does not vouch for the promotion is no reason to connect again") {
  NumberedRandom random;
  const SetTerms terms;
  MarkerTending tending(random, terms, 3, true);
  ServerFacts facts;
  facts.promotion = "a";
  facts.was_replica = true;
  CHECK(tending.on_facts(0, facts).pending);
  const auto finding = [&](const std::string& vouched) {
    std::vector<Value> fields{Value{std::string("layout")},  Value{std::string("redlock-3")},
                              Value{std::string("set")},     Value{std::string("own")},
                              Value{std::string("vouched")}, Value{vouched}};
    return tending.read({0, false, {}, {}}, Answer(Value{std::move(fields)})).reconnect;
  };
  CHECK_FALSE(finding("b"));
  CHECK(finding("a"));
}
