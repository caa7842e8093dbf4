// SPDX-License-Identifier: MIT
// Tables fit the terminal: 80 columns, or more where it has them. What is cut there is whole in
// JSON.
#include "cli_process.hpp"

namespace redlock::testing {
namespace {

std::size_t widest_line(const std::string& text) {
  std::size_t widest = 0;
  for (const auto& line : lines_of(text)) widest = std::max(widest, characters_in(line));
  return widest;
}

/// Names as long as those in a cloud, of nodes that do not exist there.
std::vector<std::string> long_names() {
  std::vector<std::string> uris;
  for (const auto* zone : {"a", "b", "c"}) {
    uris.push_back("redis://lock-node-in-availability-zone-" + std::string(zone) +
                   ".redlock.production.eu-central-1.internal.invalid:7001");
  }
  return uris;
}

TEST_CASE("no table is wider than 80 columns, however long the names of nodes are") {
  const auto uris = long_names();
  for (const auto& arguments :
       {Arguments{"status", "a"}, Arguments{"doctor"}, Arguments{"adopt"}, Arguments{"list"}}) {
    CAPTURE(arguments);
    const auto finished = redlock(arguments, nodes_variable(uris));
    CAPTURE(finished.out);
    CHECK_FALSE(finished.out.empty());
    CHECK(widest_line(finished.out) <= 80);
    const auto with_json = appended(arguments, {"-o", "json"});
    const auto whole = json::parse(redlock(with_json, nodes_variable(uris)).out);
    CHECK(whole["nodes"][0]["node"] == uris[0]);
  }
  // Both ends tell nodes apart.
  const auto status = redlock({"status", "a"}, nodes_variable(uris)).out;
  check_contains(status, {"redis://lock-node-in-", "…", "invalid:7001"});
}

TEST_CASE("tables of real nodes fit, too, with all that there is to say of them") {
  Fleet fleet({.nodes = 3, .persistence = Persistence::always, .adopted = true});
  const std::string name(200, 'n');
  REQUIRE(redlock(fleet, {"acquire", name}, with_quarantine).status == 0);
  fleet.kill(2);
  for (const auto& arguments : {Arguments{"status", name}, {"doctor"}, {"list"}}) {
    const auto finished = redlock(fleet, arguments, with_quarantine);
    CAPTURE(finished.out);
    // The first line of status has the name as it is.
    CHECK(widest_line(finished.out.substr(finished.out.find('\n'))) <= 80);
  }
  CHECK(in_json(fleet, {"list"}, with_quarantine)["locks"][0]["name"] == name);
}

TEST_CASE("a wider terminal shows more") {
  const Fleet fleet({.nodes = 1, .persistence = Persistence::always, .adopted = true});
  CHECK_FALSE(contains(redlock(fleet, {"doctor"}).out, "RUN ID"));
  CHECK(contains(redlock(fleet, {"doctor"}, {{"COLUMNS", "200"}}).out, "RUN ID"));
  CHECK(contains(redlock(fleet, {"doctor"}, {{"COLUMNS", "40"}}).out, "PERSISTENCE"));
}

TEST_CASE("the tables of fleets fit") {
  const TemporaryDirectory place;
  const auto state = place.path() / std::string(90, 'd');
  const Variables variables{{"XDG_STATE_HOME", state.string()}};
  REQUIRE(redlock({"fleet", "up", "-n", "1"}, variables).status == 0);
  CHECK(widest_line(redlock({"fleet", "status"}, variables).out) <= 80);
  CHECK(widest_line(redlock({"fleet", "list"}, variables).out) <= 80);
  CHECK(contains(redlock({"fleet", "list", "-o", "json"}, variables).out, state.string()));
  CHECK(redlock({"fleet", "down"}, variables).status == 0);
}

}  // namespace
}  // namespace redlock::testing
