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
  [[nodiscard]] Arguments command(const Arguments& arguments) const {
    return appended(appended({"fleet"}, arguments), {"--dir", directory().string()});
  }
  [[nodiscard]] Finished run(const Arguments& arguments, const Variables& variables = {}) const {
    return redlock(command(arguments), variables);
  }
  /// The value of the line that `up` prints.
  [[nodiscard]] Variables up(const Arguments& options, const Variables& variables = {}) const {
    const auto out = run(appended({"up"}, options), variables).out;
    const std::string start = "export REDLOCK_NODES=";
    REQUIRE(out.starts_with(start));
    REQUIRE(out.ends_with('\n'));
    return {{"REDLOCK_NODES", out.substr(start.size(), out.size() - start.size() - 1)}};
  }
  [[nodiscard]] std::string state_of(int node) const {
    const auto status = json::parse(run({"status", "-o", "json"}).out);
    return status["nodes"][static_cast<std::size_t>(node - 1)]["state"].get<std::string>();
  }
  [[nodiscard]] std::size_t processes() const { return processes_in(directory()); }

 private:
  TemporaryDirectory place_;
};

Finished patiently(const Arguments& arguments, const Variables& variables) {
  return redlock(patient(arguments), variables);
}

const Arguments exec_at_once = exec_a({"--wait", "0"}, {"true"});

TEST_CASE_FIXTURE(LocalFleet, "up prints what each command understands, down leaves nothing") {
  const auto started = run({"up"});
  REQUIRE(started.status == 0);
  CHECK(occurrences(started.out, "redis://127.0.0.1:") == 5);
  CHECK(occurrences(started.out, "\n") == 1);
  CHECK(started.err.empty());
  const auto nodes = up({});

  CHECK(patiently({"doctor"}, nodes).status == 0);
  CHECK(redlock(exec_a({}, {"echo", "done"}), nodes).out == "done\n");

  const auto status = run({"status"});
  CHECK(occurrences(status.out, "running") == 5);
  CHECK(contains(status.out, started.out));
  CHECK(processes() == 5);

  const auto down = exits_with(0, run({"down"}));
  CHECK(down.out.empty());
  CHECK(processes() == 0);
  CHECK_FALSE(std::filesystem::exists(directory()));
  CHECK(redlock(exec_at_once, nodes).status == 69);
}

TEST_CASE_FIXTURE(LocalFleet, "nodes are killed, paused and restarted by their number, from 1") {
  const auto nodes = up({"-n", "3"});
  CHECK(run({"kill", "1"}).status == 0);
  CHECK(state_of(1) == "ended");
  CHECK(run({"pause", "3"}).status == 0);
  CHECK(state_of(3) == "paused");
  CHECK(state_of(2) == "running");
  CHECK(redlock(exec_at_once, nodes).status == 69);
  CHECK(run({"resume", "3"}).status == 0);
  CHECK(state_of(3) == "running");
  CHECK(patiently(exec_a({}, {"true"}), nodes).status == 0);
  CHECK(run({"restart", "1"}).status == 0);
  CHECK(state_of(1) == "running");
  CHECK(patiently({"doctor"}, nodes).status == 0);

  // A node that is restarted empty has lost its marker, and adopt gives it a new one.
  CHECK(run({"restart", "2", "--empty"}).status == 0);
  const auto sick = exits_with(1, patiently({"doctor"}, nodes));
  CHECK(contains(sick.out, "has no marker"));
  const auto list = nodes.at("REDLOCK_NODES");
  const auto second = list.substr(list.find(',') + 1, list.rfind(',') - list.find(',') - 1);
  CHECK(patiently({"adopt", "--replaced", second}, nodes).status == 0);
  CHECK(patiently({"doctor"}, nodes).status == 0);
}

TEST_CASE_FIXTURE(LocalFleet, "a node that is added is one of the fleet, and may be a member") {
  auto nodes = up({"-n", "3"});
  const auto added = exits_with(0, run({"add"}));
  CHECK(added.err.empty());
  REQUIRE(added.out.ends_with('\n'));
  const auto node = added.out.substr(0, added.out.size() - 1);
  CHECK(run({"env"}).out == "export REDLOCK_NODES=" + nodes.at("REDLOCK_NODES") + "," + added.out);
  CHECK(exits_with(64, run({"up", "-n", "3"})).out.empty());
  CHECK(run({"kill", "4"}).status == 0);
  CHECK(state_of(4) == "ended");
  CHECK(run({"restart", "4"}).status == 0);

  // A list that has it counts the members of the set, and doctor says what it is.
  const auto whole = patiently({"doctor"}, up({}));
  CHECK(whole.status == 1);
  check_contains(whole.out, {node + ": it has no marker", "no member of the set"});
  CHECK(patiently(exec_a({}, {"true"}), up({})).status == 0);

  auto& list = nodes.at("REDLOCK_NODES");
  const auto old = list.substr(0, list.find(','));
  CHECK(run({"kill", "1"}).status == 0);
  exits_with(0, patiently({"set", "replace", old, node, "--over"}, nodes));
  list.replace(0, old.size(), node);
  const auto doctor = exits_with(0, patiently({"doctor"}, nodes));
  CHECK(contains(doctor.out, "all 3 nodes vote"));
  CHECK(run({"down"}).status == 0);
  CHECK(processes() == 0);
}

