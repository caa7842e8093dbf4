// SPDX-License-Identifier: MIT
// Nodes that forgot, as a program sees them: they do not vote, the error says for how long, and
// adoption lets them vote at once.
#include "integration/api_event_log.hpp"

namespace redlock::testing {
namespace {

using cluster::Data;
using cluster::Persistence;

ClientOptions careful(const Fleet& fleet) {
  return careful_options_for(fleet.uris());
}

/// The node gets the data of the one at this port, and is a master again.
void copy_data(const Fleet& fleet, std::size_t node, std::uint16_t port) {
  REQUIRE(soon_replicates(fleet, node, port));
  fleet.run(node, {"REPLICAOF", "NO", "ONE"});
}

/// The node follows a copy of itself for a moment, and is a master again.
void demote_and_promote(const Fleet& fleet, std::size_t node, const Fleet& spare) {
  copy_data(spare, 0, fleet.port(node));
  copy_data(fleet, node, spare.port(0));
}

/// Nodes that were down for a quarantine.
std::size_t quarantined(const EventLog& log, const Fleet& fleet) {
  const auto uris = fleet.uris();
  return static_cast<std::size_t>(std::ranges::count_if(
      uris, [&](const std::string& uri) { return log.count("down " + uri + " quarantined") > 0; }));
}

TEST_CASE("a client that starts does not count a node whose clock another client saw move") {
  const Fleet fleet({.nodes = 3, .persistence = Persistence::always, .adopted = true});
  for (const std::size_t node : {0U, 1U}) {
    fleet.run(node, {"SET", "redlock:node:clock", "moved", "PX", "60000"});
  }
  const Client late = start_client(careful(fleet));
  const auto refused = late.lock("a").acquire();
  REQUIRE(code_of(refused) == Errc::no_quorum);
  for (const std::size_t node : {0U, 1U}) {
    const NodeVote& vote = refused.error().votes.at(node);
    CHECK(vote.cause == Cause::clock_moved);
    CHECK(contains(vote.detail, "another client saw its clock move"));
    fleet.run(node, {"DEL", "redlock:node:clock"});
  }
  const Client later = start_client(careful(fleet));
  CHECK(later.lock("a").acquire({.wait = patience}).has_value());
}

TEST_CASE("nodes that nobody has adopted do not vote, until somebody adopts them") {
  const Fleet fleet({.nodes = 3, .persistence = Persistence::always});
  const Client client = start_client(careful(fleet));
  RedLock lock = client.lock("a");
  const auto lease = lock.acquire();
  REQUIRE(code_of(lease) == Errc::no_quorum);
  CHECK(contains(lease.error().message,
                 "it has no marker; run redlock adopt if the set is new, with --replaced NODE if"));
  // Two of three decide; the third may not have been connected yet.
  const auto quarantined =
      std::ranges::count(lease.error().votes, Cause::quarantined, &NodeVote::cause);
  CHECK(quarantined >= 2);
  CHECK_FALSE(is_locked_on(fleet, 0, "a"));

  auto waiting = lock.async_acquire({.wait = forever}).as_future();
  const Client other = start_client(careful(fleet));
  for (const NodeAdoption& node : must(Admin(other).adopt())) {
    CHECK(node.adoption == Adoption::written);
  }
  CHECK(get_soon(waiting).has_value());
}

TEST_CASE(
    "an adopted node votes at once after a restart if it is durable, and waits if it is not") {
  Fleet durable({.nodes = 3, .persistence = Persistence::always, .adopted = true});
  const Client client = start_client(careful(durable));
  CHECK(client.lock("a").acquire({.wait = patience}).has_value());
  durable.restart(0);
  durable.restart(1);
  CHECK(client.lock("a").acquire({.wait = patience}).has_value());

  const Fleet forgetful({.nodes = 3, .adopted = true});
  const auto refused = start_client(careful(forgetful)).lock("a").acquire();
  REQUIRE(code_of(refused) == Errc::no_quorum);
  CHECK(contains(refused.error().message, "it was restarted and may have forgotten locks"));
}

TEST_CASE("of three nodes two that were wiped grant nothing, though a lock was held on them") {
  Fleet fleet({.nodes = 3, .persistence = Persistence::always, .adopted = true});
  const Client holder = start_client(careful(fleet));
  RedLock held = holder.lock("a");
  const Lease lease = must(held.acquire({.lease = 30s}));
  fleet.restart(0, Data::empty);
  fleet.restart(1, Data::empty);
  const Client other = start_client(careful(fleet));
  std::string message;
  // A minute and a second, less what has passed since the client first saw the node.
  const std::string words = "quarantined, votes in ";
  REQUIRE(eventually([&] {
    const auto second = other.lock("a").acquire();
    REQUIRE(code_of(second) == Errc::no_quorum);
    message = second.error().message;
    return contains(message, words);
  }));
  const int left = std::stoi(message.substr(message.find(words) + words.size()));
  CHECK(left > 0);
  CHECK(left <= 62);
  CHECK(lease.valid());
}

/// A client that waits for it has seen that the node has forgotten.
bool is_pending(const Fleet& fleet, std::size_t node) {
  return eventually([&] { return fleet.run(node, {"EXISTS", "redlock:node:notes"}) == "1"; });
}

TEST_CASE("a client without quarantine takes no lock from nodes of a set that has markers") {
  Fleet fleet({.nodes = 3, .persistence = Persistence::always, .adopted = true});
  const Client holder = start_client(careful(fleet));
  RedLock held = holder.lock("a");
  const Lease lease = must(held.acquire({.lease = 30s}));
  const Client before = start_client(fleet);  // has seen the markers
  const auto at_once = before.lock("b").acquire();
  REQUIRE(code_of(at_once) == Errc::no_quorum);
  CHECK(contains(at_once.error().message, "runs without quarantine"));
  fleet.run(0, {"FLUSHALL"});
  fleet.restart(1, Data::empty);
  CHECK_FALSE(before.lock("a").acquire());
  // One that never saw them finds that others wait for them.
  CHECK_FALSE(holder.lock("c").acquire());
  REQUIRE(is_pending(fleet, 0));
  REQUIRE(is_pending(fleet, 1));
  const Client after = start_client(fleet);
  const auto overlap = after.lock("a").acquire();
  REQUIRE(code_of(overlap) == Errc::no_quorum);
  CHECK(std::ranges::count(overlap.error().votes, Cause::incompatible, &NodeVote::cause) >= 2);
  CHECK(contains(overlap.error().message, "use Quarantine::on"));
  CHECK(lease.valid());
}

TEST_CASE("a client without quarantine gives up nodes on which another begins to wait") {
  const Fleet fleet({.nodes = 3, .persistence = Persistence::always});
  const Client careless = start_client(fleet);
  warm_up(careless, fleet);
  const Client other = start_client(careful(fleet));
  for (const std::size_t node : {0U, 1U, 2U}) REQUIRE(is_pending(fleet, node));
  const auto refused = careless.lock("a").acquire();
  REQUIRE_FALSE(refused.has_value());
  CHECK(contains(refused.error().message, "marker"));
}

TEST_CASE("a node of another set does not vote, also if it is adopted into that while connected") {
  const Fleet fleet({.nodes = 3, .persistence = Persistence::always, .adopted = true});
  fleet.run(0, {"HSET", "redlock:node", "set", "other"});
  const Client client = start_client(careful(fleet));
  // The node may have granted the first lock before both others were seen; no more.
  must(client.lock("first").acquire({.wait = patience}));
  const Lease lease = must(client.lock("later").acquire({.wait = patience}));
  CHECK_FALSE(is_locked_on(fleet, 0, "later"));
  fleet.run(1, {"HSET", "redlock:node", "set", "other"});
  const auto refused = client.lock("a").acquire();
  REQUIRE(code_of(refused) == Errc::no_quorum);
  CHECK(contains(refused.error().message, "names set other, those of a quorum name set redlock-"));
  CHECK_FALSE(is_locked_on(fleet, 0, "a"));
  CHECK_FALSE(is_locked_on(fleet, 1, "a"));
}

TEST_CASE("a client with another longest lease or list than its nodes is told both values") {
  const Fleet fleet({.nodes = 3, .persistence = Persistence::always, .adopted = true});
  const auto refusal = [](ClientOptions options) {
    const Client client = start_client(std::move(options));
    const auto marked = must(Admin(client).marked_set());
    REQUIRE(marked);
    CHECK(marked->nodes == 3);
    CHECK(marked->max_lease == 60s);
    const auto lease = client.lock("a").acquire({.wait = forever});
    REQUIRE_FALSE(lease);
    CHECK(lease.error().is_configuration());
    return lease.error().message;
  };
  ClientOptions longer = careful(fleet);
  longer.max_lease = 2min;
  CHECK(contains(refusal(longer), "its marker says max_lease_ms 60000, this client 120000"));
  ClientOptions fewer = careful(fleet);
  fewer.nodes.resize(1);
  CHECK(contains(refusal(fewer), "its marker says nodes 3, this client 1"));
}

TEST_CASE("adopt leaves nodes of another set alone") {
  const Fleet fleet({.nodes = 5, .persistence = Persistence::always, .adopted = true});
  for (const std::size_t node : {1U, 3U}) fleet.run(node, {"HSET", "redlock:node", "set", "other"});
  const Client client = start_client(careful(fleet));
  const auto adopted = must(Admin(client).adopt());
  const Adoption expected[] = {Adoption::already_there, Adoption::disagrees,
                               Adoption::already_there, Adoption::disagrees,
                               Adoption::already_there};
  for (std::size_t node = 0; node < 5; ++node) CHECK(adopted[node].adoption == expected[node]);
  CHECK(contains(adopted[1].detail, "its marker names set other"));
  CHECK(fleet.run(3, {"HGET", "redlock:node", "set"}) == "other");
  const auto examination = must(Admin(client).examine());
  REQUIRE_FALSE(examination.nodes[3].problems.empty());
  CHECK(contains(examination.nodes[3].problems[0].what, "it belongs to another set"));
  CHECK(examination.fitness() == Fitness::degraded);  // the three others are a quorum
}

/// A client of these nodes of the fleet.
Client client_of(const Fleet& fleet, const std::vector<std::size_t>& nodes) {
  std::vector<std::string> uris;
  for (const std::size_t node : nodes) uris.push_back(fleet.uri(node));
  return start_client(careful_options_for(uris));
}

TEST_CASE("of two adoptions at once, with lists that share a node, one at most makes a set") {
  const Fleet fleet({.nodes = 5, .persistence = Persistence::always});
  const Client first = client_of(fleet, {0, 1, 2});
  const Client second = client_of(fleet, {2, 3, 4});
  for (int i = 0; i < 20; ++i) {
    run_on_all(fleet, {"FLUSHALL"});
    const auto made = [](const Client& client) {
      const auto adopted = must(Admin(client).adopt());
      return std::ranges::count(adopted, Adoption::written, &NodeAdoption::adoption) == 3;
    };
    bool first_made = false;
    std::jthread beside([&] { first_made = made(first); });
    const bool second_made = made(second);
    beside.join();
    CHECK_FALSE((first_made && second_made));
    std::set<std::string> sets;
    for (std::size_t node = 0; node < 5; ++node) {
      sets.insert(fleet.run(node, {"HGET", "redlock:node", "set"}));
    }
    sets.erase("(nil)");  // of nodes that are in none
    CHECK(sets.size() <= 1);
  }
}

TEST_CASE("two adoptions of one list at once make one set, at the latest when they are repeated") {
  const Fleet fleet({.nodes = 3, .persistence = Persistence::always});
  const Client client = start_client(careful(fleet));
  for (int i = 0; i < 20; ++i) {
    run_on_all(fleet, {"FLUSHALL"});
    std::jthread beside([&] { must(Admin(client).adopt()); });
    must(Admin(client).adopt());
    beside.join();
    must(Admin(client).adopt());
    for (const NodeAdoption& node : must(Admin(client).adopt())) {
      CHECK_MESSAGE(node.adoption == Adoption::already_there, node.detail);
    }
  }
}

TEST_CASE("an adoption that was interrupted is finished with its list, and with no other") {
  const Fleet fleet({.nodes = 4, .persistence = Persistence::always});
  const Client client = client_of(fleet, {0, 1, 2});
  must(Admin(client).adopt());
  const auto set = fleet.run(0, {"HGET", "redlock:node", "set"});
  for (const std::size_t node : {0U, 1U}) {
    fleet.run(node, {"HSET", "redlock:node", "forming", set});
    fleet.run(node, {"HDEL", "redlock:node", "set"});
  }
  SUBCASE("before any node was a member") {
    fleet.run(2, {"DEL", "redlock:node"});
    const auto refused = must(Admin(client_of(fleet, {0, 2, 3})).adopt());
    CHECK(refused[0].adoption == Adoption::disagrees);
    CHECK(contains(refused[0].detail, "into a set with other members"));
    CHECK(refused[1].adoption == Adoption::unconfirmed);
    CHECK(fleet.run(3, {"EXISTS", "redlock:node"}) == "0");
  }
  SUBCASE("when one of the nodes was") {}
  const auto examination = must(Admin(client).examine());
  CHECK(contains(examination.nodes[0].problems.at(0).what, "its adoption was not finished"));
  CHECK_FALSE(client.lock("a").acquire().has_value());
  must(Admin(client).adopt());
  for (const std::size_t node : {0U, 1U, 2U}) {
    CHECK(fleet.run(node, {"HGET", "redlock:node", "set"}) == set);
    CHECK(fleet.run(node, {"HEXISTS", "redlock:node", "forming"}) == "0");
  }
  CHECK(client.lock("a").acquire({.wait = patience}).has_value());
}

TEST_CASE("a blank node is left alone that names no set beside a set, or whose set is not known") {
  Fleet fleet({.nodes = 3, .persistence = Persistence::always, .adopted = true});
  const Client client = start_client(careful(fleet));
  fleet.run(2, {"HDEL", "redlock:node", "set"});
  CHECK(must(Admin(client).adopt())[2].adoption == Adoption::unconfirmed);
  CHECK(must(Admin(client).adopt({fleet.uri(2)}))[2].adoption == Adoption::written);
  CHECK(fleet.run(2, {"HGET", "redlock:node", "set"}) ==
        fleet.run(0, {"HGET", "redlock:node", "set"}));
  fleet.run(2, {"FLUSHALL"});
  fleet.kill(0);
  CHECK(must(Admin(client).adopt({fleet.uri(2)}))[2].adoption == Adoption::unconfirmed);
  fleet.kill(1);
  CHECK(must(Admin(client).adopt())[2].adoption == Adoption::unconfirmed);
  CHECK(code_of(Admin(client).adopt({"redis://elsewhere:1"})) == Errc::invalid_argument);
}

TEST_CASE("a server listed by mistake in a member's place gets no marker and no vote") {
  const Fleet fleet({.nodes = 3, .persistence = Persistence::always, .adopted = true});
  const Fleet stray({.nodes = 2, .persistence = Persistence::always});
  run_on_all(fleet, {"HSET", "redlock:node", "max_lease_ms", "1000"});
  ClientOptions options = careful(fleet);
  options.max_lease = options.lease = 1s;
  options.nodes[2] = stray.uri(0);
  const Client client = start_client(options);
  REQUIRE(is_pending(stray, 0));
  std::this_thread::sleep_for(4s);  // a quarantine of two seconds, and twice that
  CHECK(stray.run(0, {"EXISTS", "redlock:node"}) == "0");
  const auto report = must(Admin(client).inspect("a"));
  REQUIRE(report.nodes[2].quarantine);
  CHECK(contains(report.nodes[2].quarantine->why,
                 "it has no marker, and is no member of the set, whose members are " +
                     fleet.uri(0) + ", " + fleet.uri(1) + ", " + fleet.uri(2)));
}

/// What a lock protects: who comes in beside another, or with an older token, is noted.
class Room {
 public:
  /// Somebody takes the lock, visits, and leaves, until the thread is destroyed: also by a
  /// requirement that is not met.
  [[nodiscard]] std::jthread visitor(const Client& client, std::atomic<int>& visits) {
    return std::jthread(
        [this, &client, &visits](const std::stop_token& end) { visit(client, visits, end); });
  }
  [[nodiscard]] int wrong() const { return wrong_; }

