// SPDX-License-Identifier: MIT
// Who holds a lock, as people are told: a note beside the owner, which the protocol never reads.
#include "api_fixture.hpp"

namespace redlock::testing {
namespace {

const std::string lock_key = "redlock:lock:{a}";

Client client_called(const Fleet& fleet, const std::string& label) {
  return start_client(fleet, [&](ClientOptions& options) { options.label = label; });
}

TEST_CASE("a lock says on every node which program took it, since when, and who is the next") {
  const Fleet fleet({.nodes = 3});
  const Client client = client_called(fleet, "nightly backup");
  const auto before = std::chrono::system_clock::now();
  RedLock lock = client.lock("a");
  lock.lock();
  REQUIRE(soon_locked_everywhere(fleet, "a"));

  const auto report = must(Admin(client).inspect("a"));
  REQUIRE(report.holder);
  CHECK(report.holder->label == "nightly backup");
  CHECK(report.holder->pid == static_cast<std::uint64_t>(getpid()));
  CHECK_FALSE(report.holder->host.empty());
  CHECK(report.holder->since >= std::chrono::floor<std::chrono::milliseconds>(before) - 1ms);
  CHECK(report.holder->since <= std::chrono::system_clock::now() + 1ms);
  for (const NodeLock& node : report.nodes) {
    REQUIRE(node.owners.size() == 1);
    CHECK(node.owners.front().owner == report.owner);
    CHECK(node.owners.front().count == 1);
    REQUIRE(node.holder);
    CHECK(node.holder->since == report.holder->since);
  }

  const auto list = must(Admin(client).list());
  REQUIRE(list.locks.size() == 1);
  CHECK(list.locks.front().kind == ListedAs::lock);
  REQUIRE(list.locks.front().holder);
  CHECK(list.locks.front().holder->label == "nightly backup");

  // With its note it is entered, forced and taken again like any.
  lock.lock();
  CHECK(lock.hold_count() == 2);
  CHECK(must(Admin(client).force_release("a")).outcome == Forced::released);
  const Client next = client_called(fleet, "second");
  const Lease lease = must(next.lock("a").acquire({.wait = patience}));
  const auto of_next = must(Admin(next).inspect("a"));
  CHECK(of_next.owner == lease.owner());
  REQUIRE(of_next.holder);
  CHECK(of_next.holder->label == "second");
  lock.unlock();
  lock.unlock();
}

TEST_CASE("a node that is healed gets the note of the grant, and it goes with the lock") {
  const Fleet fleet({.nodes = 3});
  const Client client = client_called(fleet, "healer");
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
