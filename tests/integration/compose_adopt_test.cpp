// SPDX-License-Identifier: MIT
//
// cluster/adopt.sh, which the compose file runs beside its nodes, on nodes of a fleet: it needs
// redis-cli and a shell, no container.
#include <doctest/doctest.h>
#include <fmt/core.h>
#include <map>
#include <set>
#include <sstream>

#include "cluster/fleet.hpp"
#include "support/shell.hpp"
#include "support/text.hpp"

using redlock::cluster::Fleet;
using namespace redlock::testing;

namespace {

ShellResult adopt(const Fleet& fleet, std::size_t nodes, const std::string& max_lease = "60000") {
  const std::string tree = REDLOCK_SOURCE_DIR;
  auto command = fmt::format("{} {} {}", quoted(tree + "/cluster/adopt.sh"),
                             quoted(tree + "/src/wire/scripts/adopt.lua"), max_lease);
  for (std::size_t i = 0; i < nodes; ++i) command += fmt::format(" 127.0.0.1:{}", fleet.port(i));
  return shell(command);
}

std::map<std::string, std::string> marker(const Fleet& fleet, std::size_t node) {
  std::istringstream lines(fleet.run(node, {"HGETALL", "redlock:node"}));
  std::map<std::string, std::string> fields;
  for (std::string field, value; std::getline(lines, field) && std::getline(lines, value);) {
    fields[field] = value;
  }
  return fields;
}

}  // namespace

TEST_CASE("adopt.sh gives every node a marker of its own") {
  const Fleet fleet({.nodes = 3});
  const auto result = adopt(fleet, 3);
  INFO(result.output);
  CHECK(result.status == 0);
  std::set<std::string> ids;
  std::set<std::string> sets;
  for (std::size_t i = 0; i < 3; ++i) {
    auto fields = marker(fleet, i);
    CHECK(contains(result.output, fmt::format("127.0.0.1:{}: adopted, one of 3", fleet.port(i))));
    CHECK(fields.size() == 5);
    CHECK(fields["layout"] == "redlock-2");
    CHECK(fields["nodes"] == "3");
    CHECK(fields["max_lease_ms"] == "60000");
    CHECK(fields["id"].size() == 32);
    CHECK(fields["id"].find_first_not_of("0123456789abcdef") == std::string::npos);
    ids.insert(fields["id"]);
    sets.insert(fields["set"]);
  }
  CHECK(ids.size() == 3);
  CHECK(sets.size() == 1);
  CHECK(sets.begin()->size() == 32);
}

TEST_CASE("adopt.sh leaves a marker as it is, that agrees or is of another set, which it refuses") {
  const Fleet fleet({.nodes = 2});
  REQUIRE(adopt(fleet, 2).status == 0);
  const auto before = marker(fleet, 1);
  const auto again = adopt(fleet, 2);
  CHECK(again.status == 0);
  CHECK(contains(again.output, fmt::format("127.0.0.1:{}: adopted already", fleet.port(1))));
  CHECK(marker(fleet, 1) == before);
  const auto other = adopt(fleet, 2, "90000");
  CHECK(other.status == 1);
  CHECK(contains(other.output, "not adopted: it has answered"));
  CHECK(marker(fleet, 1) == before);
}

TEST_CASE("adopt.sh enrols no blank node beside nodes that have a marker") {
  const Fleet fleet({.nodes = 3});
  REQUIRE(adopt(fleet, 2).status == 0);
  const auto mixed = adopt(fleet, 3);
  CHECK(mixed.status == 1);
  const auto blank = fmt::format("127.0.0.1:{}", fleet.port(2));
  CHECK(contains(mixed.output, blank + ": not adopted: it has no marker, and others have one"));
  CHECK(contains(mixed.output, "redlock adopt --replaced " + blank));
  CHECK(marker(fleet, 2).empty());
}

TEST_CASE("adopt.sh says which node it could not reach, and waits for a quorum") {
  Fleet fleet({.nodes = 2});
  fleet.kill(0);
  const auto result = adopt(fleet, 2);
  CHECK(result.status == 1);
  for (const std::size_t node : {0U, 1U}) {
    CHECK(contains(result.output, fmt::format("127.0.0.1:{}: not adopted", fleet.port(node))));
  }
  CHECK(marker(fleet, 1).empty());
  fleet.restart(0);
  REQUIRE(adopt(fleet, 2).status == 0);
  CHECK(marker(fleet, 1)["set"].size() == 32);
  CHECK(marker(fleet, 1)["set"] == marker(fleet, 0)["set"]);
}
