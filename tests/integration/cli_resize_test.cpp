// SPDX-License-Identifier: MIT
// redlock set add and set remove on real nodes, under a lock that is held meanwhile.
#include <future>

#include "cli_process.hpp"

namespace redlock::testing {
namespace {

// Not to be lost by a busy machine, and not long to wait for.
constexpr auto a_lease = 3000ms;
constexpr auto max_lease = 4500ms;
const std::string max_lease_ms = std::to_string(max_lease.count());

Variables set_variables(const std::vector<std::string>& uris) {
  Variables variables = with_quarantine;
  variables["REDLOCK_MAX_LEASE"] = max_lease_ms + "ms";
  variables.merge(nodes_variable(uris));
  return variables;
}

Finished set_command(const std::vector<std::string>& uris, Arguments arguments) {
  const auto words = arguments.front() == "set" ? 2 : 1;
  arguments.insert(arguments.begin() + words, {"--node-timeout", "2s"});
  auto finished = redlock(arguments, set_variables(uris));
  finished.out = unwrapped(finished.out);
  finished.err = unwrapped(finished.err);
  return finished;
}

/// Three members with short leases, and two nodes more.
struct Growing {
  Fleet fleet{{.nodes = 3, .persistence = Persistence::always, .adopted = true}};
  Fleet spares{{.nodes = 2, .persistence = Persistence::always}};
  const std::vector<std::string> seed{fleet.uri(1)};

  Growing() { run_on_all(fleet, {"HSET", "redlock:node", "max_lease_ms", max_lease_ms}); }

