// SPDX-License-Identifier: MIT
// Grants that go from hand to hand, on real servers: what is late of the first holder finds no way
// back, a wrong token raises nothing, and one node's damaged fence stays that node's.
#include "integration/api_fixture.hpp"
#include "support/proxy.hpp"

namespace redlock::testing {
namespace {

/// The only fence on the fleet's nodes.
std::string fence_key(const Fleet& fleet) {
  std::string key = fleet.run(0, {"KEYS", "redlock:fence:*"});
  REQUIRE(key.find('\n') == std::string::npos);
  return key;
}

std::vector<std::string> fences(const Fleet& fleet, const std::string& key) {
  std::vector<std::string> found;
  for (std::size_t node = 0; node < fleet.size(); ++node) {
    found.push_back(fleet.run(node, {"GET", key}));
  }
  return found;
}

/// A lock that every node has.
Lease on_every_node(const Client& client, const Fleet& fleet, const std::string& name) {
  Lease lease = must(client.lock(name).acquire());
  REQUIRE(eventually([&] { return nodes_with_lock(fleet, name) == fleet.size(); }));
  return lease;
}

TEST_CASE("a token that was never given is refused as such, and no fence rises") {
  const Fleet fleet({.nodes = 3});
  const Client client = start_client(fleet);
  Grant grant = on_every_node(client, fleet, "a").detach();
  const auto before = fences(fleet, fence_key(fleet));
  const std::uint64_t token = grant.token;
  for (const std::uint64_t wrong :
       {token + 1, token + (std::uint64_t{1} << 50), (std::uint64_t{1} << 53) - 1}) {
    grant.token = wrong;
    const auto attached = client.lock("a").attach(grant);
    REQUIRE(code_of(attached) == Errc::invalid_argument);
    CHECK(contains(attached.error().message,
                   "the token " + std::to_string(wrong) + " was never given for it"));
    CHECK(contains(attached.error().message, "is below the token"));
    CHECK(fences(fleet, fence_key(fleet)) == before);
  }
  grant.token = token;
  CHECK(must(must(client.lock("a").attach(grant)).release()) == Released::released);
}

TEST_CASE("one node's damaged fence stays that node's, whatever is granted beside it") {
  const Fleet fleet({.nodes = 3});
  const Client client = start_client(fleet);
  must(on_every_node(client, fleet, "a").release());
  const std::string key = fence_key(fleet);
  const std::string damaged = "6755399441055742";  // three quarters of 2^53, less two
  fleet.run(0, {"SET", key, damaged});
  std::uint64_t last = 0;
  for (int i = 0; i < 5; ++i) {
    const Lease lease = on_every_node(client, fleet, "a");
    CHECK(lease.token() > last);
    CHECK(lease.token() < std::uint64_t{1} << 52);
    last = lease.token();
    for (const std::size_t node : {1U, 2U}) {
      CHECK(std::stoull(fleet.run(node, {"GET", key})) < std::uint64_t{1} << 52);
    }
  }
  CHECK(fleet.run(0, {"GET", key}) > damaged);
}

/// Whether each node has freed the lock and turns its former owner away: a release is told by a
/// quorum, and one that comes to the last node behind a late acquire would only free it again.
bool soon_turned_away_everywhere(const Fleet& fleet, const std::string& name,
                                 const std::string& owner) {
  return soon_free_everywhere(fleet, name) && eventually([&] {
           for (std::size_t node = 0; node < fleet.size(); ++node) {
             const auto known =
                 fleet.run(node, {"EXISTS", "redlock:forced:{" + name + "}:" + owner});
             if (known != "1") return false;
           }
           return true;
         });
}

TEST_CASE("what was on its way when a lease was detached does not revive it after its release") {
  Fleet fleet({.nodes = 3});
  Proxy proxy(fleet.port(2));
  const Client first = start_client(options_for({fleet.uri(0), fleet.uri(1), proxy.uri()}));
  warm_up(first, fleet);
  proxy.hold_requests();
  Lease lease = must(first.lock("a").acquire());
  REQUIRE_FALSE(is_locked_on(fleet, 2, "a"));
  const Grant grant = lease.detach();

  const Client second = start_client(fleet);
  must(must(second.lock("a").attach(grant)).release());
  REQUIRE(soon_turned_away_everywhere(fleet, "a", grant.owner));
  proxy.pass();
  // Behind it on the same connection.
  const Lease behind = on_every_node(first, fleet, "b");
  CHECK_FALSE(is_locked_on(fleet, 2, "a"));
}

TEST_CASE("nor after its grant was released from elsewhere") {
  Fleet fleet({.nodes = 3});
  Proxy proxy(fleet.port(2));
  const Client first = start_client(options_for({fleet.uri(0), fleet.uri(1), proxy.uri()}));
  warm_up(first, fleet);
  proxy.hold_requests();
  const Grant grant = must(first.lock("a").acquire()).detach();
  const Client second = start_client(fleet);
  CHECK(must(second.lock("a").release(grant)) == Released::released);
  REQUIRE(soon_turned_away_everywhere(fleet, "a", grant.owner));
  proxy.pass();
  const Lease behind = on_every_node(first, fleet, "b");
  CHECK_FALSE(is_locked_on(fleet, 2, "a"));
}

}  // namespace
}  // namespace redlock::testing
