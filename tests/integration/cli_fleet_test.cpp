// SPDX-License-Identifier: MIT
// redlock fleet: local nodes that outlive the command, until `down` leaves nothing of them.
#include <doctest/doctest.h>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli_process.hpp"
#include "cluster/fleet.hpp"
#include "support/temporary_directory.hpp"

namespace redlock::testing {
namespace {

using nlohmann::json;

/// Commands for a fleet in a directory of its own, which is ended whatever happens.
class LocalFleet {
 public:
  ~LocalFleet() { cluster::Fleet::down(directory()); }

  [[nodiscard]] std::filesystem::path directory() const { return place_.path() / "fleet"; }
  [[nodiscard]] Finished run(Arguments arguments) const {
    arguments.insert(arguments.begin(), "fleet");
    arguments.insert(arguments.end(), {"--dir", directory().string()});
    return redlock(arguments);
  }
  [[nodiscard]] std::string state_of(int node) const {
    const auto status = json::parse(run({"status", "-o", "json"}).out);
    return status["nodes"][static_cast<std::size_t>(node - 1)]["state"].get<std::string>();
  }

 private:
  TemporaryDirectory place_;
};

// The value of the export line.
Variables exported(const std::string& out) {
  const std::string start = "export REDLOCK_NODES=";
  REQUIRE(out.starts_with(start));
  REQUIRE(out.ends_with('\n'));
  return {{"REDLOCK_NODES", out.substr(start.size(), out.size() - start.size() - 1)}};
}

TEST_CASE(
    "fleet up prints a line that every other command understands, fleet down leaves nothing") {
  const LocalFleet fleet;
  const auto up = fleet.run({"up"});
  REQUIRE(up.status == 0);
  CHECK(occurrences(up.out, "redis://127.0.0.1:") == 5);
  CHECK(occurrences(up.out, "\n") == 1);
  CHECK(up.err.empty());
  const auto nodes = exported(up.out);

  CHECK(redlock({"doctor"}, nodes).status == 0);
  const auto finished = redlock({"exec", "a", "--", "echo", "done"}, nodes);
  CHECK(finished.out == "done\n");

  const auto status = fleet.run({"status"});
  CHECK(occurrences(status.out, "running") == 5);
  CHECK(contains(status.out, up.out));
  CHECK(processes_in(fleet.directory()) == 5);

  const auto down = fleet.run({"down"});
  CHECK(down.status == 0);
  CHECK(down.out.empty());
  CHECK(processes_in(fleet.directory()) == 0);
  CHECK_FALSE(std::filesystem::exists(fleet.directory()));
  CHECK(redlock({"exec", "a", "--wait", "0", "--", "true"}, nodes).status == 69);
}

TEST_CASE("nodes are killed, paused, resumed and restarted by their number, from 1") {
  const LocalFleet fleet;
  const auto nodes = exported(fleet.run({"up", "-n", "3"}).out);
  CHECK(fleet.run({"kill", "1"}).status == 0);
  CHECK(fleet.state_of(1) == "ended");
  CHECK(fleet.run({"pause", "3"}).status == 0);
  CHECK(fleet.state_of(3) == "paused");
  CHECK(fleet.state_of(2) == "running");
  CHECK(redlock({"exec", "a", "--wait", "0", "--", "true"}, nodes).status == 69);
  CHECK(fleet.run({"resume", "3"}).status == 0);
  CHECK(fleet.state_of(3) == "running");
  CHECK(redlock({"exec", "a", "--node-timeout", "10s", "--", "true"}, nodes).status == 0);
  CHECK(fleet.run({"restart", "1"}).status == 0);
  CHECK(fleet.state_of(1) == "running");
  CHECK(redlock({"doctor"}, nodes).status == 0);
}

TEST_CASE("a node restarted empty has lost its marker, and adopt gives it a new one") {
  const LocalFleet fleet;
  const auto nodes = exported(fleet.run({"up", "-n", "3"}).out);
  CHECK(fleet.run({"restart", "2", "--empty"}).status == 0);
  const auto sick = redlock({"doctor"}, nodes);
  CHECK(sick.status == 1);
  CHECK(contains(sick.out, "has no marker"));
  CHECK(redlock({"adopt"}, nodes).status == 0);
  CHECK(redlock({"doctor"}, nodes).status == 0);
}

TEST_CASE("a fleet without persistence is said not to be safe") {
  const LocalFleet fleet;
  const auto nodes = exported(fleet.run({"up", "-n", "3", "--persistence", "none"}).out);
  const auto sick = redlock({"doctor"}, nodes);
  CHECK(sick.status == 1);
  CHECK(contains(sick.out, "appendonly is no"));
}

TEST_CASE("the directory is that of the user's state unless --dir names another") {
  const TemporaryDirectory place;
  const Variables state{{"XDG_STATE_HOME", place.path().string()}};
  REQUIRE(redlock({"fleet", "up", "-n", "1"}, state).status == 0);
  CHECK(std::filesystem::exists(place.path() / "redlock" / "fleet"));
  CHECK(redlock({"fleet", "down"}, state).status == 0);

  const Variables home{{"HOME", place.path().string()}};
  REQUIRE(redlock({"fleet", "up", "-n", "1"}, home).status == 0);
  CHECK(std::filesystem::exists(place.path() / ".local" / "state" / "redlock" / "fleet"));
  CHECK(redlock({"fleet", "down"}, home).status == 0);
}

TEST_CASE("what cannot be done is said in a sentence") {
  const LocalFleet fleet;
  const auto none = fleet.run({"status"});
  CHECK(none.status == 125);
  CHECK(contains(none.err, "no fleet is recorded"));
  CHECK(fleet.run({"kill", "1"}).status == 125);
  CHECK(fleet.run({"down"}).status == 0);

  REQUIRE(fleet.run({"up", "-n", "2"}).status == 0);
  const auto twice = fleet.run({"up"});
  CHECK(twice.status == 125);
  CHECK(contains(twice.err, "fleet down"));
  const auto beyond = fleet.run({"kill", "3"});
  CHECK(beyond.status == 64);
  CHECK(contains(beyond.err, "nodes 1 to 2"));
  CHECK(fleet.run({"kill", "0"}).status == 64);
  CHECK(fleet.run({"kill"}).status == 64);
}

}  // namespace
}  // namespace redlock::testing
