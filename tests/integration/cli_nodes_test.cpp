// SPDX-License-Identifier: MIT
// redlock doctor and adopt: what they find on real nodes, and what they advise. And what they and
// status say of nodes that may have forgotten locks: why one does not vote yet, and when it does.
#include "cli_process.hpp"
#include "support/stub_server.hpp"

namespace redlock::testing {
namespace {

using Uris = std::vector<std::string>;

// The longest lease of 60 s, the drift allowance of 1 %, 2 ms and a second.
constexpr int whole_quarantine_s = 62;

Finished ask(const Uris& uris, const Arguments& arguments, Variables variables = {}) {
  variables.merge(nodes_variable(uris));
  auto finished = redlock(patient(arguments), variables);
  finished.out = unwrapped(finished.out);
  return finished;
}
Finished ask(const Fleet& fleet, const Arguments& arguments, const Variables& variables = {}) {
  return ask(fleet.uris(), arguments, variables);
}
json examine(const Uris& uris) {
  return json::parse(ask(uris, {"doctor", "-o", "json"}).out);
}
json examine(const Fleet& fleet, const Variables& variables = {}) {
  return in_json(fleet, {"doctor"}, variables);
}

struct NewSet {
  Fleet fleet{{.nodes = 3, .persistence = Persistence::always}};
};
struct AdoptedSet {
  Fleet fleet{{.nodes = 3, .persistence = Persistence::always, .adopted = true}};
};

/// Whether a problem of this severity with these words is in the list.
bool has_problem(const json& problems, const std::string& severity, const std::string& words) {
  return std::ranges::any_of(problems, [&](const json& problem) {
    return problem["severity"] == severity && contains(problem["what"].get<std::string>(), words);
  });
}

std::size_t problems_in(const json& examination) {
  auto count = examination["problems"].size();
  for (const auto& node : examination["nodes"]) count += node["problems"].size();
  return count;
}

bool has_marker(const Fleet& fleet, std::size_t node) {
  return fleet.run(node, {"EXISTS", "redlock:node"}) == "1";
}

unsigned long epoch_on(const Fleet& fleet, std::size_t node) {
  return std::stoul(fleet.run(node, {"HGET", "redlock:node", "epoch"}));
}

TEST_CASE_FIXTURE(NewSet, "a new set is not safe until adopted; then the doctor is content") {
  const auto before = exits_with(2, ask(fleet, {"doctor"}));
  CHECK(before.out.starts_with("unsafe: "));
  check_contains(before.out, {"3 of 3 nodes have no marker", "redlock adopt"});

  const auto adopted = exits_with(0, ask(fleet, {"adopt"}));
  CHECK(occurrences(adopted.out, "written") == 3);

  const auto after = exits_with(0, ask(fleet, {"doctor"}));
  CHECK(after.out.starts_with("healthy: all 3 nodes vote"));
  const auto examination = examine(fleet);
  CHECK(problems_in(examination) == 0);
  check_members(examination, {{"/verdict", "healthy"}, {"/safe", true}, {"/quorum", 2}});
  // The lock that it takes to try whether it may.
  CHECK(fleet.run(0, {"EXISTS", "redlock:lock:{redlock-doctor}"}) == "0");

  const auto marker = fleet.run(0, {"HGETALL", "redlock:node"});
  const auto again = exits_with(0, ask(fleet, {"adopt"}));
  CHECK(occurrences(again.out, "already_there") == 3);
  CHECK(fleet.run(0, {"HGETALL", "redlock:node"}) == marker);

  fleet.kill(0);
  const auto with_one_gone = exits_with(69, ask(fleet, {"adopt"}));
  CHECK(contains(with_one_gone.out, "failed"));
  CHECK(occurrences(with_one_gone.out, "already_there") == 2);
}

TEST_CASE_FIXTURE(NewSet, "the doctor shows what there is to know of a node") {
  REQUIRE(ask(fleet, {"adopt"}).status == 0);
  const auto nodes = examine(fleet)["nodes"];
  for (std::size_t i = 0; i < 3; ++i) {
    check_members(nodes[i], {{"/node", fleet.uri(i)},
                             {"/answered", true},
                             {"/role", "master"},
                             {"/append_only", true},
                             {"/append_fsync", "always"},
                             {"/eviction", "noeviction"},
                             {"/marker/layout", "redlock-3"},
                             {"/marker/nodes", "3"},
                             {"/marker/max_lease_ms", "60000"}});
    CHECK(nodes[i]["round_trip_us"].get<int>() >= 0);
    CHECK(nodes[i]["version"].get<std::string>().size() >= 5);
    CHECK(nodes[i]["run_id"].get<std::string>().size() == 40);
    CHECK(nodes[i]["uptime_s"].get<int>() >= 0);
    CHECK(nodes[i]["clock_offset_us"].is_number());
    CHECK(nodes[i]["marker"]["id"].get<std::string>().size() == 32);
  }
  CHECK(nodes[0]["marker"]["id"] != nodes[1]["marker"]["id"]);
}

TEST_CASE_FIXTURE(AdoptedSet, "nodes out of reach degrade the set, a majority makes it unsafe") {
  fleet.kill(1);
  const auto finished = exits_with(1, ask(fleet, {"doctor"}));
  CHECK(finished.out.starts_with("degraded: "));
  CHECK(contains(finished.out, "connection_failed"));
  const auto examination = examine(fleet);
  check_members(examination,
                {{"/verdict", "degraded"}, {"/safe", true}, {"/nodes/1/answered", false}});
  CHECK(has_problem(examination["nodes"][1]["problems"], "warning", "cannot be examined"));
  CHECK(examination["problems"].empty());
  fleet.kill(2);
  CHECK(ask(fleet, {"doctor"}).status == 2);
  const auto without_quorum = examine(fleet);
  check_members(without_quorum, {{"/verdict", "unsafe"}, {"/safe", false}});
  CHECK(has_problem(without_quorum["problems"], "error", "only 1 of 3 nodes"));
}

TEST_CASE("one node that lost its data degrades the set while it waits, three make it unsafe") {
  Fleet fleet({.nodes = 5, .persistence = Persistence::always, .adopted = true});
  REQUIRE(ask(fleet, {"doctor"}, with_quarantine).status == 0);
  fleet.restart(4, cluster::Data::empty);
  const auto one = exits_with(1, ask(fleet, {"doctor"}, with_quarantine));
  CHECK(one.out.starts_with("degraded: "));
  CHECK(contains(one.out, "has no marker"));
  fleet.restart(3, cluster::Data::empty);
  CHECK(ask(fleet, {"doctor"}, with_quarantine).status == 1);
  fleet.restart(2, cluster::Data::empty);
  const auto three = exits_with(2, ask(fleet, {"doctor"}, with_quarantine));
  CHECK(contains(three.out, "3 of 5 nodes have no marker"));
}

TEST_CASE("what makes a node forget or evict locks is found") {
  const Fleet fleet({.nodes = 3,
                     .persistence = Persistence::always,
                     .adopted = true,
                     .node_settings = {{0, {"appendonly no"}},
                                       {1, {"appendfsync everysec"}},
                                       {2, {"maxmemory-policy allkeys-lru"}}}});
  const auto nodes = examine(fleet)["nodes"];
  CHECK(has_problem(nodes[0]["problems"], "error", "appendonly"));
  CHECK(has_problem(nodes[1]["problems"], "warning", "everysec"));
  CHECK_MESSAGE(has_problem(nodes[2]["problems"], "error", "allkeys-lru"), nodes.dump());
  fleet.run(2, {"CONFIG", "SET", "maxmemory", "0"});
  CHECK(has_problem(examine(fleet)["nodes"][2]["problems"], "warning", "allkeys-lru"));
}

TEST_CASE_FIXTURE(AdoptedSet, "a replica is no lock node, and one that was promoted is suspect") {
  REQUIRE(soon_replicates(fleet, 2, fleet.port(0)));
  auto examination = examine(fleet);
  check_members(examination, {{"/verdict", "degraded"}, {"/nodes/2/role", "slave"}});
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

TEST_CASE_FIXTURE(NewSet, "a promoted replica is safe in quarantine, and votes once adopted") {
  const Fleet former({.nodes = 1, .persistence = Persistence::always});
  REQUIRE(soon_replicates(fleet, 2, former.port(0)));
  fleet.run(2, {"REPLICAOF", "NO", "ONE"});

  auto node = examine(fleet, with_quarantine)["nodes"][2];
  check_members(node, {{"/promoted", true}, {"/vouched", false}, {"/quarantine/votes_in_s", 0}});
  CHECK(has_problem(node["problems"], "warning", "has been promoted"));
  CHECK_FALSE(has_problem(node["problems"], "error", "has been promoted"));
  const auto status = in_json(fleet, {"status", "a"}, with_quarantine)["nodes"][2];
  for (const auto& report : {node, status}) {
    CHECK(contains(report["quarantine"]["why"].get<std::string>(), "it has no marker"));
  }

  REQUIRE(ask(fleet, {"adopt"}, with_quarantine).status == 0);
  check_members(examine(fleet, with_quarantine), {{"/safe", true},
                                                  {"/nodes/2/vouched", true},
                                                  {"/nodes/2/quarantine", nullptr},
                                                  {"/nodes/2/problems", json::array()}});
}

TEST_CASE_FIXTURE(AdoptedSet, "status and doctor say how long an empty member waits for its vote") {
  for (const std::size_t node : {1U, 2U}) fleet.restart(node, cluster::Data::empty);
  const auto status = in_json(fleet, {"status", "a"}, with_quarantine);
  const auto examination = examine(fleet, with_quarantine);
  for (const std::size_t node : {1U, 2U}) {
    for (const auto& report : {status["nodes"][node], examination["nodes"][node]}) {
      CHECK(contains(report["quarantine"]["why"].get<std::string>(),
                     "s; run redlock adopt if the set is new, with --replaced NODE if this "));
      // Status counts from when its client first saw the node, the doctor from now.
      CHECK(report["quarantine"]["votes_in_s"] <= whole_quarantine_s);
      CHECK(report["quarantine"]["votes_in_s"] > 0);
    }
    CHECK(examination["nodes"][node]["quarantine"]["votes_in_s"] == whole_quarantine_s);
  }
  CHECK(
      has_problem(examination["nodes"][1]["problems"], "warning", "starts now, it votes in 62 s"));
  CHECK(has_problem(examination["problems"], "warning", "takes its first lock in 62 s"));
  CHECK(occurrences(ask(fleet, {"doctor"}, with_quarantine).out, "votes in 62s") == 2);
  const auto table = ask(fleet, {"status", "a"}, with_quarantine).out;
  CHECK(occurrences(table, "quarantined, votes in ") == 2);
}

TEST_CASE("a node with a marker that may have forgotten waits for that long less its uptime") {
  const Fleet fleet({.nodes = 3,
                     .persistence = Persistence::always,
                     .adopted = true,
                     .node_settings = {{1, {"appendfsync everysec"}}}});
  json examination;
  REQUIRE(eventually([&] {
    examination = examine(fleet, with_quarantine);
    return examination["nodes"][1]["uptime_s"] > 0;
  }));
  const auto& node = examination["nodes"][1];
  CHECK(node["quarantine"]["votes_in_s"] == whole_quarantine_s - node["uptime_s"].get<int>());
  CHECK(has_problem(node["problems"], "warning", "it was restarted and may have forgotten"));
  // The other two are a quorum.
  check_members(examination, {{"/nodes/0/quarantine", nullptr},
                              {"/problems", json::array()},
                              {"/verdict", "degraded"},
                              {"/safe", true}});
  const auto nodes = in_json(fleet, {"status", "a"}, with_quarantine)["nodes"];
  CHECK(nodes[1]["quarantine"]["votes_in_s"] < whole_quarantine_s);
  CHECK(contains(nodes[1]["quarantine"]["why"].get<std::string>(), "it was restarted"));
  CHECK(nodes[0]["quarantine"].is_null());
}

TEST_CASE("doctor says when the first lock can be taken, if one node votes at once and two wait") {
  const Fleet fleet(
      {.nodes = 3,
       .persistence = Persistence::always,
       .adopted = true,
       .node_settings = {{1, {"appendfsync everysec"}}, {2, {"appendfsync everysec"}}}});
  const auto examination = examine(fleet, with_quarantine);
  CHECK(examination["nodes"][0]["quarantine"] == nullptr);
  CHECK(has_problem(examination["problems"], "warning", "takes its first lock in "));
}

TEST_CASE("what is no lock node is found, not adopted, and left without a marker") {
  const Fleet fleet({.nodes = 4,
                     .persistence = Persistence::always,
                     .node_settings = {{1, {"cluster-enabled yes"}}}});
  // Without slots it serves no key at all; with all of them it looks like any other node.
  CHECK(has_problem(examine(fleet)["nodes"][1]["problems"], "warning", "Redis Cluster"));
  REQUIRE(soon_has_all_slots(fleet, 1));
  fleet.run(2, {"REPLICAOF", "127.0.0.1", "1"});
  auto uris = fleet.uris();
  uris.push_back("redis://localhost:" + std::to_string(fleet.port(3)));

  const auto examination = examine(uris);
  CHECK(examination["nodes"][1]["cluster"] == true);
  CHECK(has_problem(examination["nodes"][1]["problems"], "warning", "Redis Cluster"));
  CHECK(ask({uris[0], uris[3], uris[4]}, {"doctor"}).status == 2);
  CHECK(contains(ask({uris[0], uris[3], uris[4]}, {"doctor"}).out, "same server"));

  const auto adopted = exits_with(78, ask(uris, {"adopt"}));
  CHECK(occurrences(adopted.out, "  unconfirmed") == 1);
  check_contains(adopted.out, {"when all its nodes can be asked", "it belongs to a Redis Cluster",
                               "it is a replica", "it is the same server as redis://localhost",
                               "it is the same server as " + fleet.uri(3)});
  for (std::size_t node = 0; node < fleet.size(); ++node) {
    CHECK(fleet.run(node, {"KEYS", "redlock:node"}) == "(empty array)");
  }
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

TEST_CASE_FIXTURE(NewSet, "adopt leaves alone a list of blank nodes and one of another set") {
  REQUIRE(ask(Uris{fleet.uri(0)}, {"adopt"}).status == 0);
  const auto marker = fleet.run(0, {"HGETALL", "redlock:node"});

  for (const Arguments& arguments : {Arguments{"adopt"}, {"adopt", "--replaced", fleet.uri(1)}}) {
    const auto adopted = exits_with(1, ask(fleet, arguments));
    check_contains(adopted.out,
                   {fleet.uri(0) + "  disagrees", "its marker says nodes 1, this client 3"});
    CHECK(occurrences(adopted.out, "  unconfirmed") == 2);
    CHECK(contains(adopted.out, "no quorum of the nodes is in one set; correct the list"));
    CHECK(fleet.run(0, {"HGETALL", "redlock:node"}) == marker);
    for (const std::size_t node : {1UL, 2UL}) CHECK_FALSE(has_marker(fleet, node));
  }
}

TEST_CASE_FIXTURE(NewSet, "adopt takes a node that does not answer for no blank one") {
  fleet.kill(0);  // it may be of another set
  const auto adopted = exits_with(69, ask(fleet, {"adopt"}));
  CHECK(occurrences(adopted.out, "  unconfirmed") == 2);
  CHECK(contains(adopted.out, "a new set is adopted when all its nodes can be asked"));
  for (const std::size_t node : {1UL, 2UL}) CHECK_FALSE(has_marker(fleet, node));
}

TEST_CASE_FIXTURE(AdoptedSet, "adopt enrols a blank node in a set only if named as replaced") {
  const Fleet stranger({.nodes = 1, .persistence = Persistence::always});
  const Uris mistyped{fleet.uri(0), fleet.uri(1), stranger.uri(0)};
  const auto refused = exits_with(1, ask(mistyped, {"adopt", "-o", "json"}));
  CHECK(json::parse(refused.out)["nodes"][2]["marker"] == "unconfirmed");
  CHECK(contains(refused.out, "redlock set replace OLD NEW"));
  CHECK_FALSE(has_marker(stranger, 0));
  const auto unknown = exits_with(64, ask(mistyped, {"adopt", "--replaced", fleet.uri(2)}));
  CHECK(contains(unknown.err, fleet.uri(2) + " is not in the list of nodes"));

  fleet.restart(2, cluster::Data::empty);
  CHECK(ask(fleet, {"adopt"}).status == 1);
  const auto address = "127.0.0.1:" + std::to_string(fleet.port(2));
  const auto adopted = exits_with(0, ask(fleet, {"adopt", "--replaced", address}));
  CHECK(occurrences(adopted.out, "written") == 1);
  CHECK(ask(fleet, {"doctor"}).status == 0);
  const auto nowhere = exits_with(1, ask(mistyped, {"adopt", "--replaced", stranger.uri(0)}));
  CHECK(contains(nowhere.out, "it stands at no member's address"));
  CHECK_FALSE(has_marker(stranger, 0));
}

TEST_CASE_FIXTURE(AdoptedSet, "a member's place is given to another node, and only that place") {
  run_on_all(fleet, {"HSET", "redlock:node", "max_lease_ms", "1500"});
  const Fleet spares({.nodes = 2, .persistence = Persistence::always});
  const Arguments replace{"set", "replace", fleet.uri(2), spares.uri(0), "--over"};
  const auto too_early = exits_with(64, ask(fleet, replace));
  CHECK(contains(too_early.err, fleet.uri(2) + " still answers as a member of a set"));
  fleet.kill(2);
  const auto neither = exits_with(64, ask(fleet, {"set", "replace", "redis://x:1", "redis://y:1"}));
  CHECK(contains(neither.err, "redis://x:1 is no member of the set, whose"));
  const Uris list{fleet.uri(0), fleet.uri(1), spares.uri(0)};
  const auto no_member = ask(list, {"set", "replace", "redis://x:1", spares.uri(0)});
  CHECK(contains(exits_with(64, no_member).err, "redis://x:1 is no member of the set, whose"));

  const auto replaced = exits_with(0, ask(fleet, replace));
  CHECK(occurrences(replaced.out, "written") == 1);
  CHECK(ask(list, {"doctor"}).status == 0);
  for (const std::size_t node : {0U, 1U}) {
    CHECK(epoch_on(fleet, node) > 1);
  }
  CHECK(exits_with(0, ask(list, replace)).out.find("written") == std::string::npos);  // once more
  // What it granted since is no lease of the one that was there before.
  spares.run(0, {"DEL", "redlock:node"});
  CHECK(
      contains(exits_with(0, ask(list, replace, with_quarantine)).err, " is a member, and grants"));
  // Another operator meant the same member.
  const auto late = ask(fleet, {"set", "replace", fleet.uri(2), spares.uri(1)});
  CHECK(contains(exits_with(64, late).err, fleet.uri(2) + " is no member of the set, whose"));
  CHECK_FALSE(has_marker(spares, 1));
  fleet.restart(2);
  const auto old_list = exits_with(1, ask(fleet, {"doctor"}));
  CHECK(contains(old_list.out, "it is no member of its set any more, whose members are "));
  CHECK(contains(exits_with(1, ask(fleet, {"adopt"})).out, "another node has taken its place"));
}

TEST_CASE_FIXTURE(AdoptedSet, "a replacement that would not be followed or finished is not begun") {
  const Fleet spare({.nodes = 1, .persistence = Persistence::always});
  const Arguments by_socket{"set", "replace", fleet.uri(2), "unix:///nowhere/redis.sock"};
  CHECK(contains(exits_with(64, ask(fleet, by_socket)).err,
                 "reached by unix, and programs that run"));

  Uris list;
  const auto admit = [&list](const Fleet& of, std::size_t node) {
    of.run(node, {"ACL", "SETUSER", "program", "on", ">secret", "~redlock:*", "&redlock:wake:*",
                  "+@all", "-scan"});
    list.push_back("redis://program:secret@127.0.0.1:" + std::to_string(of.port(node)));
  };
  for (std::size_t node = 0; node < fleet.size(); ++node) admit(fleet, node);
  admit(spare, 0);
  list.pop_back();
  const auto refused = ask(list, {"set", "replace", fleet.uri(2), spare.uri(0)});
  CHECK(contains(exits_with(69, refused).err, "no marker was changed: the fences of "));
  CHECK(epoch_on(fleet, 0) == 1);
}

TEST_CASE_FIXTURE(AdoptedSet, "a replacement reads the longest lease in the markers") {
  run_on_all(fleet, {"HSET", "redlock:node", "max_lease_ms", "1500"});
  const Fleet spare({.nodes = 1, .persistence = Persistence::always});
  Arguments replace{"set", "replace", fleet.uri(2), spare.uri(0)};
  SUBCASE("") {}
  SUBCASE("also if programs are to be given a longer one") {
    replace.insert(replace.end(), {"--max-lease", "2m"});
  }
  const auto done = exits_with(0, ask(fleet, replace, with_quarantine));
  CHECK(occurrences(done.out, "already_there") == 3);
}

TEST_CASE_FIXTURE(AdoptedSet, "a member that runs is replaced when its leases are over; and back") {
  run_on_all(fleet, {"HSET", "redlock:node", "max_lease_ms", "1500"});
  const Fleet spare({.nodes = 1, .persistence = Persistence::always});
  const Uris seed{fleet.uri(0)};
  const auto waits = [&](const std::string& from, const std::string& to) {
    const Arguments replace{"set", "replace", from, to};
    const auto done = exits_with(0, ask(seed, replace, with_quarantine));
    CHECK(contains(done.err, to + " is a member, and grants locks in about "));
    CHECK(occurrences(done.out, "already_there") == 3);
    CHECK(ask(seed, {"doctor"}, with_quarantine).status == 0);
  };
  waits(fleet.uri(2), spare.uri(0));
  CHECK(contains(ask(spare, {"set", "show"}, with_quarantine).out, spare.uri(0)));
  CHECK(epoch_on(spare, 0) == epoch_on(fleet, 0));
  waits(spare.uri(0), fleet.uri(2));  // it was left as it was, with its marker
}

TEST_CASE("a replacement goes on when a member is back that shows others") {
  const Fleet fleet({.nodes = 5, .persistence = Persistence::always, .adopted = true});
  run_on_all(fleet, {"HSET", "redlock:node", "max_lease_ms", "1500"});
  const Fleet spare({.nodes = 1, .persistence = Persistence::always});
  const auto former = fleet.run(1, {"HGET", "redlock:node", "members"});
  Variables variables = with_quarantine;
  variables.merge(variables_of(fleet));
  Running replacement(patient({"set", "replace", fleet.uri(2), spare.uri(0)}), variables);
  REQUIRE(replacement.await_err("grants locks in about"));
  fleet.run(1, {"HSET", "redlock:node", "epoch", "9000000", "members", former});
  CHECK(replacement.wait().status == 0);
  CHECK(has_marker(spare, 0));
  CHECK(epoch_on(fleet, 1) == epoch_on(fleet, 0));
  CHECK(epoch_on(fleet, 0) > 9000000);
}

TEST_CASE_FIXTURE(AdoptedSet, "who waits for a new member vouches for no other one") {
  const Fleet spare({.nodes = 1, .persistence = Persistence::always});
  const auto id = fleet.run(1, {"HGET", "redlock:node", "id"});
  REQUIRE(soon_replicates(fleet, 1, fleet.port(0)));
  fleet.run(1, {"REPLICAOF", "NO", "ONE"});
  fleet.run(1, {"HSET", "redlock:node", "id", id});
  Variables variables = with_quarantine;
  variables.merge(variables_of(fleet));
  Running replacement(patient({"set", "replace", fleet.uri(2), spare.uri(0)}), variables);
  REQUIRE(replacement.await_err("grants locks in about"));
  std::this_thread::sleep_for(3s);  // it looks each second
  CHECK(fleet.run(1, {"HEXISTS", "redlock:node", "vouched"}) == "0");
}

TEST_CASE_FIXTURE(AdoptedSet,
                  "a former member is not put back while later ones may have a quorum") {
  const Fleet spare({.nodes = 1, .persistence = Persistence::always});
  fleet.pause(2);  // it is not told, and goes on as a member of the former ones
  CHECK(ask(fleet, {"set", "replace", fleet.uri(2), spare.uri(0), "--over"}).status == 0);
  fleet.resume(2);
  fleet.pause(1);
  const Arguments back{"set", "replace", "--node-timeout", "2s", spare.uri(0), fleet.uri(2)};
  CHECK(ask(fleet, back).status != 0);
  CHECK(epoch_on(fleet, 2) == 1);
  CHECK(epoch_on(fleet, 0) > 1);
  CHECK_FALSE(contains(fleet.run(0, {"HGET", "redlock:node", "members"}), fleet.uri(2)));
  fleet.resume(1);
}

TEST_CASE_FIXTURE(AdoptedSet, "a member that a change did not reach is told by adopt") {
  const Fleet spares({.nodes = 2, .persistence = Persistence::always});
  const auto former = fleet.run(1, {"HGET", "redlock:node", "members"});
  fleet.kill(2);
  exits_with(0, ask(fleet, {"set", "replace", fleet.uri(2), spares.uri(0), "--over"}));
  fleet.run(1, {"HSET", "redlock:node", "epoch", "1", "members", former});  // it was not told
  const Uris list{fleet.uri(0), fleet.uri(1), spares.uri(0)};
  CHECK(contains(ask(list, {"doctor"}).out, "it was not told of a change; run `redlock adopt`"));
  for (const Arguments& change : std::initializer_list<Arguments>{{"set", "add", spares.uri(1)},
                                                                  {"set", "max-lease", "2m"}}) {
    const auto refused = exits_with(69, ask(list, change));
    CHECK(contains(refused.err, fleet.uri(1) + ": it shows former members, and was not told"));
  }
  exits_with(0, ask(list, {"adopt"}));
  CHECK(epoch_on(fleet, 1) == epoch_on(fleet, 0));
  CHECK(ask(list, {"doctor"}).status == 0);
  // One that was interrupted before may have told it a later epoch.
  fleet.run(1, {"HSET", "redlock:node", "epoch", "9000000", "members", former});
  CHECK(contains(exits_with(1, ask(list, {"adopt"})).out, "another one was made since"));
  exits_with(0, ask(list, {"set", "replace", fleet.uri(2), spares.uri(0)}));
  CHECK(epoch_on(fleet, 1) == epoch_on(fleet, 0));
  exits_with(0, ask(list, {"set", "add", spares.uri(1)}));
}

TEST_CASE_FIXTURE(AdoptedSet, "a list from before a replacement makes no second set") {
  Fleet spares({.nodes = 2, .persistence = Persistence::always});
  fleet.kill(2);
  exits_with(0, ask(fleet, {"set", "replace", fleet.uri(2), spares.uri(0), "--over"}));
  fleet.restart(2);
  fleet.kill(1);
  const auto epoch = epoch_on(fleet, 0);
  const Arguments another{"set", "replace", fleet.uri(1), spares.uri(1), "--over"};
  SUBCASE("if a quorum of the members of today answers") {
    exits_with(0, ask(fleet, another));
    const auto members = fleet.run(0, {"HGET", "redlock:node", "members"});
    for (const auto& member : {fleet.uri(0), spares.uri(0), spares.uri(1)}) {
      CHECK(contains(members, member));
    }
    CHECK(has_marker(spares, 1));
  }
  SUBCASE("if none does") {
    spares.kill(0);
    const auto refused = exits_with(1, ask(fleet, another));
    CHECK(contains(refused.out, "it is not known who the members are"));
    CHECK(epoch_on(fleet, 0) == epoch);
    CHECK_FALSE(has_marker(spares, 1));
  }
  CHECK(epoch_on(fleet, 2) == 1);
}

TEST_CASE_FIXTURE(AdoptedSet,
                  "a member that forgot its grants waits, also when a change is undone") {
  run_on_all(fleet, {"HSET", "redlock:node", "max_lease_ms", "1500"});
  Variables short_leases = with_quarantine;
  short_leases["REDLOCK_MAX_LEASE"] = "1500ms";
  const Fleet spare({.nodes = 1, .persistence = Persistence::always});
  const auto id = [&](std::size_t node) { return fleet.run(node, {"HGET", "redlock:node", "id"}); };
  fleet.run(
      0, {"HSET", "redlock:node", "epoch", "2", "members",
          id(0) + "=" + fleet.uri(0) + " " + id(1) + "=" + fleet.uri(1) + " new=" + spare.uri(0)});
  fleet.restart(2, cluster::Data::empty);
  const auto back = exits_with(
      0, ask(fleet, {"set", "replace", spare.uri(0), fleet.uri(2), "--over"}, short_leases));
  CHECK(contains(back.err, fleet.uri(2) + " is a member, and grants locks in about "));
}

struct InterruptedReplacement : AdoptedSet {
  Fleet spares{{.nodes = 2, .persistence = Persistence::always}};
  std::string told;

  /// Node 0 was told that spare 0 has the place of node 2, and no other node was.
  InterruptedReplacement() {
    const auto id = [&](std::size_t node) {
      return fleet.run(node, {"HGET", "redlock:node", "id"});
    };
    told = id(0) + "=" + fleet.uri(0) + " " + id(1) + "=" + fleet.uri(1) + " new=" + spares.uri(0);
    fleet.run(0, {"HSET", "redlock:node", "epoch", "2", "members", told});
  }

  void check_unchanged() {
    CHECK(fleet.run(0, {"HGET", "redlock:node", "members"}) == told);
    CHECK_FALSE(has_marker(spares, 0));
    CHECK_FALSE(has_marker(spares, 1));
  }
};

TEST_CASE_FIXTURE(InterruptedReplacement, "a replacement of another member is not this one") {
  const auto other = exits_with(1, ask(fleet, {"set", "replace", fleet.uri(1), spares.uri(0)}));
  CHECK(contains(other.out, "finish or undo the change that was interrupted"));
  const auto nobody = exits_with(64, ask(fleet, {"set", "replace", "redis://x:1", spares.uri(0)}));
  CHECK(contains(nobody.err, "redis://x:1 is no member of the set, whose"));
  const auto same = exits_with(64, ask(fleet, {"set", "replace", fleet.uri(2), fleet.uri(2)}));
  CHECK(contains(same.err, "give two addresses"));
  check_unchanged();
}

TEST_CASE_FIXTURE(InterruptedReplacement, "a list that lacks a member is called too old") {
  fleet.run(1, {"HSET", "redlock:node", "epoch", "3", "members", told});  // it was begun twice
  const Arguments add{"set", "add", fleet.uri(2)};
  const auto too_old = exits_with(69, ask(Uris{fleet.uri(2)}, add));
  CHECK(contains(too_old.err, " names " + spares.uri(0) + ", which was not asked; give the same"));
  CHECK(contains(too_old.err, "with " + fleet.uri(0) + " as the list of nodes"));
  const auto unfinished = exits_with(69, ask(Uris{fleet.uri(0)}, add));
  CHECK(contains(unfinished.err, spares.uri(0) + ": it is named as a member, and has no marker"));
  check_unchanged();
}

TEST_CASE_FIXTURE(InterruptedReplacement, "other names for the members count each of them once") {
  Uris list;
  for (std::size_t node = 0; node < fleet.size(); ++node) {
    list.push_back("redis://localhost:" + std::to_string(fleet.port(node)));
  }
  const auto client = Client::create({.nodes = list});
  REQUIRE(client);
  CHECK(Admin(*client).replace(fleet.uri(0), spares.uri(1)));
  for (const std::size_t node : {1U, 2U}) {
    CHECK(contains(fleet.run(node, {"HGET", "redlock:node", "members"}), spares.uri(1)));
  }
}

TEST_CASE_FIXTURE(AdoptedSet, "a member that was put into a set of its own is not followed there") {
  fleet.run(2, {"FLUSHALL"});
  exits_with(0, ask(Uris{fleet.uri(2)}, {"adopt"}));
  fleet.run(2, {"HSET", "redlock:node", "epoch", "9000000"});
  for (const Uris& list : {Uris{fleet.uri(0)}, Uris{fleet.uri(1), fleet.uri(0)}}) {
    CHECK(contains(exits_with(0, ask(list, {"set", "show"})).out, fleet.uri(0)));
    CHECK(contains(exits_with(69, ask(list, {"set", "max-lease", "2m"})).err, fleet.uri(2)));
    const auto client = Client::create({.nodes = list});
    REQUIRE(client);
    CHECK_FALSE(Admin(*client).set_max_lease(2min));
  }
  CHECK(fleet.run(2, {"HGET", "redlock:node", "max_lease_ms"}) == "60000");
}

TEST_CASE_FIXTURE(AdoptedSet, "a member takes no other member's place, and none of another set") {
  const Fleet others({.nodes = 3, .persistence = Persistence::always, .adopted = true});
  const Fleet spare({.nodes = 1, .persistence = Persistence::always});
  const auto twice = exits_with(64, ask(fleet, {"set", "replace", fleet.uri(1), fleet.uri(2)}));
  CHECK(contains(twice.err, fleet.uri(2) + " is a member of the set already"));
  // A node of another set is listed first, by mistake.
  Uris list = fleet.uris();
  list.insert(list.begin(), others.uri(0));
  const auto wrong = ask(list, {"set", "replace", fleet.uri(2), others.uri(1)});
  CAPTURE(wrong.err);
  CHECK(wrong.status == 69);
  CHECK(contains(wrong.err, others.uri(1) + ": its marker names set "));
  fleet.kill(2);
  exits_with(0, ask(list, {"set", "replace", fleet.uri(2), spare.uri(0), "--over"}));
  CHECK(epoch_on(others, 0) == 1);
  // It cannot be known which of two sets is meant.
  const Uris mixed{others.uri(0), fleet.uri(0)};
  CHECK(ask(mixed, {"set", "replace", spare.uri(0), fleet.uri(2)}).status == 69);
}

TEST_CASE_FIXTURE(AdoptedSet, "a replacement makes no new set of nodes that lost their data") {
  const Fleet spare({.nodes = 1, .persistence = Persistence::always});
  fleet.run(0, {"FLUSHALL"});
  fleet.run(1, {"FLUSHALL"});
  Arguments replace{"set", "replace", fleet.uri(2), spare.uri(0)};
  SUBCASE("while a member shows the former one") {}
  SUBCASE("while none does") {
    fleet.kill(2);
    replace.emplace_back("--over");
  }
  const auto refused = exits_with(69, ask(fleet, replace));
  CHECK(contains(refused.err, "none of the members that stay shows a set"));
  CHECK_FALSE(has_marker(fleet, 0));
  CHECK_FALSE(has_marker(fleet, 1));
  CHECK_FALSE(has_marker(spare, 0));
}

TEST_CASE("a change that goes on under another epoch is no rival of itself") {
  Fleet fleet({.nodes = 5, .persistence = Persistence::always, .adopted = true});
  run_on_all(fleet, {"HSET", "redlock:node", "max_lease_ms", "1500"});
  const Fleet spares({.nodes = 2, .persistence = Persistence::always});
  const auto tell = [&](std::size_t told, const std::string& epoch, const std::string& joins) {
    std::string members;
    for (std::size_t node = 0; node < 4; ++node) {
      members += fleet.run(node, {"HGET", "redlock:node", "id"}) + "=" + fleet.uri(node) + " ";
    }
    fleet.run(told, {"HSET", "redlock:node", "epoch", epoch, "members", members + joins});
  };
  tell(0, "10", "new=" + spares.uri(0));
  tell(1, "20", "other=" + spares.uri(1));
  fleet.run(3, {"ACL", "SETUSER", "default", "-hset"});
  const auto made = ask(fleet, {"set", "replace", fleet.uri(4), spares.uri(0)}, with_quarantine);
  CAPTURE(made.out + made.err);
  CHECK(contains(made.out, fleet.uri(3) + ": ERR "));
  for (const std::size_t node : {1UL, 2UL}) CHECK(epoch_on(fleet, node) == epoch_on(fleet, 0));
  CHECK(has_marker(spares, 0));
}

TEST_CASE_FIXTURE(InterruptedReplacement,
                  "a change is not undone where another operator may be finishing it") {
  // Node 1 cannot promise to take no message of that one any more.
  fleet.run(1, {"ACL", "SETUSER", "default", "-set"});
  const Arguments undo{"set", "replace", spares.uri(0), fleet.uri(2), "--over"};
  CHECK(ask(fleet, undo).status != 0);
  check_unchanged();
  fleet.run(1, {"ACL", "SETUSER", "default", "+set"});
  exits_with(0, ask(fleet, undo));
  CHECK(epoch_on(fleet, 0) == epoch_on(fleet, 1));
  CHECK(contains(fleet.run(0, {"HGET", "redlock:node", "members"}), fleet.uri(2)));
}

TEST_CASE_FIXTURE(AdoptedSet, "a new member is reached with the login of the one that leaves") {
  Fleet spare({.nodes = 1, .persistence = Persistence::always});
  const Arguments user{"ACL", "SETUSER", "program", "on", ">secret", "~*", "&*", "+@all"};
  fleet.run(2, user);
  spare.run(0, user);
  spare.run(0, {"ACL", "SETUSER", "default", "nopass", "resetkeys", "~nothing"});
  const auto with_login = [](std::string uri) {
    return uri.insert(uri.find("://") + 3, "program:secret@");
  };
  const Uris list{fleet.uri(0), fleet.uri(1), with_login(fleet.uri(2))};
  fleet.kill(2);
  exits_with(0, ask(list, {"set", "replace", fleet.uri(2), spare.uri(0), "--over"}));
  const Uris list_of_today{fleet.uri(0), fleet.uri(1), with_login(spare.uri(0))};
  CHECK(ask(list_of_today, {"set", "show"}).status == 0);
}

TEST_CASE_FIXTURE(AdoptedSet, "a former member comes back as a new one, whatever was interrupted") {
  run_on_all(fleet, {"HSET", "redlock:node", "max_lease_ms", "1500"});
  const Fleet spares({.nodes = 2, .persistence = Persistence::always});
  exits_with(0, ask(fleet, {"set", "replace", fleet.uri(2), spares.uri(0)}, with_quarantine));
  const auto id = [&](std::size_t node) { return fleet.run(node, {"HGET", "redlock:node", "id"}); };
  fleet.run(0, {"HINCRBY", "redlock:node", "epoch", "1"});
  fleet.run(
      0, {"HSET", "redlock:node", "members",
          id(0) + "=" + fleet.uri(0) + " " + id(1) + "=" + fleet.uri(1) + " new=" + spares.uri(1)});
  const auto before = id(2);
  const Uris list{fleet.uri(0), fleet.uri(1), spares.uri(0)};
  const auto back =
      exits_with(0, ask(list, {"set", "replace", spares.uri(0), fleet.uri(2)}, with_quarantine));
  CHECK(contains(back.err, fleet.uri(2) + " is a member, and grants locks in about "));
  CHECK(id(2) != before);
  const auto looked = ask(fleet, {"doctor"}, with_quarantine);
  CAPTURE(looked.out);
  CHECK(looked.status == 0);
}

TEST_CASE("a former member that a member lists which was not told comes back as a new one") {
  Fleet fleet({.nodes = 5, .persistence = Persistence::always, .adopted = true});
  run_on_all(fleet, {"HSET", "redlock:node", "max_lease_ms", "1500"});
  Variables short_leases = with_quarantine;
  short_leases["REDLOCK_MAX_LEASE"] = "1500ms";
  const Fleet spares({.nodes = 2, .persistence = Persistence::always});
  const auto former = fleet.run(3, {"HGET", "redlock:node", "members"});
  exits_with(0, ask(fleet, {"set", "replace", fleet.uri(4), spares.uri(0)}, short_leases));
  REQUIRE(has_marker(spares, 0));
  fleet.run(3, {"HSET", "redlock:node", "epoch", "1", "members", former});  // it was not told
  const auto id = [&](std::size_t node) { return fleet.run(node, {"HGET", "redlock:node", "id"}); };
  std::string others;
  for (const std::size_t node : {0U, 1U, 2U, 3U}) others += id(node) + "=" + fleet.uri(node) + " ";
  fleet.run(2, {"HINCRBY", "redlock:node", "epoch", "1"});  // another replacement was interrupted
  fleet.run(2, {"HSET", "redlock:node", "members", others + "new=" + spares.uri(1)});
  const auto before = id(4);
  const Uris list{fleet.uri(0), fleet.uri(1), fleet.uri(2), fleet.uri(3), spares.uri(0)};
  const auto back =
      exits_with(0, ask(list, {"set", "replace", spares.uri(0), fleet.uri(4)}, short_leases));
  CHECK(contains(back.err, fleet.uri(4) + " is a member, and grants locks in about "));
  CHECK(id(4) != before);
}

TEST_CASE("a node takes no place before a quorum of the members name it") {
  Fleet fleet({.nodes = 5, .persistence = Persistence::always, .adopted = true});
  const Fleet spare({.nodes = 1, .persistence = Persistence::always});
  fleet.kill(4);
  const auto on_three = [&](const Arguments& command) {
    for (const std::size_t node : {1U, 2U, 3U}) fleet.run(node, command);
  };
  const Arguments replace{"set", "replace", fleet.uri(4), spare.uri(0), "--over"};
  on_three({"CONFIG", "SET", "min-replicas-to-write", "1"});
  const auto unknown = exits_with(69, ask(fleet, replace));
  CHECK(occurrences(unknown.out, "failed") == 3);
  CHECK(occurrences(unknown.out, "not all would take that now") == 2);
  CHECK(epoch_on(fleet, 0) == 1);
  on_three({"CONFIG", "SET", "min-replicas-to-write", "0"});
  // They take part in the change, and then fail.
  on_three({"ACL", "SETUSER", "default", "-hset"});
  const auto refused = exits_with(78, ask(fleet, replace));
  CHECK(occurrences(refused.out, "failed") == 3);
  CHECK(contains(refused.out, "it takes its place when a quorum of the members name it"));
  CHECK(epoch_on(fleet, 0) > 1);
  CHECK_FALSE(has_marker(spare, 0));
  on_three({"ACL", "SETUSER", "default", "+hset"});
  CHECK(occurrences(exits_with(0, ask(fleet, replace)).out, "written") == 1);
  CHECK(epoch_on(fleet, 3) > 1);
}

TEST_CASE_FIXTURE(AdoptedSet, "no member is marked twice, where its data is at another address") {
  fleet.run(1, {"HSET", "redlock:node", "id", fleet.run(0, {"HGET", "redlock:node", "id"})});
  fleet.restart(0, cluster::Data::empty);
  const auto refused = exits_with(1, ask(fleet, {"adopt", "--replaced", fleet.uri(0)}));
  CHECK(contains(refused.out, "another node of the list has the data of the member"));
  CHECK_FALSE(has_marker(fleet, 0));
}

TEST_CASE_FIXTURE(AdoptedSet, "a replacement that reached a part of the members is finished") {
  const Fleet spare({.nodes = 1, .persistence = Persistence::always});
  fleet.run(0, {"HSET", "redlock:node", "epoch", "2", "members",
                fleet.run(0, {"HGET", "redlock:node", "id"}) + "=" + fleet.uri(0) + " " +
                    fleet.run(1, {"HGET", "redlock:node", "id"}) + "=" + fleet.uri(1) +
                    " new=" + spare.uri(0)});
  const auto doctor = ask(fleet, {"doctor"});
  CHECK(contains(doctor.out, "its marker names other members than most"));
  CHECK(contains(exits_with(1, ask(fleet, {"adopt"})).out, "a change was interrupted"));
  CHECK(fleet.run(1, {"HGET", "redlock:node", "epoch"}) == "1");
  SUBCASE("or undone") {
    const auto back = ask(fleet, {"set", "replace", spare.uri(0), fleet.uri(2)});
    CHECK(exits_with(0, back).out.find("written") == std::string::npos);
    for (const std::size_t node : {0U, 1U, 2U}) {
      CHECK(epoch_on(fleet, node) > 2);
    }
    CHECK(ask(fleet, {"doctor"}).status == 0);
  }
  SUBCASE("in a new epoch, as no quorum shows it") {
    fleet.kill(2);
    const auto finished =
        exits_with(0, ask(fleet, {"set", "replace", fleet.uri(2), spare.uri(0), "--over"}));
    CHECK(occurrences(finished.out, "written") == 1);
    CHECK(epoch_on(fleet, 0) > 2);
    CHECK(epoch_on(fleet, 1) == epoch_on(fleet, 0));
    CHECK(spare.run(0, {"HGET", "redlock:node", "id"}) == "new");
    CHECK(ask(Uris{fleet.uri(0), fleet.uri(1), spare.uri(0)}, {"doctor"}).status == 0);
  }
}

TEST_CASE_FIXTURE(AdoptedSet, "one node of a set is enough to find the others, and the lease") {
  for (const std::size_t node : {0U, 1U, 2U}) {
    fleet.run(node, {"HSET", "redlock:node", "max_lease_ms", "20000"});
  }
  auto variables = with_quarantine;
  const Uris seed{fleet.uri(1)};
  const auto shown = json::parse(exits_with(0, ask(seed, {"set", "show", "-o", "json"})).out);
  CHECK(shown["members"] == fleet.uris());
  CHECK(shown["max_lease_ms"] == 20000);
  CHECK(shown["epoch"] == 1);
  check_contains(exits_with(0, ask(seed, {"set", "show"})).out,
                 {"leases of up to 20s", fleet.uri(2)});
  for (const Arguments& arguments : {Arguments{"doctor"}, {"status", "a"}, {"adopt"}}) {
    const auto finished = exits_with(0, ask(seed, arguments, variables));
    for (const auto& uri : fleet.uris()) CHECK(contains(finished.out, uri));
  }
  CHECK(ask(seed, {"exec", "a", "--", "true"}, variables).status == 0);
  variables["REDLOCK_MAX_LEASE"] = "60s";
  CHECK(contains(exits_with(78, ask(seed, {"exec", "a", "--", "true"}, variables)).err,
                 "its marker says max_lease_ms 20000, this client 60000"));
  // Nothing waits for as long as a node may take that does not answer.
  exits_with(0, ask(seed, {"set", "show", "--node-timeout", "10m"}));
  // A majority of the members has to say so.
  fleet.kill(0);
  CHECK(ask(seed, {"set", "show"}).status == 0);
  fleet.kill(2);
  CHECK(contains(exits_with(69, ask(seed, {"set", "show"})).err, "too few members of the set"));
  const Fleet blank({.nodes = 1});
  CHECK(contains(exits_with(69, ask(blank, {"set", "show"})).err, "run redlock adopt if the set"));
}

TEST_CASE_FIXTURE(AdoptedSet, "markers of different sets are found") {
  fleet.run(0, {"HSET", "redlock:node", "max_lease_ms", "90000", "set", "theirs"});
  const auto examination = examine(fleet);
  CHECK(examination["safe"] == false);
  CHECK(has_problem(examination["nodes"][0]["problems"], "warning", "names set theirs"));
  CHECK(has_problem(examination["problems"], "error", "markers disagree"));
}

TEST_CASE_FIXTURE(NewSet,
                  "the longest lease is that of the markers, unless a shorter one is given") {
  REQUIRE(ask(fleet, {"adopt", "--max-lease", "30s"}).status == 0);
  CHECK(problems_in(examine(fleet)) == 0);
  CHECK(ask(fleet, {"doctor", "--max-lease", "30s"}, with_quarantine).status == 0);
  auto with_60s = with_quarantine;
  with_60s["REDLOCK_MAX_LEASE"] = "60s";
  for (const Arguments& arguments : looks) {
    CAPTURE(arguments[0]);
    const auto finished = exits_with(0, ask(fleet, arguments, with_quarantine));
    CHECK(finished.err.empty());
    for (const auto& longer :
         {ask(fleet, appended(arguments, {"--max-lease", "1m"}), with_quarantine),
          ask(fleet, arguments, with_60s)}) {
      const bool examines = arguments[0] == "doctor" || arguments[0] == "adopt";
      CHECK(longer.status == (examines ? 78 : 0));
      CHECK(contains(longer.err, " is 1m, and the nodes' markers say 30s") == examines);
      CHECK_FALSE(contains(longer.out + longer.err, "unsafe"));
      CHECK_FALSE(contains(longer.out + longer.err, "DEL "));
    }
  }
  const Variables& nothing_more = with_quarantine;
  CHECK(ask(fleet, exec_a({}, {"true"}), nothing_more).status == 0);
  for (const Arguments& arguments : {exec_a({"--lease", "1m"}, {"true"}),
                                     {"acquire", "a", "--lease", "1m"},
                                     {"acquire", "a", "--lease", "1m", "--wait", "1h"}}) {
    const auto finished = exits_with(78, ask(fleet, arguments, nothing_more));
    CHECK(contains(finished.err, "its marker says max_lease_ms 30000, this client 60000"));
    CHECK_FALSE(contains(finished.err, "DEL "));
  }
  for (const char* lease : {"30s", "20s"}) {
    const auto no_longer = exec_a({"--max-lease", lease, "--lease", lease}, {"true"});
    CHECK(ask(fleet, no_longer, with_quarantine).status == 0);
  }
}

TEST_CASE("a list without a quorum of the members is a configuration error with both numbers") {
  const Fleet fleet({.nodes = 7, .persistence = Persistence::always, .adopted = true});
  for (const Arguments& arguments : looks) {
    CAPTURE(arguments[0]);
    const auto soon = appended(arguments, {"--node-timeout", "2s"});
    const auto finished =
        exits_with(78, ask({fleet.uri(0), fleet.uri(1), fleet.uri(2)}, soon, with_quarantine));
    CHECK(contains(finished.err,
                   "the list has 3 nodes, and the nodes' markers say that their set has 7"));
  }
  // A quorum of the members are enough to know them all.
  const auto four = {fleet.uri(0), fleet.uri(1), fleet.uri(2), fleet.uri(3)};
  CHECK(contains(exits_with(0, ask(four, {"status", "a"}, with_quarantine)).out,
                 "free on a quorum of 7 nodes"));
  CHECK(contains(exits_with(1, ask(four, {"doctor"}, with_quarantine)).out,
                 "not in the list of nodes"));
  // Also when the program has gone on to the others.
  const auto client = Client::create({.nodes = four});
  REQUIRE(client);
  std::optional<Examination> examination;
  REQUIRE(eventually([&] {
    const auto found = Admin(*client).examine();
    if (found) examination = *found;
    return found && found->nodes.size() == 7;
  }));
  CHECK(std::ranges::count_if(examination->problems, [](const Problem& problem) {
          return contains(problem.what, "not in the list of nodes");
        }) == 3);
  // With it the other four would go on.
  run_on_all(fleet, {"HSET", "redlock:lock:{a}", std::string(32, 'a'), "1"});
  const auto forced = ask({fleet.uri(0), fleet.uri(1), fleet.uri(2)},
                          {"release", "a", "--force", "--node-timeout", "1s"}, with_quarantine);
  CAPTURE(forced.out + forced.err);
  CHECK(forced.status == 69);
}

TEST_CASE_FIXTURE(NewSet, "a node may take as long for its greeting as for its answers") {
  fleet.pause(2);
  Running adopting(fleet, {"adopt", "--node-timeout", "20s"});
  // A connection has one second by default.
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  fleet.resume(2);
  const auto finished = exits_with(0, adopting.wait());
  CHECK(occurrences(finished.out, "written") == 3);
}

TEST_CASE("an even number of nodes, or too few, gets a hint and stays safe") {
  const Fleet fleet({.nodes = 4, .persistence = Persistence::always, .adopted = true});
  const auto four = examine(fleet);
  CAPTURE(four.dump());
  CHECK(has_problem(four["problems"], "hint", "odd number"));
  CHECK(four["safe"] == true);
  const Fleet single({.nodes = 1, .persistence = Persistence::always, .adopted = true});
  const auto one = exits_with(0, ask(single, {"doctor"}));
  CHECK(contains(one.out, "no node may fail"));
}

TEST_CASE_FIXTURE(AdoptedSet, "a clock that another client saw move is reported while it matters") {
  fleet.run(1, {"SET", "redlock:node:clock", "", "PX", "59000"});
  const auto finished = exits_with(1, ask(fleet, {"doctor", "-o", "json"}, with_quarantine));
  CHECK(has_problem(json::parse(finished.out)["nodes"][1]["problems"], "warning",
                    "a client has seen its clock move"));
}

TEST_CASE("a node that answers, but not as it should, gets advice that fits") {
  struct Fault {
    const char* command;
    std::string reply;
    std::vector<std::string> warnings;
  };
  const std::string old = "redis_version:6.0.16\r\nrun_id:" + std::string(40, 'a') +
                          "\r\nrole:master\r\naof_enabled:1\r\nmaxmemory_policy:noeviction\r\n"
                          "aof_last_write_status:err\r\n";
  for (const Fault& fault :
       {Fault{"INFO", bulk(old), {"append-only file", "6.0.16 is too old"}},
        Fault{"PING", error("MISCONF Errors writing to the AOF file: No space left"), {}},
        Fault{"PING",
              error("BUSY Redis is busy running a script"),
              {"KILL, and find its sender); then"}},
        Fault{"HGETALL",
              error("WRONGTYPE Operation against a key holding the wrong kind"),
              {"no marker stands in its place",
               "delete it); then run `redlock adopt --replaced NODE`"}}}) {
    CAPTURE(fault.reply);
    StubServer node([&](const RedisCommand& command) -> StubReply {
      if (is(command, fault.command)) return fault.reply;
      return is(command, "HGETALL") ? array({}) : like_redis(command);
    });
    const auto report = examine(Uris{node.uri()})["nodes"][0];
    CAPTURE(report.dump());
    for (const auto& words : fault.warnings) {
      CHECK(has_problem(report["problems"], "warning", words));
    }
    // It is examined although it refuses PING.
    if (contains(fault.reply, "MISCONF")) {
      check_members(report, {{"/answered", true}, {"/role", "master"}});
    }
  }
}

TEST_CASE("a set whose user may not look at it or lock is not safe, and the doctor says why") {
  const Fleet fleet({.nodes = 3,
                     .persistence = Persistence::always,
                     .adopted = true,
                     .settings = {"user blind on >word ~* &* +@all -info -config -time",
                                  "user no-digest on >word ~* &* +@all -evalsha",
                                  "user no-text on >word ~* &* +@all -eval",
                                  "user no-fence on >word ~redlock:lock:* ~redlock:node &* +@all",
                                  "user no-release on >word ~* &* +@all -del"}});
  REQUIRE(ask(fleet, {"doctor"}).status == 0);
  struct Case {
    const char* user;
    std::vector<std::string> sentences;
  };
  const std::vector<std::string> no_votes{"may not take, hold and give back",
                                          "only 0 of 3 nodes can vote"};
  for (const Case& one : {Case{"blind",
                               {"may not read role, run id, appendonly, maxmemory-policy",
                                "its clock cannot be read"}},
                          Case{"no-digest", no_votes}, Case{"no-text", no_votes},
                          Case{"no-fence", no_votes}, Case{"no-release", no_votes}}) {
    CAPTURE(one.user);
    const auto finished =
        exits_with(2, ask(uris_as(std::string(one.user) + ":word", fleet), {"doctor"}));
    for (const auto& sentence : one.sentences) CHECK(contains(finished.out, sentence));
  }
  run_on_all(fleet, {"DEL", "redlock:lock:{redlock-doctor}"});
  run_on_all(fleet, {"CONFIG", "SET", "min-replicas-to-write", "1"});
  const auto examination = examine(fleet);
  CHECK(examination["safe"] == false);
  CHECK(has_problem(examination["nodes"][2]["problems"], "warning", "min-replicas-to-write 0"));
  CHECK(has_problem(examination["problems"], "error", "only 0 of 3 nodes can vote"));
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

}  // namespace
}  // namespace redlock::testing
