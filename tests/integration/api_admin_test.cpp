// SPDX-License-Identifier: MIT
// Admin against real nodes: force_release, that is what each node did, and that nobody else is
// touched (how a holder learns of it: api_leases_test.cpp, cli_locks_test.cpp); and the note of who
// holds a lock, beside the owner, which the protocol never reads.
#include "integration/api_fixture.hpp"

namespace redlock::testing {
namespace {

TEST_CASE("what is not held by redlock on a quorum of nodes is not forced") {
  const Fleet fleet({.nodes = 3});
  const Client client = start_client(fleet);
  const auto forced = must(Admin(client).force_release("nobody's"));
  CHECK(forced.outcome == Forced::nothing_held);
  CHECK(forced.owner.empty());
  CHECK(forced.confirmed == 0);
  CHECK(code_of(Admin(client).force_release("{}")) == Errc::invalid_argument);

  // The rest of an attempt on a minority is left to end by itself.
  fleet.run(0, {"HSET", "redlock:lock:{rest}", std::string(32, 'e'), "1"});
  CHECK(must(Admin(client).force_release("rest")).outcome == Forced::nothing_held);
  CHECK(nodes_with_lock(fleet, "rest") == 1);

  for (const std::size_t node : {0U, 1U}) {
    fleet.run(node, {"HSET", "redlock:lock:{foreign}", "somebody", "1"});
  }
  CHECK(code_of(Admin(client).force_release("foreign")) == Errc::invalid_argument);
  CHECK(nodes_with_lock(fleet, "foreign") == 2);
}

TEST_CASE("a force says of each node what became of the lock there; of a quorum if it is known") {
  Fleet fleet({.nodes = 3});
  const Client client = start_client(fleet);
  const Lease first = lock_everywhere(client, fleet, "a", {.lease = 50s});
  const Lease second = lock_everywhere(client, fleet, "b", {.lease = 50s});
  REQUIRE(fleet.run(0, {"DEL", "redlock:lock:{a}"}) == "1");
  fleet.kill(2);
  const auto forced = must(Admin(client).force_release("a"));
  CHECK(forced.outcome == Forced::released);
  CHECK(forced.removed == 1);
  CHECK(forced.confirmed == 2);
  CHECK(forced.nodes[0].what == ForcedHere::not_held);
  CHECK(forced.nodes[1].what == ForcedHere::removed);
  CHECK(forced.nodes[2].what == ForcedHere::unreachable);

  fleet.kill(1);
  const auto unknown = must(Admin(client).force_release("b"));
  CHECK(unknown.outcome == Forced::unknown);
  CHECK(unknown.owner == second.owner());
  CHECK(unknown.removed == 1);
  CHECK(unknown.confirmed == 1);
  CHECK(unknown.nodes[0].what == ForcedHere::removed);
  CHECK(unknown.nodes[1].what == ForcedHere::unreachable);
  CHECK(unknown.nodes[1].trouble.cause != Cause::none);
}

TEST_CASE("what remembers a forced owner is no lock, keeps its grant out, and ends by itself") {
  const Fleet fleet({.nodes = 3});
  const Client client = start_client(fleet);
  const Grant grant = lock_everywhere(client, fleet, "a").detach();
  REQUIRE(must(Admin(client).force_release("a")).outcome == Forced::released);
  REQUIRE(soon_free_everywhere(fleet, "a"));
  const auto attached = client.lock("a").attach(grant);
  REQUIRE(code_of(attached) == Errc::lost);
  CHECK(contains(attached.error().message, "by force"));
  CHECK(must(Admin(client).list()).locks.empty());
  CHECK(must(Admin(client).list("*forced*")).locks.empty());
  CHECK(must(Admin(client).inspect("a")).verdict == Verdict::free);
  // max_lease, 60 s, 1 % of it, 2 ms, and a second.
  const auto left = std::stoll(fleet.run(0, {"PTTL", "redlock:forced:{a}:" + grant.owner}));
  CHECK(left > 0);
  CHECK(left <= 61'602);
}

const std::string lock_key = "redlock:lock:{a}";

TEST_CASE("a node that is healed gets the note of the grant, and it goes with the lock") {
  const Fleet fleet({.nodes = 3});
  const Client client =
      start_client(fleet, [](ClientOptions& options) { options.label = "healer"; });
  Lease lease = lock_everywhere(client, fleet, "a", {.lease = 50s});
  const auto note = fleet.run(1, {"HGET", lock_key, "@"});
  CHECK(contains(note, " healer"));
  REQUIRE(fleet.run(1, {"DEL", lock_key}) == "1");
  must(lease.extend(51s));
  REQUIRE(soon_locked_everywhere(fleet, "a"));
  CHECK(fleet.run(1, {"HGET", lock_key, "@"}) == note);
  CHECK(must(lease.release()) == Released::released);
  CHECK(soon_free_everywhere(fleet, "a"));
}

TEST_CASE("a note that somebody wrote steers nothing, and alone it keeps everybody out") {
  const Fleet fleet({.nodes = 1});
  const Client client = start_client(fleet);
  fleet.run(0, {"HSET", lock_key, "@", "5 6 host label"});
  CHECK(code_of(client.lock("a").acquire()) == Errc::contended);
  CHECK(must(Admin(client).inspect("a")).verdict != Verdict::free);

  const std::string stranger(32, 'e');
  fleet.run(0, {"HSET", lock_key, stranger, "1", "@", "nonsense"});
  auto report = must(Admin(client).inspect("a"));
  CHECK(report.verdict == Verdict::held);
  CHECK(report.owner == stranger);
  CHECK_FALSE(report.holder);

  fleet.run(0, {"HSET", lock_key, "@", "5 6 ho\x1bst la\rbel\x07"});
  report = must(Admin(client).inspect("a"));
  REQUIRE(report.holder);
  for (const char c : report.holder->host + report.holder->label) {
    CHECK(static_cast<unsigned char>(c) >= 0x20);
  }
  CHECK(report.holder->pid == 6);
}

}  // namespace
}  // namespace redlock::testing