  [[nodiscard]] std::vector<std::string> members() const {
    std::vector<std::string> all;
    std::istringstream shown(set_command(seed, {"set", "show"}).out);
    std::string line;
    std::getline(shown, line);
    while (std::getline(shown, line)) all.push_back(line);
    return all;
  }
};

TEST_CASE_FIXTURE(Growing, "a set grows and shrinks while a lock is held, and programs follow") {
  const auto client =
      Client::create({.nodes = fleet.uris(), .lease = a_lease, .max_lease = max_lease});
  REQUIRE(client);
  const auto lease = client->lock("a").acquire({.wait = 20s});
  REQUIRE(lease);
  const auto in_all = [&] {
    return eventually([&] {
      return fleet.run(1, {"EXISTS", "redlock:lock:{a}"}) == "1" &&
             spares.run(0, {"EXISTS", "redlock:lock:{a}"}) == "1" &&
             spares.run(1, {"EXISTS", "redlock:lock:{a}"}) == "1";
    });
  };
  // Tokens that a quorum knows now: one that the clock explains, and one that the quorum does.
  const std::string ahead = "4000000000000000";
  for (const std::size_t node : {0UL, 1UL}) {
    fleet.run(node, {"MSET", "redlock:fence:7", "1000", "redlock:fence:8", ahead});
  }
  const auto began = std::chrono::steady_clock::now();
  const auto first = exits_with(0, set_command(seed, {"set", "add", spares.uri(0)}));
  CHECK(fleet.run(2, {"GET", "redlock:fence:7"}) == "1000");
  CHECK(spares.run(0, {"GET", "redlock:fence:7"}) == "1000");
  CHECK(fleet.run(2, {"GET", "redlock:fence:8"}) == ahead);
  CHECK(spares.run(0, {"GET", "redlock:fence:8"}) == ahead);
  CHECK(occurrences(first.out, "already_there") == 3);
  CHECK(occurrences(first.out, "written") == 1);
  const auto second = exits_with(0, set_command(seed, {"set", "add", spares.uri(1)}));
  // Or all leases from before the first were over anyway.
  const bool over = std::chrono::steady_clock::now() - began > max_lease + a_lease;
  const bool waited = contains(second.err, "the number of members was changed a moment ago");
  CHECK((waited || over));
  CHECK(members().size() == 5);
  CHECK(contains(exits_with(1, set_command(fleet.uris(), {"doctor"})).out,
                 spares.uri(0) + " is a member of the set, and not in the list of nodes"));
  CHECK(in_all());
  exits_with(0, set_command(seed, {"doctor"}));

  fleet.kill(0);  // a dead member leaves
  exits_with(0, set_command(seed, {"set", "remove", fleet.uri(0)}));
  exits_with(0, set_command(seed, {"set", "remove", fleet.uri(2)}));
  CHECK(members() == std::vector<std::string>{fleet.uri(1), spares.uri(0), spares.uri(1)});
  CHECK(in_all());
  CHECK(lease->valid());
  exits_with(0, set_command(seed, {"doctor"}));
  CHECK(client->lock("b").acquire({.wait = 20s}).has_value());
}

TEST_CASE_FIXTURE(Growing, "of two operators one waits, and is told who changes the set") {
  const auto client = Client::create({.nodes = fleet.uris(),
                                      .lease = a_lease,
                                      .max_lease = max_lease,
                                      .label = "another operator"});
  REQUIRE(client);
  auto turn = client->lock(set_change_lock).acquire({.renewal = Renewal::always, .wait = 20s});
  REQUIRE(turn);
  const auto who = "the set is being changed by another operator, pid " + std::to_string(getpid());
  const auto refused = exits_with(75, set_command(seed, {"set", "add", spares.uri(0)}));
  check_contains(refused.err,
                 {who + " on ", "; waiting for its end", "no marker was changed: " + who,
                  "give the command again when that one has ended"});
  CHECK(fleet.run(0, {"HGET", "redlock:node", "epoch"}) == "1");
  CHECK(turn->release());
  exits_with(0, set_command(seed, {"set", "add", spares.uri(0)}));
  CHECK(members().size() == 4);
}

TEST_CASE_FIXTURE(Growing, "the turn of an operator who is killed ends by itself") {
  exits_with(0, set_command(seed, {"set", "add", spares.uri(0)}));
  // So the next change has to wait.
  run_on_all(fleet, {"HSET", "redlock:node", "resized", "9000000000000"});
  Running killed({"set", "add", spares.uri(1)}, set_variables(seed));
  REQUIRE(killed.await_err("the number of members was changed a moment ago"));
  killed.signal(SIGKILL);
  killed.wait();
  run_on_all(fleet, {"HDEL", "redlock:node", "resized"});
  exits_with(0, set_command(seed, {"set", "add", spares.uri(1)}));
  CHECK(members().size() == 5);
}

TEST_CASE_FIXTURE(Growing, "while one member refuses another number, no other is told of it") {
  exits_with(0, set_command(seed, {"set", "add", spares.uri(0)}));
  const auto client =
      Client::create({.nodes = fleet.uris(), .lease = a_lease, .max_lease = max_lease});
  REQUIRE(client);
  const auto lease = client->lock("a").acquire({.wait = 20s});
  REQUIRE(lease);
  // As if the clock of the last had been set back: it refuses for one lease from its first answer.
  run_on_all(fleet, {"HDEL", "redlock:node", "resized"});
  spares.run(0, {"HSET", "redlock:node", "resized", "9000000000000"});
  const auto before = spares.run(0, {"HGET", "redlock:node", "epoch"});
  const auto told = Admin(*client).remove(fleet.uri(0));
  REQUIRE(told);
  REQUIRE(told->size() == 3);
  for (const std::size_t node : {0UL, 1UL}) {
    CHECK((*told)[node].adoption == Adoption::unconfirmed);
    CHECK(contains((*told)[node].detail, "no member was told"));
    CHECK(fleet.run(node + 1, {"HGET", "redlock:node", "epoch"}) == before);
  }
  CHECK((*told)[2].adoption == Adoption::waits);
  CHECK(contains((*told)[2].detail, "the number of members was changed a moment ago"));
  exits_with(0, set_command(seed, {"set", "remove", fleet.uri(0)}));
  CHECK(members().size() == 3);
  CHECK(lease->valid());
}

TEST_CASE_FIXTURE(Growing, "a change of the number that cannot be, or be finished, is refused") {
  CHECK(contains(exits_with(64, set_command(seed, {"set", "remove", spares.uri(0)})).err,
                 "is no member of the set, whose members are " + fleet.uri(0)));
  CHECK(contains(exits_with(64, set_command(seed, {"set", "add", "unix:///nowhere"})).err,
                 "give an address of that kind"));
  for (const std::string field :
       {"id", "layout", "nodes", "max_lease_ms", "set", "epoch", "members"}) {
    spares.run(0, {"HSET", "redlock:node", field, fleet.run(0, {"HGET", "redlock:node", field})});
  }
  CHECK(contains(exits_with(69, set_command(seed, {"set", "add", spares.uri(0)})).err,
                 "it has the data of another member"));
  spares.kill(1);
  CHECK(contains(exits_with(69, set_command(seed, {"set", "add", spares.uri(1)})).err,
                 "no marker was changed: " + spares.uri(1)));
  fleet.kill(2);
  const auto refused = exits_with(69, set_command(fleet.uris(), {"set", "remove", fleet.uri(0)}));
  CHECK(contains(refused.err, "no marker was changed: " + fleet.uri(2)));
  CHECK(contains(refused.err, "every member that stays has to answer"));
  CHECK(members().size() == 3);
}

TEST_CASE("of two members none is taken out, as the other would be no quorum of them") {
  const Fleet two({.nodes = 2, .persistence = Persistence::always, .adopted = true});
  run_on_all(two, {"HSET", "redlock:node", "max_lease_ms", max_lease_ms});
  const auto refused = exits_with(69, set_command(two.uris(), {"set", "remove", two.uri(0)}));
  CHECK(contains(refused.err, "which is no quorum of them"));
}

TEST_CASE_FIXTURE(Growing, "a node of another set gets no place, and nothing is changed") {
  for (const std::size_t size : {1UL, 3UL}) {
    Fleet others{{.nodes = size, .persistence = Persistence::always, .adopted = true}};
    run_on_all(others, {"HSET", "redlock:node", "max_lease_ms", max_lease_ms});
    auto mixed = fleet.uris();
    mixed.push_back(others.uri(0));
    const auto added = exits_with(69, set_command(mixed, {"set", "add", spares.uri(0)}));
    CHECK(contains(added.err, "it belongs to another set"));
    for (const Arguments& change : {Arguments{"set", "add", others.uri(0)},
                                    Arguments{"set", "replace", fleet.uri(2), others.uri(0)}}) {
      const auto refused = set_command(fleet.uris(), change);
      CAPTURE(refused.out);
      CHECK(refused.status == 69);
      CHECK(contains(refused.err, "it belongs to another set"));
      CHECK(members() == fleet.uris());
    }
  }
}

TEST_CASE_FIXTURE(Growing, "a node that was a member has no say in a change of the number") {
  exits_with(0, set_command(seed, {"set", "add", spares.uri(0)}));
  exits_with(0, set_command(seed, {"set", "remove", fleet.uri(0)}));
  const std::vector<std::string> members_of_today{fleet.uri(1), fleet.uri(2), spares.uri(0)};
  CHECK(members() == members_of_today);
  fleet.run(2, {"SET", "redlock:fence:7", "1000"});
  fleet.run(2, {"ACL", "SETUSER", "default", "-get"});
  const auto refused = exits_with(69, set_command(seed, {"set", "add", fleet.uri(0)}));
  CHECK(contains(refused.err, "no marker was changed: the fences of "));
  CHECK(fleet.run(0, {"EXISTS", "redlock:node"}) == "1");
  fleet.run(2, {"ACL", "SETUSER", "default", "+get"});
  // It still names itself, and the list has it still.
  const std::vector<std::string> listed{fleet.uri(0), fleet.uri(1), fleet.uri(2)};
  exits_with(0, set_command(listed, {"set", "add", spares.uri(1)}));
  CHECK(members().size() == 4);
  // It is a member again when its former marker is gone.
  const Arguments again{"set", "add", fleet.uri(0)};
  const auto former = fleet.run(0, {"HGET", "redlock:node", "id"});
  fleet.run(0, {"ACL", "SETUSER", "default", "-del"});
  CHECK(contains(exits_with(1, set_command(members_of_today, again)).out, "could not be removed"));
  CHECK(fleet.run(0, {"HGET", "redlock:node", "id"}) == former);
  fleet.run(0, {"ACL", "SETUSER", "default", "+del"});
  exits_with(0, set_command(members_of_today, again));
  CHECK(members().size() == 5);
  CHECK(fleet.run(0, {"HGET", "redlock:node", "id"}) != former);
  // One that left takes the place of another, although it names more members.
  exits_with(0, set_command(seed, {"set", "remove", spares.uri(1)}));
  exits_with(0, set_command(seed, {"set", "replace", fleet.uri(1), spares.uri(1)}));
  CHECK(members().size() == 4);
}

TEST_CASE_FIXTURE(Growing, "the list of a node that was a member is no change that was begun") {
  exits_with(0, set_command(seed, {"set", "replace", fleet.uri(2), spares.uri(0)}));
  // It was to join again, and the command was interrupted. It still shows the members of before.
  const auto members_of = fleet.run(0, {"HGET", "redlock:node", "members"});
  const auto epoch = std::stoull(fleet.run(0, {"HGET", "redlock:node", "epoch"}));
  const auto later = std::to_string(epoch + 1);
  for (const std::size_t node : {0UL, 1UL}) {
    fleet.run(node, {"HSET", "redlock:node", "nodes", "4", "epoch", later, "members",
                     members_of + " again=" + fleet.uri(2)});
  }
  const auto refused = exits_with(69, set_command(fleet.uris(), {"set", "remove", spares.uri(0)}));
  CHECK(contains(refused.err, "was interrupted"));
  CHECK(fleet.run(0, {"HGET", "redlock:node", "epoch"}) == later);
  CHECK(fleet.run(2, {"HGET", "redlock:node", "epoch"}) == "1");
}

TEST_CASE_FIXTURE(Growing, "a member that is asked for one change takes part in no earlier one") {
  const auto id = [&](std::size_t node) { return fleet.run(node, {"HGET", "redlock:node", "id"}); };
  const auto listed = [&](std::size_t node) { return id(node) + "=" + fleet.uri(node); };
  // One member was told of a replacement, and the one that left that it is undone. The third may
  // yet be told of the former.
  const std::string former = "12345678";
  run_on_all(fleet, {"SET", "redlock:node:change", former});
  fleet.run(1, {"HSET", "redlock:node", "epoch", "2", "members",
                "new=" + spares.uri(0) + " " + listed(1) + " " + listed(2)});
  fleet.run(0, {"HSET", "redlock:node", "epoch", "3"});
  fleet.run(2, {"ACL", "SETUSER", "default", "-hset"});
  const Arguments undo{"set", "replace", spares.uri(0), fleet.uri(0)};
  const auto refused = set_command(fleet.uris(), undo);
  CAPTURE(refused.out + refused.err);
  CHECK(refused.status != 0);
  CHECK(fleet.run(2, {"HGET", "redlock:node", "epoch"}) == "1");
  const auto promised = fleet.run(2, {"GET", "redlock:node:change"});
  CHECK(promised.size() == 32);
  CHECK(fleet.run(1, {"GET", "redlock:node:change"}) == promised);
  fleet.run(2, {"ACL", "SETUSER", "default", "+hset"});
  exits_with(0, set_command(fleet.uris(), undo));
  CHECK(members().size() == 3);
  CHECK(fleet.run(2, {"GET", "redlock:node:change"}) != promised);
}

TEST_CASE_FIXTURE(Growing, "of two replacements of one member at once at most one is made") {
  std::vector<std::string> nodes{fleet.uri(2), spares.uri(0), spares.uri(1)};  // the first leaves
  const auto client = Client::create({.nodes = {fleet.uri(0), fleet.uri(1)}});
  REQUIRE(client);
  const auto changed = [&](const std::string& to) {
    const auto done = Admin(*client).replace(nodes[0], to);
    return done && std::ranges::any_of(*done, [&](const NodeAdoption& each) {
             return each.node == to && each.adoption == Adoption::waits;
           });
  };
  for (int round = 0; round < 10; ++round) {
    auto other = std::async(std::launch::async, changed, nodes[2]);
    const bool one = changed(nodes[1]);
    const bool another = other.get();
    CHECK_FALSE((one && another));
    // Either is finished, or the one that was interrupted is.
    const bool first = !another && (one || changed(nodes[1]));
    CHECK((first || another || changed(nodes[2])));
    for (const char* field : {"epoch", "members"}) {
      CHECK(fleet.run(0, {"HGET", "redlock:node", field}) ==
            fleet.run(1, {"HGET", "redlock:node", field}));
    }
    std::swap(nodes[0], nodes[first ? 1 : 2]);
  }
}

TEST_CASE_FIXTURE(Growing, "an interrupted change of the number is finished, or undone") {
  const auto id = [&](std::size_t node) { return fleet.run(node, {"HGET", "redlock:node", "id"}); };
  fleet.run(0, {"HSET", "redlock:node", "nodes", "4", "epoch", "2", "members",
                id(0) + "=" + fleet.uri(0) + " " + id(1) + "=" + fleet.uri(1) + " " + id(2) + "=" +
                    fleet.uri(2) + " new=" + spares.uri(0)});
  SUBCASE("finished, but the new member waits, as a replacement may have named it as well") {
    {
      const auto client = Client::create({.nodes = {fleet.uri(1), fleet.uri(2)}});
      REQUIRE(client);
      fleet.run(2, {"SET", "redlock:fence:7", "1000"});
      fleet.run(2, {"ACL", "SETUSER", "default", "-get"});
      CHECK_FALSE(Admin(*client).add(spares.uri(0)));  // one of the others may have no fences yet
      fleet.run(2, {"ACL", "SETUSER", "default", "+get"});
      const auto told = Admin(*client).add(spares.uri(0));
      REQUIRE(told);
      CHECK(std::ranges::count(*told, Adoption::waits, &NodeAdoption::adoption) == 1);
      CHECK(spares.run(0, {"EXISTS", "redlock:node"}) == "0");
    }
    const auto done = exits_with(0, set_command(fleet.uris(), {"set", "add", spares.uri(0)}));
    CHECK(contains(done.err, spares.uri(0) + " is a member, and grants locks in about "));
    CHECK(members().size() == 4);
    CHECK(spares.run(0, {"HGET", "redlock:node", "id"}) == "new");
    CHECK(exits_with(0, set_command(seed, {"set", "add", spares.uri(0)})).out.find("written") ==
          std::string::npos);  // once more
  }
  SUBCASE("undone") {
    exits_with(0, set_command(fleet.uris(), {"set", "remove", spares.uri(0)}));
    CHECK(members() == fleet.uris());
    CHECK(spares.run(0, {"EXISTS", "redlock:node"}) == "0");
  }
  SUBCASE("and no other is begun") {
    const auto refused = exits_with(69, set_command(fleet.uris(), {"set", "add", spares.uri(1)}));
    CHECK(contains(refused.err, "was interrupted"));
    CHECK(contains(refused.err, fleet.uri(1) + " names " + fleet.uri(0) + " " + fleet.uri(1) + " " +
                                    fleet.uri(2) + " (max_lease_ms"));
    CHECK(spares.run(1, {"EXISTS", "redlock:node"}) == "0");
  }
  SUBCASE("or is left alone, as the node that knows of it is removed by another one") {
    fleet.run(1, {"HSET", "redlock:node", "nodes", "2", "epoch", "2", "members",
                  id(1) + "=" + fleet.uri(1) + " " + id(2) + "=" + fleet.uri(2)});
    const Arguments add{"set", "add", spares.uri(0)};
    CHECK(contains(exits_with(69, set_command(fleet.uris(), add)).err,
                   "more than one change was begun"));
    exits_with(0, set_command({fleet.uri(1), fleet.uri(2)}, {"set", "remove", fleet.uri(0)}));
    CHECK(members() == std::vector<std::string>{fleet.uri(1), fleet.uri(2)});
  }
  SUBCASE("and the node that knows of it is replaced when it is stopped") {
    const Arguments replace{"set", "replace", fleet.uri(0), spares.uri(1)};
    const std::string why = fleet.uri(0) + ": its marker names 4 members, and the others 3";
    CHECK(contains(exits_with(69, set_command(fleet.uris(), replace)).err, why));
    const auto client = Client::create({.nodes = {fleet.uri(1), fleet.uri(2)}});
    REQUIRE(client);
    const auto refused = Admin(*client).replace(fleet.uri(0), spares.uri(1));
    REQUIRE_FALSE(refused);
    CHECK(contains(refused.error().message, why));
    CHECK(fleet.run(2, {"HGET", "redlock:node", "epoch"}) == "1");
    fleet.kill(0);
    exits_with(0, set_command({fleet.uri(1), fleet.uri(2)}, replace));
    exits_with(0, set_command(seed, {"doctor"}));
  }
  const auto looked = set_command(seed, {"doctor"});
  CAPTURE(looked.out + looked.err);
  CHECK(looked.status <= 1);
}

}  // namespace
}  // namespace redlock::testing
