// SPDX-License-Identifier: MIT
// redlock doctor and adopt: what they find on real nodes, and what they advise.
#include "cli_process.hpp"
#include "support/stub_server.hpp"

namespace redlock::testing {
namespace {

using Uris = std::vector<std::string>;

Finished ask(const Uris& uris, Arguments arguments) {
  arguments.insert(arguments.end(), {"--node-timeout", "10s"});
  auto finished = redlock(arguments, nodes_variable(uris));
  finished.out = unwrapped(finished.out);
  return finished;
}
Finished ask(const Fleet& fleet, const Arguments& arguments) {
  return ask(fleet.uris(), arguments);
}
/// With quarantine, as clients have it: without, what has a marker is refused for that.
Finished ask_as_a_client(const Fleet& fleet, Arguments arguments, const std::string& lease = "") {
  auto variables = nodes_variable(fleet.uris());
  variables["REDLOCK_QUARANTINE"] = "on";
  variables["REDLOCK_MAX_LEASE"] = lease;
  const Arguments patience{"--node-timeout", "10s"};
  arguments.insert(arguments.begin() + 1, patience.begin(), patience.end());
  return redlock(arguments, variables);
}
/// So that a test says which node it was that refused.
template <typename Nodes>
void adopt(const Nodes& nodes) {
  const auto adopted = ask(nodes, {"adopt"});
  CAPTURE(adopted.out);
  CAPTURE(adopted.err);
  REQUIRE(adopted.status == 0);
}
json examine(const Uris& uris) {
  return json::parse(ask(uris, {"doctor", "-o", "json"}).out);
}
json examine(const Fleet& fleet) {
  return examine(fleet.uris());
}

/// Whether a problem of this severity with these words is in the list.
bool has_problem(const json& problems, const std::string& severity, const std::string& words) {
  for (const auto& problem : problems) {
    if (problem["severity"] == severity && contains(problem["what"].get<std::string>(), words)) {
      return true;
    }
  }
  return false;
}

std::size_t problems_in(const json& examination) {
  auto count = examination["problems"].size();
  for (const auto& node : examination["nodes"]) count += node["problems"].size();
  return count;
}

/// Without slots a node of a Redis Cluster serves no key at all.
void give_all_slots(const Fleet& fleet, std::size_t node) {
  Arguments slots{"CLUSTER", "ADDSLOTS"};
  for (int slot = 0; slot < 16'384; ++slot) slots.push_back(std::to_string(slot));
  fleet.run(node, slots);
  REQUIRE(eventually([&] { return fleet.run(node, {"SET", "any", "thing"}) == "OK"; }));
}

TEST_CASE("a new set is not safe until it is adopted; then the doctor finds nothing") {
  const Fleet fleet({.nodes = 3, .persistence = Persistence::always});
  const auto before = ask(fleet, {"doctor"});
  CHECK(before.status == 2);
  CHECK(before.out.starts_with("unsafe: "));
  CHECK(contains(before.out, "3 of 3 nodes have no marker"));
  CHECK(contains(before.out, "redlock adopt"));

  const auto adopted = ask(fleet, {"adopt"});
  CHECK(adopted.status == 0);
  CHECK(occurrences(adopted.out, "written") == 3);

  const auto after = ask(fleet, {"doctor"});
  CHECK(after.status == 0);
  CHECK(after.out.starts_with("healthy: all 3 nodes vote"));
  const auto examination = examine(fleet);
  CHECK(problems_in(examination) == 0);
  CHECK(examination["verdict"] == "healthy");
  CHECK(examination["safe"] == true);
  CHECK(examination["quorum"] == 2);
}

TEST_CASE("the doctor shows what there is to know of a node") {
  const Fleet fleet({.nodes = 3, .persistence = Persistence::always});
  adopt(fleet);
  const auto examination = examine(fleet);
  for (std::size_t i = 0; i < 3; ++i) {
    const auto& node = examination["nodes"][i];
    CHECK(node["node"] == fleet.uri(i));
    CHECK(node["reachable"] == true);
    CHECK(node["round_trip_us"].get<int>() >= 0);
    CHECK(node["version"].get<std::string>().size() >= 5);
    CHECK(node["run_id"].get<std::string>().size() == 40);
    CHECK(node["role"] == "master");
    CHECK(node["append_only"] == true);
    CHECK(node["append_fsync"] == "always");
    CHECK(node["eviction"] == "noeviction");
    CHECK(node["uptime_s"].get<int>() >= 0);
    CHECK(node["clock_offset_us"].is_number());
    CHECK(node["marker"]["layout"] == "redlock-2");
    CHECK(node["marker"]["nodes"] == "3");
    CHECK(node["marker"]["max_lease_ms"] == "60000");
    CHECK(node["marker"]["id"].get<std::string>().size() == 32);
  }
  CHECK(examination["nodes"][0]["marker"]["id"] != examination["nodes"][1]["marker"]["id"]);
}

TEST_CASE("a minority that cannot be reached degrades the set, a majority makes it unsafe") {
  Fleet fleet({.nodes = 3, .persistence = Persistence::always});
  adopt(fleet);
  fleet.kill(1);
  const auto finished = ask(fleet, {"doctor"});
  CHECK(finished.status == 1);
  CHECK(finished.out.starts_with("degraded: "));
  CHECK(contains(finished.out, "connection_failed"));
  const auto examination = examine(fleet);
  CHECK(examination["verdict"] == "degraded");
  CHECK(examination["safe"] == true);
  CHECK(examination["nodes"][1]["reachable"] == false);
  CHECK(has_problem(examination["nodes"][1]["problems"], "warning", "cannot be examined"));
  CHECK(examination["problems"].empty());
  fleet.kill(2);
  CHECK(ask(fleet, {"doctor"}).status == 2);
  const auto without_quorum = examine(fleet);
  CHECK(without_quorum["verdict"] == "unsafe");
  CHECK(without_quorum["safe"] == false);
  CHECK(has_problem(without_quorum["problems"], "error", "only 1 of 3 nodes"));
}

TEST_CASE("what makes a node forget or evict locks is found") {
  const Fleet fleet({.nodes = 3,
                     .persistence = Persistence::always,
                     .node_settings = {{0, {"appendonly no"}},
                                       {1, {"appendfsync everysec"}},
                                       {2, {"maxmemory-policy allkeys-lru"}}}});
  adopt(fleet);
  const auto examination = examine(fleet);
  CHECK(has_problem(examination["nodes"][0]["problems"], "error", "appendonly"));
  CHECK(has_problem(examination["nodes"][1]["problems"], "warning", "everysec"));
  CHECK_MESSAGE(has_problem(examination["nodes"][2]["problems"], "error", "allkeys-lru"),
                examination.dump());
  fleet.run(2, {"CONFIG", "SET", "maxmemory", "0"});
  CHECK(has_problem(examine(fleet)["nodes"][2]["problems"], "warning", "allkeys-lru"));
}

TEST_CASE("a replica is no lock node, and one that was promoted is suspect") {
  const Fleet fleet({.nodes = 3, .persistence = Persistence::always});
  adopt(fleet);
  fleet.run(2, {"REPLICAOF", "127.0.0.1", std::to_string(fleet.port(0))});
  // Its data, too, is now that of node 0.
  REQUIRE(eventually([&] {
    return contains(fleet.run(2, {"INFO", "replication"}), "master_link_status:up");
  }));
  auto examination = examine(fleet);
  CHECK(examination["verdict"] == "degraded");
  CHECK(examination["nodes"][2]["role"] == "slave");
  CHECK(has_problem(examination["nodes"][2]["problems"], "warning", "replica"));
  CHECK(has_problem(examination["problems"], "warning", "same marker"));
  fleet.run(1, {"REPLICAOF", "127.0.0.1", std::to_string(fleet.port(0))});
  REQUIRE(eventually([&] {
    return has_problem(examine(fleet)["problems"], "error", "only 1 of 3 nodes can vote");
  }));
  fleet.run(2, {"REPLICAOF", "NO", "ONE"});
  examination = examine(fleet);
  CHECK(examination["nodes"][2]["promoted"] == true);
  CHECK(has_problem(examination["nodes"][2]["problems"], "error", "promoted"));
}

TEST_CASE("a node of a Redis Cluster is no lock node") {
  const Fleet fleet({.nodes = 3,
                     .persistence = Persistence::always,
                     .node_settings = {{1, {"cluster-enabled yes"}}}});
  // Without slots it serves no key at all; with all of them it looks like any other node.
  CHECK(has_problem(examine(fleet)["nodes"][1]["problems"], "warning", "Redis Cluster"));
  give_all_slots(fleet, 1);
  const auto node = examine(fleet)["nodes"][1];
  CHECK(node["cluster"] == true);
  CHECK(has_problem(node["problems"], "warning", "Redis Cluster"));
}

TEST_CASE("one server under two names is found") {
  const Fleet fleet({.nodes = 2, .persistence = Persistence::always});
  const auto finished =
      ask({fleet.uri(0), fleet.uri(1), "redis://localhost:" + std::to_string(fleet.port(1))},
          {"doctor"});
  CHECK(finished.status == 2);
  CHECK(contains(finished.out, "same server"));
}

TEST_CASE("a node that reports the run id of another is no second name of it") {
  const Fleet fleet({.nodes = 2, .persistence = Persistence::always});
  const std::string info = fleet.run(0, {"INFO", "server"});
  StubServer liar([&info](const RedisCommand& command) -> StubReply {
    return is(command, "INFO") ? bulk(info) : like_redis(command);
  });
  const Uris uris{liar.uri(), fleet.uri(0), fleet.uri(1)};
  CHECK_FALSE(contains(ask(uris, {"doctor"}).out, "same server"));
  CHECK_FALSE(contains(ask(uris, {"adopt"}).out, "same server"));
}

TEST_CASE("adopt leaves a list alone that mixes a node of another set with blank ones") {
  const Fleet fleet({.nodes = 3, .persistence = Persistence::always});
  adopt(Uris{fleet.uri(0)});
  const auto marker = fleet.run(0, {"HGETALL", "redlock:node"});

  for (const Arguments& arguments : {Arguments{"adopt"}, {"adopt", "--replaced", fleet.uri(1)}}) {
    const auto adopted = ask(fleet, arguments);
    CHECK(adopted.status == 1);
    CHECK(contains(adopted.out, fleet.uri(0) + "  disagrees"));
    CHECK(contains(adopted.out, "its marker says nodes 1, this client 3"));
    CHECK(occurrences(adopted.out, "  unconfirmed") == 2);
    CHECK(contains(adopted.out, "no quorum of the nodes is in one set; correct the list"));
    CHECK(fleet.run(0, {"HGETALL", "redlock:node"}) == marker);
    for (const std::size_t node : {1UL, 2UL}) {
      CHECK(fleet.run(node, {"EXISTS", "redlock:node"}) == "0");
    }
  }
}

TEST_CASE("adopt takes a node that does not answer for no blank one") {
  Fleet fleet({.nodes = 3, .persistence = Persistence::always});
  fleet.kill(0);  // it may be of another set
  const auto adopted = ask(fleet, {"adopt"});
  CHECK(adopted.status == 69);
  CHECK(occurrences(adopted.out, "  unconfirmed") == 2);
  CHECK(contains(adopted.out, "a new set is adopted when all its nodes can be asked"));
  for (const std::size_t node : {1UL, 2UL}) {
    CHECK(fleet.run(node, {"EXISTS", "redlock:node"}) == "0");
  }
}

TEST_CASE("markers of different sets are found") {
  const Fleet fleet({.nodes = 3, .persistence = Persistence::always});
  adopt(fleet);
  fleet.run(0, {"HSET", "redlock:node", "max_lease_ms", "90000"});
  const auto examination = examine(fleet);
  CHECK(examination["safe"] == false);
  CHECK(has_problem(examination["nodes"][0]["problems"], "warning", "max_lease_ms 90000"));
  CHECK(has_problem(examination["problems"], "error", "markers disagree"));
}

TEST_CASE("adopt enrols a blank node in a set that exists only if it is named as a replaced one") {
  Fleet fleet({.nodes = 3, .persistence = Persistence::always});
  const Fleet stranger({.nodes = 1, .persistence = Persistence::always});
  adopt(fleet);
  const Uris mistyped{fleet.uri(0), fleet.uri(1), stranger.uri(0)};
  const auto refused = ask(mistyped, {"adopt", "-o", "json"});
  CHECK(refused.status == 1);
  CHECK(json::parse(refused.out)["nodes"][2]["marker"] == "unconfirmed");
  CHECK(contains(refused.out, "redlock adopt --replaced NODE"));
  CHECK(stranger.run(0, {"EXISTS", "redlock:node"}) == "0");
  const auto unknown = ask(mistyped, {"adopt", "--replaced", fleet.uri(2)});
  CHECK(unknown.status == 64);
  CHECK(contains(unknown.err, fleet.uri(2) + " is not in the list of nodes"));

  fleet.restart(2, cluster::Data::empty);
  CHECK(ask(fleet, {"adopt"}).status == 1);
  const auto address = "127.0.0.1:" + std::to_string(fleet.port(2));
  const auto adopted = ask(fleet, {"adopt", "--replaced", address});
  CHECK(adopted.status == 0);
  CHECK(occurrences(adopted.out, "written") == 1);
  CHECK(ask(fleet, {"doctor"}).status == 0);
}

TEST_CASE(
    "what only looks takes the longest lease from the markers, and nothing is unsafe for it") {
  const Fleet fleet({.nodes = 3, .persistence = Persistence::always});
  REQUIRE(ask(fleet, {"adopt", "--max-lease", "2m"}).status == 0);
  for (const Arguments& arguments : {Arguments{"doctor"},
                                     {"status", "a"},
                                     {"waiters", "a"},
                                     {"list"},
                                     {"adopt"},
                                     {"doctor", "--max-lease", "2m"}}) {
    CAPTURE(arguments[0]);
    const auto finished = ask_as_a_client(fleet, arguments);
    CHECK(finished.status == 0);
    CHECK(finished.err.empty());
  }
  CHECK(problems_in(examine(fleet)) == 0);
}

TEST_CASE("another longest lease than the markers say is a configuration error with both values") {
  const Fleet fleet({.nodes = 3, .persistence = Persistence::always});
  REQUIRE(ask(fleet, {"adopt", "--max-lease", "2m"}).status == 0);
  for (const Arguments& arguments :
       {Arguments{"doctor"}, {"status", "a"}, {"waiters", "a"}, {"list"}, {"adopt"}}) {
    CAPTURE(arguments[0]);
    auto by_option = arguments;
    by_option.insert(by_option.end(), {"--max-lease", "1m"});
    for (const auto& finished :
         {ask_as_a_client(fleet, by_option), ask_as_a_client(fleet, arguments, "60s")}) {
      CHECK(finished.status == 78);
      CHECK(contains(finished.err, " is 1m, and the nodes' markers say 2m"));
      CHECK_FALSE(contains(finished.out + finished.err, "unsafe"));
      CHECK_FALSE(contains(finished.out + finished.err, "DEL "));
    }
  }
  for (const Arguments& arguments :
       {Arguments{"exec", "a", "--", "true"}, {"acquire", "a"}, {"acquire", "a", "--wait", "1h"}}) {
    const auto finished = ask_as_a_client(fleet, arguments);
    CHECK(finished.status == 78);
    CHECK(contains(finished.err, "its marker says max_lease_ms 120000, this client 60000"));
    CHECK_FALSE(contains(finished.err, "DEL "));
  }
  CHECK(ask_as_a_client(fleet, {"exec", "a", "--", "true"}, "2m").status == 0);
}

TEST_CASE("another number of nodes than the markers say is a configuration error with both") {
  const Fleet fleet({.nodes = 5, .persistence = Persistence::always});
  adopt(fleet);
  const Uris three{fleet.uri(0), fleet.uri(1), fleet.uri(2)};
  for (const Arguments& arguments :
       {Arguments{"doctor"}, {"status", "a"}, {"waiters", "a"}, {"list"}, {"adopt"}}) {
    CAPTURE(arguments[0]);
    const auto finished = ask(three, arguments);
    CHECK(finished.status == 78);
    CHECK(contains(finished.err,
                   "the list has 3 nodes, and the nodes' markers say that their set "
                   "has 5"));
  }
}

TEST_CASE("what is no lock node is not adopted, and is left without a marker") {
  const Fleet fleet({.nodes = 4,
                     .persistence = Persistence::always,
                     .node_settings = {{1, {"cluster-enabled yes"}}}});
  give_all_slots(fleet, 1);
  fleet.run(2, {"REPLICAOF", "127.0.0.1", "1"});
  const auto finished = ask({fleet.uri(0), fleet.uri(1), fleet.uri(2), fleet.uri(3),
                             "redis://localhost:" + std::to_string(fleet.port(3))},
                            {"adopt"});
  CAPTURE(finished.out);
  CHECK(finished.status == 78);
  CHECK(occurrences(finished.out, "  unconfirmed") == 1);
  CHECK(contains(finished.out, "too few nodes could be asked"));
  CHECK(contains(finished.out, "it belongs to a Redis Cluster"));
  CHECK(contains(finished.out, "it is a replica"));
  CHECK(contains(finished.out, "it is the same server as redis://localhost"));
  CHECK(contains(finished.out, "it is the same server as " + fleet.uri(3)));
  for (std::size_t node = 0; node < fleet.size(); ++node) {
    CHECK(fleet.run(node, {"KEYS", "redlock:node"}) == "(empty array)");
  }
}

TEST_CASE("adopting twice changes nothing, and a node that is gone exits 69") {
  Fleet fleet({.nodes = 3, .persistence = Persistence::always});
  adopt(fleet);
  const auto marker = fleet.run(0, {"HGETALL", "redlock:node"});
  const auto again = ask(fleet, {"adopt"});
  CHECK(again.status == 0);
  CHECK(occurrences(again.out, "already_there") == 3);
  CHECK(fleet.run(0, {"HGETALL", "redlock:node"}) == marker);

  fleet.kill(0);
  const auto finished = ask(fleet, {"adopt"});
  CHECK(finished.status == 69);
  CHECK(contains(finished.out, "failed"));
  CHECK(occurrences(finished.out, "already_there") == 2);
}

TEST_CASE("a node may take as long for its greeting as for its answers") {
  Fleet fleet({.nodes = 3, .persistence = Persistence::always});
  fleet.pause(2);
  Running adopting({"adopt", "--node-timeout", "20s"}, nodes_variable(fleet.uris()));
  // A connection has one second by default.
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  fleet.resume(2);
  const auto finished = adopting.wait();
  CAPTURE(finished.out);
  CHECK(finished.status == 0);
  CHECK(occurrences(finished.out, "written") == 3);
}

TEST_CASE("an even number of nodes, or too few, gets a hint and stays safe") {
  const Fleet fleet({.nodes = 4, .persistence = Persistence::always});
  adopt(fleet);
  const auto four = examine(fleet);
  CAPTURE(four.dump());
  CHECK(has_problem(four["problems"], "hint", "odd number"));
  CHECK(four["safe"] == true);
  const Fleet single({.nodes = 1, .persistence = Persistence::always});
  adopt(single);
  const auto one = ask(single, {"doctor"});
  CHECK(one.status == 0);
  CHECK(contains(one.out, "no node may fail"));
}

TEST_CASE("clocks that are apart are reported") {
  const Fleet fleet({.nodes = 2, .persistence = Persistence::always});
  StubServer ahead([](const RedisCommand& command) -> StubReply {
    if (is(command, "TIME")) return array({bulk("4000000000"), bulk("0")});
    if (is(command, "HGETALL")) return array({});
    return like_redis(command);
  });
  const auto examination = examine({fleet.uri(0), fleet.uri(1), ahead.uri()});
  CHECK(has_problem(examination["problems"], "warning", "clocks"));
  CHECK(examination["nodes"][2]["clock_offset_us"].get<std::int64_t>() > 1'000'000);
}

TEST_CASE("a clock that another client saw move is reported while clients that start heed that") {
  const Fleet fleet({.nodes = 3, .persistence = Persistence::always});
  adopt(fleet);
  fleet.run(1, {"SET", "redlock:node:clock", "", "PX", "59000"});
  const auto finished = ask_as_a_client(fleet, {"doctor", "-o", "json"});
  CHECK(finished.status == 1);
  const auto node = json::parse(finished.out)["nodes"][1];
  CHECK(has_problem(node["problems"], "warning", "a client has seen its clock move"));
}

TEST_CASE("a node that cannot write, is too old, or tells nothing is reported") {
  const auto with_info = [](const std::string& extra) {
    return StubServer([extra](const RedisCommand& command) -> StubReply {
      if (is(command, "HGETALL")) return array({});
      if (is(command, "INFO")) {
        return bulk("redis_version:6.0.16\r\nrun_id:" + std::string(40, 'a') +
                    "\r\nrole:master\r\naof_enabled:1\r\nmaxmemory_policy:noeviction\r\n" + extra);
      }
      return like_redis(command);
    });
  };
  const auto old = with_info("aof_last_write_status:err\r\n");
  StubServer silent([](const RedisCommand& command) -> StubReply {
    if (is(command, "HGETALL")) return array({});
    if (is(command, "INFO") || is(command, "CONFIG")) {
      return error("NOPERM this user has no permissions to run this command");
    }
    return like_redis(command);
  });
  const auto examination = examine({old.uri(), silent.uri()});
  const auto& first = examination["nodes"][0]["problems"];
  CHECK(has_problem(first, "warning", "append-only file"));
  CHECK(has_problem(first, "warning", "6.0.16 is too old"));
  CHECK(has_problem(examination["nodes"][1]["problems"], "error", "may not read role"));
}

TEST_CASE("a set whose user may not look at it is not known to be safe") {
  const Fleet fleet({.nodes = 2,
                     .persistence = Persistence::always,
                     .settings = {"user blind on >word ~* &* +@all -info -config -time"}});
  adopt(fleet);
  REQUIRE(ask(fleet, {"doctor"}).status == 0);
  // One of them twice, which cannot be seen without INFO.
  Uris uris;
  for (const auto& host : {"127.0.0.1", "localhost"}) {
    uris.push_back("redis://blind:word@" + std::string(host) + ":" + std::to_string(fleet.port(0)));
  }
  const auto finished = ask(uris, {"doctor"});
  CHECK(finished.status == 2);
  CHECK(contains(finished.out, "may not read role, run id, appendonly, maxmemory-policy"));
  CHECK(contains(finished.out, "its clock cannot be read"));
}

TEST_CASE("a set that grants no lock is not safe, and the doctor says what refuses it") {
  const Fleet fleet({.nodes = 3,
                     .persistence = Persistence::always,
                     .settings = {"user no-digest on >word ~* &* +@all -evalsha",
                                  "user no-text on >word ~* &* +@all -eval",
                                  "user no-fence on >word ~redlock:lock:* ~redlock:node &* +@all",
                                  "user no-release on >word ~* &* +@all -del"}});
  adopt(fleet);
  for (const auto* user : {"no-digest", "no-text", "no-fence", "no-release"}) {
    CAPTURE(user);
    Uris uris;
    for (std::size_t i = 0; i < 3; ++i) {
      uris.push_back("redis://" + std::string(user) +
                     ":word@127.0.0.1:" + std::to_string(fleet.port(i)));
    }
    const auto finished = ask(uris, {"doctor"});
    CAPTURE(finished.out);
    CHECK(finished.status == 2);
    CHECK(contains(finished.out, "may not take, hold and give back"));
    CHECK(contains(finished.out, "only 0 of 3 nodes can vote"));
  }
  for (std::size_t i = 0; i < 3; ++i) {
    fleet.run(i, {"DEL", "redlock:lock:{redlock-doctor}"});
    fleet.run(i, {"CONFIG", "SET", "min-replicas-to-write", "1"});
  }
  const auto examination = examine(fleet);
  CHECK(examination["safe"] == false);
  CHECK(has_problem(examination["nodes"][2]["problems"], "warning", "min-replicas-to-write 0"));
  CHECK(has_problem(examination["problems"], "error", "only 0 of 3 nodes can vote"));
}

TEST_CASE("the doctor leaves no lock behind") {
  const Fleet fleet({.nodes = 1, .persistence = Persistence::always});
  adopt(fleet);
  CHECK(ask(fleet, {"doctor"}).status == 0);
  CHECK(fleet.run(0, {"EXISTS", "redlock:lock:{redlock-doctor}"}) == "0");
}

TEST_CASE("a node that answers, but not as it should, gets advice that fits") {
  const auto but = [](const std::string& name, const std::string& reply) {
    return StubServer([name, reply](const RedisCommand& command) -> StubReply {
      if (is(command, name)) return error(reply);
      if (is(command, "HGETALL")) return array({});
      return like_redis(command);
    });
  };
  const auto full = but("PING", "MISCONF Errors writing to the AOF file: No space left on device");
  const auto stuck = but("PING", "BUSY Redis is busy running a script");
  const auto foreign = but("HGETALL", "WRONGTYPE Operation against a key holding the wrong kind");
  const auto examination = examine({full.uri(), stuck.uri(), foreign.uri()});
  const auto& nodes = examination["nodes"];
  CHECK(nodes[0]["reachable"] == true);
  CHECK(nodes[0]["role"] == "master");
  CHECK(has_problem(nodes[1]["problems"], "warning", "KILL, and find its sender); then"));
  CHECK(has_problem(nodes[2]["problems"], "warning", "no marker stands in its place"));
  CHECK(has_problem(nodes[2]["problems"], "warning",
                    "delete it); then run `redlock adopt --replaced NODE`"));
}

TEST_CASE("a renamed command is not taken for a right that is missing") {
  const Fleet fleet({.nodes = 3,
                     .node_settings = {{0, {"rename-command CONFIG it-is-gone"}},
                                       {1, {"rename-command HSET it-is-gone"}}}});
  const auto examination = examine(fleet);
  CAPTURE(examination.dump());
  CHECK_FALSE(contains(examination.dump(), "ermit"));
  CHECK(has_problem(examination["nodes"][1]["problems"], "warning",
                    "it lacks a command that a lock needs ("));
  for (const auto& node : examination["nodes"]) CHECK(node["missing_rights"].empty());
}

TEST_CASE("a wrong password is told apart, and never shown") {
  const Fleet fleet({.nodes = 1, .password = "right"});
  const auto finished =
      ask(Uris{"redis://:wr0ng-word@127.0.0.1:" + std::to_string(fleet.port(0))}, {"doctor"});
  CHECK(finished.status == 2);
  CHECK(contains(finished.out, "refuses the user or password"));
  CHECK(contains(finished.out, "correct the URI or the password file"));
  CHECK_FALSE(contains(finished.out + finished.err, "wr0ng-word"));
}

}  // namespace
}  // namespace redlock::testing
