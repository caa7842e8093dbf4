// SPDX-License-Identifier: MIT
// redlock fleet: local nodes that outlive the command, until `down` leaves nothing of them.
#include "cli_process.hpp"
#include "cluster/free_port.hpp"

namespace redlock::testing {
namespace {

/// Commands for a fleet in a directory of its own, which is ended whatever happens.
class LocalFleet {
 public:
  ~LocalFleet() { cluster::Fleet::down(directory()); }

  [[nodiscard]] std::filesystem::path directory() const { return place_.path() / "fleet"; }
  [[nodiscard]] Finished run(Arguments arguments, const Variables& variables = {}) const {
    arguments.insert(arguments.begin(), "fleet");
    arguments.insert(arguments.end(), {"--dir", directory().string()});
    return redlock(arguments, variables);
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

/// A busy machine must not look like a node that is gone.
Finished patiently(Arguments arguments, const Variables& variables) {
  arguments.insert(arguments.end(), {"--node-timeout", "10s"});
  return redlock(arguments, variables);
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

  CHECK(patiently({"doctor"}, nodes).status == 0);
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
  CHECK(patiently({"doctor"}, nodes).status == 0);
}

TEST_CASE("a node restarted empty has lost its marker, and adopt gives it a new one") {
  const LocalFleet fleet;
  const auto nodes = exported(fleet.run({"up", "-n", "3"}).out);
  CHECK(fleet.run({"restart", "2", "--empty"}).status == 0);
  const auto sick = patiently({"doctor"}, nodes);
  CHECK(sick.status == 1);
  CHECK(contains(sick.out, "has no marker"));
  const auto list = nodes.at("REDLOCK_NODES");
  const auto second = list.substr(list.find(',') + 1, list.rfind(',') - list.find(',') - 1);
  CHECK(patiently({"adopt", "--replaced", second}, nodes).status == 0);
  CHECK(patiently({"doctor"}, nodes).status == 0);
}

TEST_CASE("the environment's longest lease is that of a fleet that is started") {
  const LocalFleet fleet;
  auto nodes = exported(fleet.run({"up", "-n", "3"}, {{"REDLOCK_MAX_LEASE", "2m"}}).out);
  CHECK(redlock({"exec", "a", "--node-timeout", "10s", "--", "true"}, nodes).status == 78);
  nodes["REDLOCK_MAX_LEASE"] = "2m";
  const auto doctor = patiently({"doctor"}, nodes);
  CHECK_MESSAGE(doctor.status == 0, doctor.out);
}

TEST_CASE("a fleet without persistence is said not to be safe") {
  const LocalFleet fleet;
  const auto nodes = exported(fleet.run({"up", "-n", "3", "--persistence", "none"}).out);
  const auto sick = patiently({"doctor"}, nodes);
  CHECK(sick.status == 2);
  CHECK(contains(sick.out, "appendonly is no"));
}

TEST_CASE("a fleet for clients without quarantine has no markers, and can be used at once") {
  const LocalFleet fleet;
  Variables variables{{"REDLOCK_QUARANTINE", "off"}};
  const auto up = redlock(
      {"fleet", "up", "-n", "3", "--persistence", "none", "--dir", fleet.directory().string()},
      variables);
  variables.merge(exported(up.out));
  CHECK(redlock({"exec", "a", "--wait", "30s", "--", "echo", "done"}, variables).out == "done\n");
  CHECK(contains(patiently({"doctor"}, variables).out, "has no marker"));
}

TEST_CASE("the directory is that of the user's state unless --dir names another") {
  const TemporaryDirectory place;
  const Variables state{{"XDG_STATE_HOME", place.path().string()}};
  REQUIRE(redlock({"fleet", "up", "-n", "1"}, state).status == 0);
  CHECK(std::filesystem::exists(place.path() / "redlock" / "fleet" / "default" / "fleet"));
  CHECK(redlock({"fleet", "down"}, state).status == 0);

  const Variables home{{"HOME", place.path().string()}};
  REQUIRE(redlock({"fleet", "up", "-n", "1"}, home).status == 0);
  CHECK(std::filesystem::exists(place.path() / ".local/state/redlock/fleet/default/fleet"));
  CHECK(redlock({"fleet", "down"}, home).status == 0);
}

TEST_CASE("what cannot be done is said in a sentence") {
  const LocalFleet fleet;
  const auto none = fleet.run({"status"});
  CHECK(none.status == 125);
  CHECK(contains(none.err, "no fleet is recorded"));
  CHECK(fleet.run({"kill", "1"}).status == 125);
  CHECK(fleet.run({"down"}).status == 0);

  CHECK(fleet.run({"env"}).status == 125);

  REQUIRE(fleet.run({"up", "-n", "2"}).status == 0);
  const auto beyond = fleet.run({"kill", "3"});
  CHECK(beyond.status == 64);
  CHECK(contains(beyond.err, "nodes 1 to 2"));
  CHECK(fleet.run({"kill", "0"}).status == 64);
  CHECK(fleet.run({"kill"}).status == 64);
}

TEST_CASE("up on a fleet that runs prints its line again, and env prints nothing else") {
  const LocalFleet fleet;
  const auto up = fleet.run({"up", "-n", "3"});
  REQUIRE(up.status == 0);
  for (const auto& arguments : {Arguments{"up"}, Arguments{"up", "-n", "3"}}) {
    const auto again = fleet.run(arguments);
    CHECK(again.status == 0);
    CHECK(again.out == up.out);
    CHECK(contains(again.err, "3 nodes run already"));
  }
  CHECK(processes_in(fleet.directory()) == 3);
  const auto env = fleet.run({"env"});
  CHECK(env.status == 0);
  CHECK(env.out == up.out);
  CHECK(env.err.empty());

  REQUIRE(fleet.run({"kill", "2"}).status == 0);
  REQUIRE(fleet.run({"pause", "3"}).status == 0);
  const auto lame = fleet.run({"up"});
  CHECK(lame.status == 0);
  CHECK(lame.out == up.out);
  CHECK(contains(lame.err, "node 2 has ended; redlock fleet restart 2 --dir "));
  CHECK(contains(lame.err, "node 3 is paused; redlock fleet resume 3 --dir "));
}

TEST_CASE("up refuses options that the fleet that runs does not have") {
  const LocalFleet fleet;
  REQUIRE(fleet.run({"up", "-n", "2"}).status == 0);
  const auto taken = std::to_string(cluster::FreePort::pick().number());
  for (const auto& options :
       {Arguments{"up", "-n", "3"}, Arguments{"up", "--nodes", "3"},
        Arguments{"up", "--persistence", "none"}, Arguments{"up", "--port", taken}}) {
    const auto refused = fleet.run(options);
    CAPTURE(refused.err);
    CHECK(refused.status == 64);
    CHECK(refused.out.empty());
    CHECK(contains(refused.err, "the fleet runs already, with "));
    CHECK(contains(refused.err, "fleet down"));
  }
}

TEST_CASE("a fleet whose nodes have all ended is replaced by a new one") {
  const LocalFleet fleet;
  REQUIRE(fleet.run({"up", "-n", "1"}).status == 0);
  REQUIRE(fleet.run({"kill", "1"}).status == 0);
  const auto anew = fleet.run({"up", "-n", "2"});
  CHECK(anew.status == 0);
  CHECK(anew.err.empty());
  CHECK(processes_in(fleet.directory()) == 2);
}

TEST_CASE("two that start one fleet at the same moment get the same one") {
  const LocalFleet fleet;
  const Arguments up{"fleet", "up", "-n", "3", "--dir", fleet.directory().string()};
  Running first(up);
  Running second(up);
  const auto one = first.wait();
  const auto other = second.wait();
  CHECK(one.status == 0);
  CHECK(other.status == 0);
  CHECK(one.out == other.out);
  CHECK(processes_in(fleet.directory()) == 3);
}

TEST_CASE("fleets of different names run side by side, and are listed") {
  const TemporaryDirectory place;
  Variables state{{"XDG_STATE_HOME", place.path().string()}};
  const auto fleet = [&](Arguments arguments) {
    arguments.insert(arguments.begin(), "fleet");
    return redlock(arguments, state);
  };
  const auto one = fleet({"up", "-n", "1"});
  const auto other = fleet({"up", "-n", "2", "--name", "other"});
  REQUIRE(one.status == 0);
  REQUIRE(other.status == 0);
  CHECK(fleet({"env"}).out == one.out);
  CHECK(fleet({"env", "--name", "other"}).out == other.out);
  CHECK(fleet({"kill", "2", "--name", "other"}).status == 0);
  const auto list = json::parse(fleet({"list", "-o", "json"}).out)["fleets"];
  REQUIRE(list.size() == 2);
  CHECK(list[0]["name"] == "default");
  CHECK(list[1]["name"] == "other");
  CHECK(list[1]["nodes"] == 2);
  CHECK(list[1]["running"] == 1);
  CHECK(contains(fleet({"list"}).out, "NAME"));

  const auto broken = place.path() / "redlock" / "fleet" / "broken";
  std::filesystem::create_directory(broken);
  std::ofstream(broken / "fleet") << "junk\n";
  const auto others = fleet({"list"});
  CHECK(others.status == 0);
  CHECK(contains(others.out, "\nother "));
  CHECK(contains(others.err, "is not the record of a fleet"));
  std::filesystem::remove_all(broken);

  state["REDLOCK_FLEET"] = "other";
  CHECK(fleet({"env"}).out == other.out);
  CHECK(fleet({"env", "--name", "default"}).out == one.out);
  CHECK(fleet({"down"}).status == 0);
  CHECK(fleet({"down", "--name", "default"}).status == 0);
  CHECK(json::parse(fleet({"list", "-o", "json"}).out)["fleets"].empty());
  for (const auto* bad : {"", "a/b", "..", ".a", "a b"}) {
    CHECK(fleet({"env", "--name", bad}).status == 64);
  }
}

TEST_CASE("nodes get consecutive ports, or a sentence that names the one that is taken") {
  const LocalFleet fleet;
  // A program that takes one of these meanwhile is not ours; then the ports are others.
  const auto try_ports = [&] {
    const int first = cluster::FreePort::pick().number();
    const auto up = fleet.run({"up", "-n", "2", "--port", std::to_string(first)});
    return std::pair(first, up);
  };
  auto [first, up] = try_ports();
  for (int i = 0; i < 20 && up.status != 0; ++i) std::tie(first, up) = try_ports();
  REQUIRE(up.status == 0);
  CHECK(contains(up.out, fmt::format("127.0.0.1:{},", first)));
  CHECK(contains(up.out, fmt::format("127.0.0.1:{}\n", first + 1)));
  CHECK(fleet.run({"up", "--port", std::to_string(first)}).out == up.out);

  const LocalFleet other;
  const auto refused = other.run({"up", "-n", "2", "--port", std::to_string(first)});
  CHECK(refused.status == 125);
  CHECK(contains(refused.err, fmt::format("port {} of this machine is taken", first)));
  CHECK(occurrences(refused.err, "\n") == 1);
  CHECK(processes_in(other.directory()) == 0);
  CHECK(other.run({"up", "-n", "2", "--port", "65535"}).status == 125);
}

}  // namespace
}  // namespace redlock::testing
