// SPDX-License-Identifier: MIT
// redlock set max-lease on real nodes, under a lock that is held meanwhile.
#include "cli_process.hpp"

namespace redlock::testing {
namespace {

Finished at_set(const std::vector<std::string>& uris, const Arguments& arguments) {
  Variables variables = with_quarantine;
  variables.merge(nodes_variable(uris));
  auto finished = redlock(patient(arguments), variables);
  finished.out = unwrapped(finished.out);
  finished.err = unwrapped(finished.err);
  return finished;
}

/// Members with leases of up to a minute; three, as a rule.
struct Raised {
  explicit Raised(std::size_t nodes = 3)
      : fleet({.nodes = nodes, .persistence = Persistence::always, .adopted = true}) {}

  Fleet fleet;
  const std::vector<std::string> seed{fleet.uri(fleet.size() / 2)};

  Finished raise(const std::string& to) { return at_set(seed, {"set", "max-lease", to}); }
  void mark(std::size_t node, const std::string& max_lease, const std::string& epoch) const {
    fleet.run(node, {"HSET", "redlock:node", "max_lease_ms", max_lease, "epoch", epoch});
  }
  [[nodiscard]] std::string marked(std::size_t node) const {
    return fleet.run(node, {"HGET", "redlock:node", "max_lease_ms"});
  }
  [[nodiscard]] Client client(milliseconds max_lease) const {
    auto made = Client::create(
        {.nodes = fleet.uris(), .lease = 20s, .max_lease = max_lease, .node_timeout = 5s});
    REQUIRE(made);
    return std::move(*made);
  }
};

TEST_CASE_FIXTURE(Raised, "the longest lease is raised while a lock is held, and programs go on") {
  const auto running = client(60s);
  const auto lease = running.lock("a").acquire({.wait = 20s});
  REQUIRE(lease);
  const auto early = client(3min);
  const auto refused = early.lock("b").acquire({.wait = 0s});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().is_configuration());
  CHECK(
      contains(refused.error().message, "its marker says max_lease_ms 60000, this client 180000"));

