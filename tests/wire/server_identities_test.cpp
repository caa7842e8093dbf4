// SPDX-License-Identifier: MIT
// Which server counts for which node of the list, and for how long nobody else may show it.
#include "wire/server_identities.hpp"

#include <map>

#include "wire/rig.hpp"
#include "wire/server_facts.hpp"

using namespace std::chrono_literals;
using redlock::engine::Duration;
using redlock::engine::Instant;
using redlock::wire::ServerFacts;
using redlock::wire::ServerIdentities;
using Evidence = ServerIdentities::Evidence;

namespace {

struct List {
  explicit List(std::vector<std::uint32_t> databases = {0, 0, 0})
      : ids(std::move(databases), 60s) {}

  /// What a node does that is connected to. Without any it is up.
  std::optional<Evidence> evidence_on(std::size_t node, const std::string& run_id) {
    ServerFacts facts;
    facts.run_id = run_id;
    const std::string key = ids.key_to_read(now, node);
    if (!key.empty()) {
      if (reads) facts.identity = keys[server_of(node)][key];
      if (!reads) facts.identity_refusal = "NOPERM";
    }
    const auto suspicion = ids.judge(now, node, facts);
    ids.set_up(now, node, !suspicion);
    return suspicion ? std::optional(suspicion->evidence) : std::nullopt;
  }
  bool comes_up(std::size_t node, const std::string& run_id) {
    return !evidence_on(node, run_id).has_value();
  }
  void goes_down(std::size_t node) { ids.set_up(now, node, false); }

  std::optional<ServerIdentities::Write> next_write(std::size_t node) {
    return ids.next_write(now, node, random);
  }
  /// The write with which the check of a refused node begins reaches the server of the other node.
  void check(std::size_t node) {
    const auto write = next_write(node);
    REQUIRE(write);
    keys[server_of(write->through)][write->key] = write->value;
    CHECK_FALSE(ids.on_written(node, *write, true));
  }
  /// The same, but it is not written. Whether the other node gives way.
  bool check_fails(std::size_t node) {
    const auto write = next_write(node);
    REQUIRE(write);
    const bool gives_way = ids.on_written(node, *write, false);
    if (gives_way) goes_down(write->through);
    return gives_way;
  }

  Instant now{1h};
  ServerIdentities ids;
  redlock::wire::NumberedRandom random;
  bool reads = true;                       ///< the node does not refuse to
  std::map<std::size_t, std::size_t> led;  ///< nodes that lead to the server of another
  std::map<std::size_t, std::map<std::string, std::string>> keys;  ///< of each server

 private:
  [[nodiscard]] std::size_t server_of(std::size_t node) const {
    return led.contains(node) ? led.at(node) : node;
  }
};

/// Node 0 is up, and node 1 reports its run id.
struct Twins : List {
  explicit Twins(std::vector<std::uint32_t> databases = {0, 0, 0}) : List(std::move(databases)) {
    REQUIRE(comes_up(0, "a"));
    CHECK(evidence_on(1, "a") == Evidence::claimed);
  }
};

}  // namespace

TEST_CASE("two addresses of one server are proved to be one, and stay so") {
  Twins list;
  list.led[1] = 0;
  list.check(1);
  for (int i = 0; i < 100; ++i) {
    CHECK(list.evidence_on(1, "a") != std::nullopt);
    if (list.next_write(1)) break;  // the key is too old to prove anything
    CHECK(list.evidence_on(1, "a") == Evidence::proved);
    list.now += 1s;
  }
  CHECK(list.evidence_on(1, "a") == Evidence::claimed);
}

TEST_CASE("a node that only reports the run id of another puts out neither") {
  for (const std::size_t first : {0U, 1U}) {
    List list;
    REQUIRE(list.comes_up(first, "a"));
    CHECK(list.evidence_on(1 - first, "a") == Evidence::claimed);
    list.check(1 - first);
    CHECK(list.comes_up(1 - first, "a"));
    CHECK(list.ids.key_to_read(list.now, 1 - first).empty());
    // And again, from the other side, when a connection breaks.
    list.goes_down(first);
    CHECK(list.evidence_on(first, "a") == Evidence::claimed);
    list.check(first);
    CHECK(list.comes_up(first, "a"));
  }
}

TEST_CASE("two nodes that report the run id of a third one are told from it one after the other") {
  Twins list;
  list.check(1);
  REQUIRE(list.comes_up(1, "a"));
  for (int other = 0; other < 2; ++other) {
    CHECK(list.evidence_on(2, "a") == Evidence::claimed);
    list.check(2);
  }
  CHECK(list.comes_up(2, "a"));
}

TEST_CASE("two copies of a client that draw alike prove nothing to each other") {
  List one;
  List other;
  REQUIRE(one.comes_up(0, "a"));
  REQUIRE(other.comes_up(1, "a"));
  CHECK(one.evidence_on(1, "a") == Evidence::claimed);
  CHECK(other.evidence_on(0, "a") == Evidence::claimed);
  one.check(1);
  other.check(0);
  for (auto& [server, keys] : other.keys) one.keys[server].merge(keys);
  CHECK(one.comes_up(1, "a"));
}

