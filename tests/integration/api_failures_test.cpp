// SPDX-License-Identifier: MIT
// Nodes that are killed, stopped or reset, before an attempt and in the middle of one: with two of
// five gone nothing changes for the caller; with three gone it is told so, and nothing stays
// behind.
#include "integration/api_fixture.hpp"
#include "support/proxy.hpp"

namespace redlock::testing {
namespace {

/// Nodes, each behind a proxy, so that what happens on the way can be arranged exactly.
struct Arena {
  Fleet fleet{{.nodes = 5}};
  Proxies proxies = proxies_of(fleet);
  Client client = start_client(options_for(uris_of(proxies)));

  Arena() { warm_up(client, fleet); }
};

struct Fault {
  const char* name;
  void (*strike)(Arena&, std::size_t node);
};
constexpr std::array all_faults{
    Fault{"killed", [](Arena& arena, std::size_t node) { arena.fleet.kill(node); }},
    Fault{"stopped", [](Arena& arena, std::size_t node) { arena.fleet.pause(node); }},
    Fault{"resetting", [](Arena& arena, std::size_t node) { arena.proxies[node]->reset_all(); }}};

TEST_CASE("two of five nodes that go in the middle of an attempt change nothing") {
  for (const Fault& fault : all_faults) {
    CAPTURE(fault.name);
    Arena arena;
    std::vector<std::size_t> received;
    for (const auto& proxy : arena.proxies) {
      received.push_back(proxy->request_bytes());
      proxy->hold();
    }
    auto acquiring = arena.client.lock("seat").async_acquire().as_future();
    for (std::size_t node = 0; node < 5; ++node) {
      REQUIRE(arena.proxies[node]->await_request_bytes(received[node] + 1));
    }
    for (const std::size_t node : {1U, 3U}) fault.strike(arena, node);
    for (const std::size_t node : {0U, 2U, 4U}) arena.proxies[node]->pass();

    Lease lease = must(get_soon(acquiring));
    must(lease.extend(40s));
    CHECK(must(lease.release()) == Released::released);
  }
}

TEST_CASE("three of five nodes that go in the middle of an attempt leave nothing behind") {
  Arena arena;
  for (const auto& proxy : arena.proxies) proxy->hold_replies();  // the nodes do grant
  auto acquiring = arena.client.lock("seat").async_acquire().as_future();
  REQUIRE(soon_locked_everywhere(arena.fleet, "seat"));
  for (const std::size_t node : {0U, 2U, 4U}) arena.proxies[node]->reset_all();
  for (const auto& proxy : arena.proxies) proxy->pass();

  CHECK(code_of(get_soon(acquiring)) == Errc::no_quorum);
  CHECK(soon_free_everywhere(arena.fleet, "seat"));
}

TEST_CASE("without three of five nodes there is no quorum; who waits is served when they return") {
  Fleet fleet({.nodes = 5});
  const Client client = start_client(fleet);
  warm_up(client, fleet);
  for (const std::size_t node : {0U, 2U, 4U}) fleet.kill(node);

  const auto result = client.lock("seat").acquire();
  CHECK(code_of(result) == Errc::no_quorum);
  const Error& error = result.error();
  CHECK_FALSE(error.is_configuration());
  REQUIRE(error.votes.size() == 5);
  for (std::size_t node = 0; node < 5; ++node) {
    CHECK(error.votes[node].node == fleet.uri(node));
    if (node % 2 == 0) CHECK(error.votes[node].vote == Vote::unavailable);
  }
  CHECK_MESSAGE(contains(error.message, "no quorum for 'seat'"), error.message);
  CHECK_MESSAGE(contains(error.message, fleet.uri(0)), error.message);
  CHECK(soon_free_everywhere(fleet, "seat"));

  auto acquiring = client.lock("seat").async_acquire({.wait = forever}).as_future();
  CHECK(code_of(client.lock("other").acquire()) == Errc::no_quorum);
  for (const std::size_t node : {0U, 2U, 4U}) fleet.restart(node);
  CHECK(must(get_soon(acquiring)).valid());
}

}  // namespace
}  // namespace redlock::testing