  const auto done = exits_with(0, raise("3m"));
  CHECK(occurrences(done.out, "already_there") == 3);
  for (const std::size_t node : {0UL, 1UL, 2UL}) CHECK(marked(node) == "180000");
  CHECK(contains(at_set(seed, {"set", "show"}).out, "leases of up to 3m\n"));
  CHECK(lease->valid());
  CHECK(running.lock("c").acquire({.wait = 20s}).has_value());
  auto longer = early.lock("b").acquire({.lease = 3min, .wait = 20s});
  REQUIRE(eventually([&] {  // when it has read the markers once more
    if (!longer) longer = early.lock("b").acquire({.lease = 3min, .wait = 20s});
    return longer.has_value();
  }));
  CHECK(longer->remaining() > 1min);
  CHECK(lease->valid());
  // Given with the command, or taken from the nodes by a list of one.
  const Arguments long_exec{"exec", "d", "--lease", "150s", "--", "true"};
  CHECK(at_set(seed, long_exec).status == 0);
  CHECK(
      at_set(fleet.uris(), appended({"exec", "d", "--max-lease", "150s"}, {"--", "true"})).status ==
      0);
  CHECK(at_set(fleet.uris(), appended({"exec", "d", "--max-lease", "4m"}, {"--", "true"})).status ==
        78);
  exits_with(0, raise("3m"));
  exits_with(0, at_set(seed, {"doctor"}));
}

TEST_CASE_FIXTURE(Raised, "a lease is made no longer than the nodes allow by who knows no limit") {
  const auto taken = exits_with(0, at_set(fleet.uris(), {"acquire", "a", "-o", "json"}));
  const auto grant = json::parse(taken.out);
  const Arguments hold{"hold",    "a",
                       "--owner", grant["owner"].get<std::string>(),
                       "--token", std::to_string(grant["token"].get<std::uint64_t>()),
                       "--lease", "3m"};
  CHECK(contains(exits_with(78, at_set(fleet.uris(), hold)).err, "this client 180000"));
  for (const std::size_t node : {0UL, 1UL, 2UL}) {
    CHECK(std::stol(fleet.run(node, {"PTTL", "redlock:lock:{a}"})) <= 60'000);
  }
}

TEST_CASE_FIXTURE(Raised, "a longest lease that cannot be raised stays as it is") {
  CHECK(contains(exits_with(64, raise("59s")).err, "is 60000 ms, and is not made shorter"));
  CHECK(exits_with(64, raise("0s")).err.starts_with("redlock: DURATION"));
  CHECK(exits_with(0, raise("60s")).err.empty());
  fleet.run(2, {"RENAME", "redlock:node", "elsewhere"});
  CHECK(contains(exits_with(69, raise("3m")).err, "has no marker"));
  fleet.run(2, {"RENAME", "elsewhere", "redlock:node"});
  fleet.kill(2);
  const auto refused = exits_with(69, at_set(fleet.uris(), {"set", "max-lease", "3m"}));
  CHECK(contains(refused.err, "no marker was changed: " + fleet.uri(2)));
  CHECK(contains(refused.err, "every member that stays has to answer"));
  for (const std::size_t node : {0UL, 1UL}) CHECK(marked(node) == "60000");
}

TEST_CASE_FIXTURE(Raised, "what was interrupted is finished by the same command, or a longer one") {
  mark(0, "60000 180000", "7");
  CHECK(contains(exits_with(1, at_set(seed, {"doctor"})).out,
                 "its marker says max_lease_ms 60000 180000, and most say another"));
  CHECK(contains(exits_with(69, at_set(seed, {"set", "remove", fleet.uri(2)})).err,
                 "another change of the members was interrupted"));
  mark(1, "60000 180000", "7");
  CHECK(contains(exits_with(64, raise("2m")).err, "a longest lease of 180000 ms was announced"));
  mark(2, "60000 180000", "7");
  CHECK(contains(at_set(seed, {"set", "show"}).out, "leases of up to 1m (3m announced)\n"));
  CHECK(contains(exits_with(1, at_set(seed, {"doctor"})).out,
                 "leases of up to 180000 ms are announced and not in force"));
  CHECK(contains(exits_with(64, raise("2m")).err, "is not taken back"));
  exits_with(0, raise("4m"));
  for (const std::size_t node : {0UL, 1UL, 2UL}) CHECK(marked(node) == "240000");

  // In force at one, whom the others know to be told: the dead one is told later.
  for (const std::size_t node : {1UL, 2UL}) mark(node, "60000 240000", "7");
  fleet.kill(2);
  exits_with(69, at_set(fleet.uris(), {"set", "max-lease", "4m"}));
  CHECK(marked(1) == "240000");
  fleet.restart(2);
  CHECK(marked(2) == "60000 240000");
  exits_with(0, raise("4m"));
  CHECK(marked(2) == "240000");
}

TEST_CASE_FIXTURE(Raised,
                  "a member that comes back with older data does not count until it is told") {
  exits_with(0, raise("3m"));
  fleet.kill(0);
  mark(2, "60000", "1");
  const auto running = client(60s);
  const auto refused = running.lock("a").acquire({.wait = 0s});
  REQUIRE_FALSE(refused);
  fleet.restart(0);
  CHECK(running.lock("a").acquire({.wait = 20s}).has_value());
  CHECK(eventually([&] {
    return contains(at_set(fleet.uris(), {"doctor"}).out,
                    "its marker says a shorter longest lease than most");
  }));
  exits_with(0, raise("3m"));
  CHECK(marked(2) == "180000");
  exits_with(0, at_set(seed, {"doctor"}));
}

TEST_CASE_FIXTURE(Raised, "of two raises at once none makes the longest lease shorter") {
  Variables variables = with_quarantine;
  variables.merge(nodes_variable(seed));
  const auto to = [&](const char* lease) { return patient({"set", "max-lease", lease}); };
  Running one(to("3m"), variables);
  Running other(to("4m"), variables);
  // Whoever was told that it is not the only one gives the command again.
  const std::vector<int> shorter{0, 1, 64, 69};
  CHECK(std::ranges::count(shorter, one.wait().status) == 1);
  const std::vector<int> longer{0, 1, 69};
  const int status = other.wait().status;
  CHECK(std::ranges::count(longer, status) == 1);
  for (const std::size_t node : {0UL, 1UL, 2UL}) {
    CHECK((status != 0 || marked(node) == "240000"));
  }
  exits_with(0, raise("4m"));
  for (const std::size_t node : {0UL, 1UL, 2UL}) CHECK(marked(node) == "240000");
  CHECK(contains(exits_with(64, raise("3m")).err, "is 240000 ms, and is not made shorter"));
}

TEST_CASE_FIXTURE(Raised, "no member is told of longer leases if one could not write that") {
  fleet.run(2, {"CONFIG", "SET", "min-replicas-to-write", "1"});
  CHECK(contains(exits_with(69, raise("3m")).out, "not every member knows of the longer leases"));
  for (const std::size_t node : {0UL, 1UL, 2UL}) CHECK(marked(node) == "60000");
  fleet.run(2, {"CONFIG", "SET", "min-replicas-to-write", "0"});
  exits_with(0, raise("3m"));
}

TEST_CASE_FIXTURE(Raised,
                  "a member that was a replica is not told before somebody vouches for it") {
  exits_with(0, raise("3m"));
  const auto id = fleet.run(2, {"HGET", "redlock:node", "id"});
  REQUIRE(soon_replicates(fleet, 2, fleet.port(0)));
  fleet.run(2, {"REPLICAOF", "NO", "ONE"});
  fleet.run(2, {"HSET", "redlock:node", "id", id});
  mark(2, "60000", "1");
  CHECK(contains(exits_with(1, raise("3m")).out, "it was a replica, and may lack leases"));
  CHECK(marked(2) == "60000");
  exits_with(0, at_set(fleet.uris(), {"adopt"}));
  CHECK(marked(2) == "180000");
  exits_with(0, raise("4m"));
  // The word that it has forgotten nothing may be of a client that knew of no longer leases.
  mark(2, "60000", "1");
  CHECK(contains(exits_with(1, raise("4m")).out, "it was a replica, and may lack leases"));
  CHECK(marked(2) == "60000");
}

TEST_CASE_FIXTURE(Raised, "a member without its marker is left alone when the others have it") {
  exits_with(0, raise("3m"));
  fleet.run(2, {"DEL", "redlock:node"});
  const auto left = exits_with(1, raise("3m"));
  CHECK(contains(left.out, "run redlock adopt --replaced NODE"));
  CHECK(occurrences(left.out, "already_there") == 2);
}

TEST_CASE("a set of one, or of two, has longer leases, too, and one that is older undoes nothing") {
  for (const std::size_t nodes : {1UL, 2UL}) {
    CAPTURE(nodes);
    Raised set(nodes);
    exits_with(0, set.raise("3m"));
    for (std::size_t node = 0; node < nodes; ++node) CHECK(set.marked(node) == "180000");
    if (nodes == 1) continue;
    set.mark(0, "60000", "1");
    CHECK(contains(exits_with(64, set.raise("61s")).err, "is 180000 ms, and is not made shorter"));
    exits_with(0, set.raise("3m"));
    CHECK(set.marked(0) == "180000");
  }
}

TEST_CASE_FIXTURE(Raised, "a replacement takes along what was announced") {
  mark(0, "60000 180000", "7");
  const Fleet spare({.nodes = 1, .persistence = Persistence::always});
  fleet.kill(2);
  const Arguments replace{"set", "replace", fleet.uri(2), spare.uri(0), "--over"};
  exits_with(0, at_set(fleet.uris(), replace));
  for (const std::size_t node : {0UL, 1UL}) CHECK(marked(node) == "60000 180000");
  CHECK(spare.run(0, {"HGET", "redlock:node", "max_lease_ms"}) == "60000 180000");
  exits_with(0, raise("3m"));
  CHECK(spare.run(0, {"HGET", "redlock:node", "max_lease_ms"}) == "180000");
}

TEST_CASE("a set that would grant no lock for a time is told to wait") {
  const Fleet fleet({.nodes = 3, .persistence = Persistence::none, .adopted = true});
  const auto refused = exits_with(69, at_set(fleet.uris(), {"set", "max-lease", "3m"}));
  CHECK(contains(refused.err, "too few members would grant locks"));
  CHECK(contains(refused.err, "give the same command in 1"));
  CHECK(fleet.run(0, {"HGET", "redlock:node", "max_lease_ms"}) == "60000");
}

}  // namespace
}  // namespace redlock::testing