TEST_CASE("a key that may have ended, or of an earlier start, proves nothing") {
  Twins list;
  list.led[1] = 0;
  list.check(1);
  list.keys.clear();
  SUBCASE("it is too old") {
    list.now += ServerIdentities::key_lasts / 2;
    CHECK(list.ids.key_to_read(list.now, 1).empty());
    CHECK(list.evidence_on(1, "a") == Evidence::claimed);
  }
  SUBCASE("the server was restarted without its data") {
    list.goes_down(0);
    CHECK_FALSE(list.comes_up(1, "b"));
    REQUIRE(list.comes_up(0, "b"));
    CHECK_FALSE(list.comes_up(1, "b"));
  }
}

TEST_CASE("a key in another database proves nothing") {
  Twins list({0, 1, 0});
  CHECK_FALSE(list.next_write(1));
  CHECK(list.evidence_on(2, "a") == Evidence::claimed);
  CHECK(list.next_write(2));
}

TEST_CASE("a node that does not say what the key holds stays out") {
  Twins list;
  list.reads = false;
  list.check(1);
  CHECK(list.evidence_on(1, "a") == Evidence::unreadable);
}

TEST_CASE("a node that does not write the key gives way when its own votes are over") {
  Twins list;
  CHECK_FALSE(list.check_fails(1));
  CHECK_FALSE(list.check_fails(1));
  CHECK(list.check_fails(1));
  list.now += 59s;
  CHECK(list.evidence_on(0, "a") == Evidence::gave_way);
  CHECK(list.evidence_on(1, "a") == Evidence::claimed);  // node 0 may have voted
  list.now += 1s;
  CHECK(list.evidence_on(0, "a") == Evidence::gave_way);
  SUBCASE("to the other, which then proves it") {
    REQUIRE(list.comes_up(1, "a"));
    CHECK(list.evidence_on(0, "a") == Evidence::claimed);
    list.check(0);
    CHECK(list.comes_up(0, "a"));
  }
  SUBCASE("and comes back if the other does not come") {
    list.now += 5s;
    CHECK(list.comes_up(0, "a"));
  }
}

TEST_CASE("a broken connection or two in the middle of checks put no node out") {
  Twins list;
  for (int i = 0; i < 10; ++i) {
    CHECK_FALSE(list.check_fails(1));
    CHECK_FALSE(list.check_fails(1));
    list.check(1);
    list.now += ServerIdentities::key_lasts;
  }
}

TEST_CASE("a node is not kept out for good by one that comes up for moments only") {
  Twins list;
  // The check begins as soon as node 0 is up, although node 1 connects only later.
  bool let_in = false;
  bool gave_way = false;
  for (int i = 0; i < 10 && !let_in; ++i) {
    if (!gave_way && list.comes_up(0, "a")) gave_way = list.check_fails(1);
    list.goes_down(0);
    list.now += 20s;
    let_in = list.comes_up(1, "a");
  }
  CHECK(let_in);
}

TEST_CASE("nodes that changed places come back when no old vote counts, also if started anew") {
  for (const std::size_t count : {2U, 3U}) {
    for (const bool anew : {false, true}) {
      List list;
      const auto run_id = [](std::size_t of) {
        return std::string(1, static_cast<char>('a' + of));
      };
      for (std::size_t node = 0; node < count; ++node) REQUIRE(list.comes_up(node, run_id(node)));
      list.now += 1min;
      for (std::size_t node = 0; node < count; ++node) list.goes_down(node);
      for (const Duration later : {0s, 30s, 29s}) {
        list.now += later;
        for (std::size_t node = 0; node < count; ++node) {
          CHECK_FALSE(list.comes_up(node, run_id((node + 1) % count)));
        }
      }
      list.now += 1s;
      for (std::size_t node = 0; node < count; ++node) {
        CHECK(list.comes_up(node, run_id(anew ? count + node : (node + 1) % count)));
      }
    }
  }
}

TEST_CASE("a server that is up under one name is refused under another, however long") {
  List list;
  REQUIRE(list.comes_up(0, "a"));
  list.now += 1h;
  CHECK_FALSE(list.comes_up(1, "a"));
  list.goes_down(0);
  list.now += 59s;
  list.goes_down(0);  // failing to come up again keeps it no longer
  CHECK_FALSE(list.comes_up(1, "a"));
  // Now it counts for node 1, and for node 0 no more.
  list.now += 1s;
  CHECK(list.comes_up(1, "a"));
  CHECK_FALSE(list.comes_up(0, "a"));
  list.goes_down(1);
  CHECK_FALSE(list.comes_up(0, "a"));
}

TEST_CASE("a twin that was started anew waits for the other, or until no old vote counts") {
  Twins list;
  list.goes_down(0);
  list.now += 59s;
  CHECK_FALSE(list.comes_up(1, "b"));
  SUBCASE("beside another server") {
    REQUIRE(list.comes_up(0, "c"));
    CHECK(list.comes_up(1, "b"));
  }
  SUBCASE("beside itself") {
    REQUIRE(list.comes_up(0, "b"));
    CHECK_FALSE(list.comes_up(1, "b"));
  }
  SUBCASE("alone") {
    list.now += 1s;
    CHECK(list.comes_up(1, "b"));
    CHECK_FALSE(list.comes_up(0, "b"));
  }
}
