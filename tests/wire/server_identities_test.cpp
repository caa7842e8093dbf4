// SPDX-License-Identifier: MIT
// Which server counts for which node of the list, and for how long nobody else may show it.
#include "wire/server_identities.hpp"

#include <chrono>
#include <cstddef>
#include <doctest/doctest.h>
#include <string>

using namespace std::chrono_literals;
using redlock::engine::Duration;
using redlock::engine::Instant;
using redlock::wire::ServerIdentities;

namespace {

struct List {
  /// What a node does that is connected to.
  bool comes_up(std::size_t node, const std::string& run_id) {
    const bool refused = ids.find_twin(now, node, run_id).has_value();
    ids.set_up(now, node, !refused);
    return !refused;
  }
  void goes_down(std::size_t node) { ids.set_up(now, node, false); }

  Instant now{1h};
  ServerIdentities ids{3, 60s};
};

}  // namespace

TEST_CASE("two nodes whose addresses were exchanged come back when no old vote counts") {
  List list;
  REQUIRE(list.comes_up(0, "a"));
  REQUIRE(list.comes_up(1, "b"));
  list.now += 1min;
  list.goes_down(0);
  list.goes_down(1);
  for (const Duration later : {0s, 30s, 29s}) {
    list.now += later;
    CHECK_FALSE(list.comes_up(0, "b"));
    CHECK_FALSE(list.comes_up(1, "a"));
  }
  list.now += 1s;
  CHECK(list.comes_up(0, "b"));
  CHECK(list.comes_up(1, "a"));
}

TEST_CASE("three nodes that changed places come back, also if they have been started anew") {
  for (const bool anew : {false, true}) {
    List list;
    REQUIRE(list.comes_up(0, "a"));
    REQUIRE(list.comes_up(1, "b"));
    REQUIRE(list.comes_up(2, "c"));
    for (const std::size_t node : {0U, 1U, 2U}) list.goes_down(node);
    CHECK_FALSE(list.comes_up(0, "b"));
    CHECK_FALSE(list.comes_up(1, "c"));
    CHECK_FALSE(list.comes_up(2, "a"));
    list.now += 60s;
    CHECK(list.comes_up(0, anew ? "d" : "b"));
    CHECK(list.comes_up(1, anew ? "e" : "c"));
    CHECK(list.comes_up(2, anew ? "f" : "a"));
  }
}

TEST_CASE("a server that is up under one name is refused under another, however long") {
  List list;
  REQUIRE(list.comes_up(0, "a"));
  list.now += 1h;
  CHECK_FALSE(list.comes_up(1, "a"));
  list.goes_down(0);
  list.now += 59s;
  CHECK_FALSE(list.comes_up(1, "a"));
  // Now it counts for node 1, and for node 0 no more.
  list.now += 1s;
  CHECK(list.comes_up(1, "a"));
  CHECK_FALSE(list.comes_up(0, "a"));
  list.goes_down(1);
  CHECK_FALSE(list.comes_up(0, "a"));
}

TEST_CASE("a twin that was started anew waits for the other, or until no old vote counts") {
  List list;
  REQUIRE(list.comes_up(0, "a"));
  REQUIRE_FALSE(list.comes_up(1, "a"));
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

TEST_CASE("failing to come up again does not lengthen the time that an identity is kept") {
  List list;
  REQUIRE(list.comes_up(0, "a"));
  list.goes_down(0);
  list.now += 59s;
  list.goes_down(0);
  CHECK_FALSE(list.comes_up(1, "a"));
  list.now += 1s;
  CHECK(list.comes_up(1, "a"));
}