 private:
  void visit(const Client& client, std::atomic<int>& visits, const std::stop_token& end) {
    while (!end.stop_requested()) {
      auto lease = client.lock("room").acquire({.wait = patience});
      if (!lease) continue;
      if (occupied_.exchange(true)) ++wrong_;
      if (last_token_.exchange(lease->token()) >= lease->token()) ++wrong_;
      occupied_ = false;
      ++visits;
      (void)lease->release();
    }
  }

  std::atomic<bool> occupied_{false};
  std::atomic<std::uint64_t> last_token_{0};
  std::atomic<int> wrong_{0};
};

TEST_CASE("a node moves while clients of the old list and of the new one take one lock in turn") {
  Fleet fleet({.nodes = 3, .persistence = Persistence::always, .adopted = true});
  const Fleet spare({.nodes = 1, .persistence = Persistence::always});
  run_on_all(fleet, {"HSET", "redlock:node", "max_lease_ms", "6000"});
  ClientOptions old_list = careful(fleet);
  old_list.max_lease = old_list.lease = 6s;
  ClientOptions new_list = old_list;
  new_list.nodes[2] = spare.uri(0);
  const Client keeper = start_client(old_list);
  Lease kept = must(keeper.lock("kept").acquire({.wait = patience}));

  Room room;
  std::atomic<int> visits_of_old{0};
  std::atomic<int> visits_of_new{0};
  const auto more = [](std::atomic<int>& visits) {
    const int before = visits;
    return eventually([&] { return visits >= before + 20; });
  };
  {
    const Client old_one = start_client(old_list);
    const auto visitor = room.visitor(old_one, visits_of_old);
    CHECK(more(visits_of_old));
    fleet.kill(2);  // for good, and before anybody sees the new one
    const Client new_one = start_client(new_list);
    const auto newcomer = room.visitor(new_one, visits_of_new);
    CHECK(more(visits_of_new));
    std::this_thread::sleep_for(6'100ms);  // what the old node granted is over
    CHECK(spare.run(0, {"EXISTS", "redlock:node"}) == "0");
    const auto adopted =
        must(Admin(new_one).replace(fleet.uri(2), spare.uri(0), OldLeases::are_over));
    CHECK(adopted[2].adoption == Adoption::written);
    CHECK(more(visits_of_old));  // while it votes
    CHECK(more(visits_of_new));
    CHECK(eventually([&] { return is_locked_on(spare, 0, "room"); }));
    fleet.restart(2);  // it was not for good
    CHECK(more(visits_of_old));
    CHECK(more(visits_of_new));
    CHECK_FALSE(is_locked_on(fleet, 2, "room"));
  }
  CHECK(room.wrong() == 0);
  CHECK(kept.valid());
  CHECK(must(kept.release()) == Released::released);
}

TEST_CASE("members are replaced one after the other while they run, and clients that run follow") {
  Fleet fleet({.nodes = 3, .persistence = Persistence::always, .adopted = true});
  const Fleet next({.nodes = 3, .persistence = Persistence::always});
  run_on_all(fleet, {"HSET", "redlock:node", "max_lease_ms", "2000"});
  ClientOptions options = careful(fleet);
  options.max_lease = options.lease = 2s;
  const Client keeper = start_client(options);
  Lease kept = must(keeper.lock("kept").acquire({.wait = patience}));
  const Client admin = start_client(options);

  Room room;
  std::array<std::atomic<int>, 2> visits{};
  {
    const Client one = start_client(options);
    const Client other = start_client(options);
    const auto visitor = room.visitor(one, visits[0]);
    const auto rival = room.visitor(other, visits[1]);
    for (std::size_t node = 0; node < 3; ++node) {
      const auto replaced = must(Admin(admin).replace(fleet.uri(node), next.uri(node)));
      CHECK_MESSAGE(replaced[node].adoption == Adoption::waits, replaced[node].detail);
      CHECK_FALSE(is_locked_on(next, node, "kept"));
      CHECK(next.run(node, {"EXISTS", wire::redlock_layout.fence("kept")}) == "1");
      CHECK(eventually([&] { return is_locked_on(next, node, "kept"); }));
      fleet.kill(node);
    }
    for (auto& each : visits) {
      const int before = each;
      CHECK(eventually([&] { return each >= before + 20; }));
    }
  }
  CHECK(room.wrong() == 0);
  CHECK(kept.valid());
  CHECK(must(kept.release()) == Released::released);
  const auto report = must(Admin(admin).inspect("kept"));
  for (std::size_t node = 0; node < 3; ++node) CHECK(report.nodes[node].node == next.uri(node));
}

TEST_CASE("a program finds the whole set by one member, with the login of that one") {
  const Fleet fleet({.nodes = 3, .persistence = Persistence::always, .adopted = true});
  run_on_all(fleet, {"ACL", "SETUSER", "ann", "on", ">p:w/d@ %", "~*", "&*", "+@all"});
  run_on_all(fleet, {"ACL", "SETUSER", "default", "-@all", "+acl|setuser"});
  ClientOptions seeds = careful_options_for(
      {"redis://ann:p%3Aw%2Fd%40%20%25@127.0.0.1:" + std::to_string(fleet.port(1))});
  const ClientOptions whole = must(find_set(seeds));
  CHECK(whole.nodes.size() == 3);
  const Client client = start_client(whole);
  CHECK(client.lock("a").acquire({.wait = patience}).has_value());
  CHECK(must(find_set(whole)).nodes == whole.nodes);
  seeds.nodes = {"redis://nobody:word@127.0.0.1:" + std::to_string(fleet.port(0))};
  CHECK(code_of(find_set(seeds)) == Errc::no_quorum);
}

TEST_CASE("FLUSHALL takes a node's vote away in the middle of everything") {
  Fleet fleet({.nodes = 3, .persistence = Persistence::always, .adopted = true});
  const Client client = start_client(careful(fleet));
  RedLock lock = client.lock("a");
  CHECK(lock.acquire({.wait = patience}).has_value());
  fleet.run(0, {"FLUSHALL"});
  fleet.run(1, {"FLUSHALL"});
  const auto lease = lock.acquire();
  REQUIRE(code_of(lease) == Errc::no_quorum);
  CHECK(fleet.run(0, {"EXISTS", "redlock:lock:{a}"}) == "0");
  // Most have lost their data: the operator says that no old lease lives, and makes a new set.
  CHECK(must(Admin(client).adopt())[0].adoption == Adoption::unconfirmed);
  fleet.run(2, {"DEL", "redlock:node"});
  CHECK(must(Admin(client).adopt())[0].adoption == Adoption::written);
  CHECK(lock.acquire({.wait = patience}).has_value());
}

TEST_CASE("a node promoted a second time waits again") {
  const Fleet fleet({.nodes = 1, .persistence = Persistence::always, .adopted = true});
  const Fleet spare({.nodes = 1, .persistence = Persistence::always});
  demote_and_promote(fleet, 0, spare);
  {
    const Client client = start_client(careful(fleet));
    REQUIRE(must(Admin(client).adopt())[0].adoption == Adoption::already_there);  // vouched for
    CHECK(client.lock("a").acquire({.wait = patience}).has_value());
  }
  // The spare takes over, grants, and the node comes back without its newest locks.
  demote_and_promote(fleet, 0, spare);
  const Client later = start_client(careful(fleet));
  const auto lease = later.lock("a").acquire();
  REQUIRE_FALSE(lease.has_value());
  CHECK(contains(lease.error().message, "it was a replica"));
}

TEST_CASE("a change of the members does not vouch for a node that was promoted") {
  const Fleet fleet({.nodes = 3, .persistence = Persistence::always, .adopted = true});
  const Fleet spares({.nodes = 2, .persistence = Persistence::always});
  demote_and_promote(fleet, 2, spares);
  const Client client = start_client(careful(fleet));
  const auto of_marker = [&](const std::string& field) {
    return fleet.run(2, {"HGET", "redlock:node", field});
  };
  const auto epoch = of_marker("epoch");
  SUBCASE("replace") {
    must(Admin(client).replace(fleet.uri(0), spares.uri(1)));
  }
  SUBCASE("add") {
    must(Admin(client).add(spares.uri(1)));
  }
  SUBCASE("remove") {
    must(Admin(client).remove(fleet.uri(0)));
  }
  CHECK(of_marker("epoch") != epoch);
  CHECK(of_marker("vouched") == "(nil)");
}

TEST_CASE("nodes demoted and promoted on a connection that stands do not grant twice") {
  const cluster::FleetOptions settings{.nodes = 3,
                                       .persistence = Persistence::always,
                                       .adopted = true,
                                       .settings = {"repl-diskless-sync-delay 0"}};
  const Fleet fleet(settings);
  const Fleet spares(settings);
  for (const Fleet* each : {&fleet, &spares}) {
    run_on_all(*each, {"HSET", "redlock:node", "max_lease_ms", "6000", "set", "one"});
  }
  ClientOptions options = careful(fleet);
  options.max_lease = options.lease = 6s;  // a probe a second
  const Client first = start_client(options);
  const auto seen = std::make_shared<EventLog>();
  options.observer = seen;
  const Client second = start_client(options);
  warm_up(first, fleet);
  warm_up(second, fleet);
  CHECK(quarantined(*seen, fleet) == 0);
  // Of explicit length: a renewal would heal a node before a probe shows that it was a replica.
  const Lease held = must(first.lock("seat").acquire({.lease = 6s}));
  REQUIRE(soon_locked_everywhere(fleet, "seat"));
  for (const std::size_t node : {0U, 1U}) copy_data(fleet, node, spares.port(node));
  REQUIRE(nodes_with_lock(fleet, "seat") <= 1);
  REQUIRE(eventually([&] { return quarantined(*seen, fleet) == 2; }));
  // A node may be connected to once more, and cannot vote for that reason until it is.
  CHECK(eventually([&] {
    const auto taken = second.lock("seat").acquire();
    REQUIRE_FALSE(taken);
    return std::ranges::count(taken.error().votes, Cause::quarantined, &NodeVote::cause) == 2;
  }));
}

}  // namespace
}  // namespace redlock::testing