TEST_CASE_FIXTURE(LocalFleet, "two nodes added at the same moment are two") {
  REQUIRE(run({"up", "-n", "1"}).status == 0);
  Running first(command({"add"}));
  Running second(command({"add"}));
  const auto one = exits_with(0, first.wait());
  const auto other = exits_with(0, second.wait());
  CHECK(one.out != other.out);
  CHECK(processes() == 3);
  check_contains(run({"env"}).out, {one.out.substr(0, one.out.size() - 1),
                                    other.out.substr(0, other.out.size() - 1)});
}

TEST_CASE_FIXTURE(LocalFleet, "the environment's longest lease is that of a fleet it starts") {
  auto nodes = up({"-n", "3"}, {{"REDLOCK_MAX_LEASE", "2m"}});
  CHECK(patiently(exec_a({"--lease", "2m"}, {"true"}), nodes).status == 0);
  CHECK(patiently(exec_a({"--lease", "3m"}, {"true"}), nodes).status == 78);
  nodes["REDLOCK_MAX_LEASE"] = "2m";
  const auto doctor = patiently({"doctor"}, nodes);
  CHECK_MESSAGE(doctor.status == 0, doctor.out);
}

TEST_CASE("a fleet without persistence is not safe; without quarantine it has no markers") {
  for (const std::string quarantine : {"on", "off"}) {
    CAPTURE(quarantine);
    const LocalFleet fleet;
    Variables nodes{{"REDLOCK_QUARANTINE", quarantine}};
    nodes.merge(fleet.up({"-n", "3", "--persistence", "none"}, nodes));
    const auto sick = exits_with(2, patiently({"doctor"}, nodes));
    CHECK(contains(sick.out, "appendonly is no"));
    CHECK(contains(sick.out, "has no marker") == (quarantine == "off"));
    if (quarantine == "on") continue;
    CHECK(redlock(exec_a({"--wait", "30s"}, {"echo", "done"}), nodes).out == "done\n");
  }
}

TEST_CASE("the directory is that of the user's state unless --dir names another") {
  const TemporaryDirectory place;
  for (const auto& [variable, directory] :
       {std::pair{"XDG_STATE_HOME", "redlock/fleet/default/fleet"},
        std::pair{"HOME", ".local/state/redlock/fleet/default/fleet"}}) {
    const Variables variables{{variable, place.path().string()}};
    REQUIRE(redlock({"fleet", "up", "-n", "1"}, variables).status == 0);
    CHECK(std::filesystem::exists(place.path() / directory));
    CHECK(redlock({"fleet", "down"}, variables).status == 0);
  }
}

TEST_CASE_FIXTURE(LocalFleet, "what cannot be done is said in a sentence") {
  const auto none = exits_with(125, run({"status"}));
  check_contains(none.err, {"no fleet is recorded in ", "start one with `redlock fleet up --dir "});
  CHECK(run({"kill", "1"}).status == 125);
  CHECK(run({"down"}).status == 0);
  CHECK(run({"env"}).status == 125);
  CHECK(run({"add"}).err == none.err);

  REQUIRE(run({"up", "-n", "2"}).status == 0);
  const auto unstarted = exits_with(125, run({"add"}, {{"REDLOCK_REDIS_SERVER", "/bin/false"}}));
  CHECK(unstarted.out.empty());
  CHECK(contains(unstarted.err, "node 3 ended while starting"));
  const auto beyond = exits_with(64, run({"kill", "3"}));
  CHECK(contains(beyond.err, "nodes 1 to 2"));
  CHECK(run({"kill", "0"}).status == 64);
  CHECK(run({"kill"}).status == 64);

  // Options that the fleet that runs does not have.
  const auto taken = std::to_string(cluster::FreePort::pick().number());
  for (const auto& options : {Arguments{"-n", "3"}, Arguments{"--nodes", "3"},
                              Arguments{"--persistence", "none"}, Arguments{"--port", taken}}) {
    const auto refused = exits_with(64, run(appended({"up"}, options)));
    CHECK(refused.out.empty());
    check_contains(refused.err, {"the fleet runs already, with ", "fleet down"});
  }
}

TEST_CASE_FIXTURE(LocalFleet, "up on a fleet that runs prints its line again, env nothing else") {
  const auto up = run({"up", "-n", "3"});
  REQUIRE(up.status == 0);
  for (const auto& arguments : {Arguments{"up"}, Arguments{"up", "-n", "3"}}) {
    const auto again = exits_with(0, run(arguments));
    CHECK(again.out == up.out);
    CHECK(contains(again.err, "3 nodes run already"));
  }
  CHECK(processes() == 3);
  const auto env = exits_with(0, run({"env"}));
  CHECK(env.out == up.out);
  CHECK(env.err.empty());

  REQUIRE(run({"kill", "2"}).status == 0);
  REQUIRE(run({"pause", "3"}).status == 0);
  const auto lame = exits_with(0, run({"up"}));
  CHECK(lame.out == up.out);
  check_contains(lame.err, {"node 2 has ended; redlock fleet restart 2 --dir ",
                            "node 3 is paused; redlock fleet resume 3 --dir "});

  // One whose nodes have all ended is replaced by a new one.
  REQUIRE(run({"kill", "1"}).status == 0);
  REQUIRE(run({"kill", "3"}).status == 0);
  const auto anew = exits_with(0, run({"up", "-n", "2"}));
  CHECK(anew.err.empty());
  CHECK(processes() == 2);
  // Nothing is left of the markers of three nodes.
  CHECK(patiently({"doctor"}, LocalFleet::up({})).status == 0);
}

TEST_CASE_FIXTURE(LocalFleet, "two that start one fleet at the same moment get the same one") {
  Running first(command({"up", "-n", "3"}));
  Running second(command({"up", "-n", "3"}));
  const auto one = first.wait();
  const auto other = second.wait();
  CHECK(one.status == 0);
  CHECK(other.status == 0);
  CHECK(one.out == other.out);
  CHECK(processes() == 3);
}

TEST_CASE("fleets of different names run side by side, and are listed") {
  const TemporaryDirectory place;
  Variables state{{"XDG_STATE_HOME", place.path().string()}};
  const auto fleet = [&](const Arguments& arguments) {
    return redlock(appended({"fleet"}, arguments), state);
  };
  const auto one = fleet({"up", "-n", "1"});
  const auto other = fleet({"up", "-n", "2", "--name", "other"});
  REQUIRE(one.status == 0);
  REQUIRE(other.status == 0);
  CHECK(fleet({"env"}).out == one.out);
  CHECK(fleet({"env", "--name", "other"}).out == other.out);
  CHECK(fleet({"kill", "2", "--name", "other"}).status == 0);
  const auto list = json::parse(fleet({"list", "-o", "json"}).out);
  CHECK(list["fleets"].size() == 2);
  check_members(list, {{"/fleets/0/name", "default"},
                       {"/fleets/1/name", "other"},
                       {"/fleets/1/nodes", 2},
                       {"/fleets/1/running", 1}});
  CHECK(contains(fleet({"list"}).out, "NAME"));

  const auto broken = place.path() / "redlock" / "fleet" / "broken";
  std::filesystem::create_directory(broken);
  std::ofstream(broken / "fleet") << "junk\n";
  const auto others = exits_with(0, fleet({"list"}));
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

TEST_CASE_FIXTURE(LocalFleet, "nodes get consecutive ports, or a sentence names the taken one") {
  // A program that takes one of these meanwhile is not ours; then the ports are others.
  int first = 0;
  Finished up;
  for (int i = 0; i < 20 && up.status != 0; ++i) {
    first = cluster::FreePort::pick().number();
    up = run({"up", "-n", "2", "--port", std::to_string(first)});
  }
  REQUIRE(up.status == 0);
  check_contains(up.out,
                 {fmt::format("127.0.0.1:{},", first), fmt::format("127.0.0.1:{}\n", first + 1)});
  CHECK(run({"up", "--port", std::to_string(first)}).out == up.out);

  const LocalFleet other;
  const auto refused =
      exits_with(125, other.run({"up", "-n", "2", "--port", std::to_string(first)}));
  CHECK(contains(refused.err, fmt::format("port {} of this machine is taken", first)));
  CHECK(occurrences(refused.err, "\n") == 1);
  CHECK(other.processes() == 0);
  CHECK(other.run({"up", "-n", "2", "--port", "65535"}).status == 125);
}

}  // namespace
}  // namespace redlock::testing
