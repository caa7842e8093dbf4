// SPDX-License-Identifier: MIT
// Nodes that are killed, stopped or reset, before an attempt and in the middle of one: with two of
// five gone nothing changes for the caller; with three gone it is told so, and nothing stays
// behind.
#include "integration/api_fixture.hpp"
#include "support/proxy.hpp"

namespace redlock::testing {
namespace {

enum class Fault { killed, stopped, resetting };
constexpr std::array all_faults = {Fault::killed, Fault::stopped, Fault::resetting};

const char* to_string(Fault fault) {
  switch (fault) {
    case Fault::killed:
      return "killed";
    case Fault::stopped:
      return "stopped";
    case Fault::resetting:
      return "resetting";
  }
  return "";
}

/// Five nodes, each behind a proxy, so that what happens on the way can be arranged exactly.
struct Arena {
  Fleet fleet{{.nodes = 5}};
  Proxies proxies = proxies_of(fleet);

  [[nodiscard]] ClientOptions options() const { return options_for(uris_of(proxies)); }

  void strike(std::size_t node, Fault fault) {
    switch (fault) {
      case Fault::killed:
        return fleet.kill(node);
      case Fault::stopped:
        return fleet.pause(node);
      case Fault::resetting:
        return proxies[node]->reset_all();
    }
  }
};

TEST_CASE("two of five nodes that go in the middle of an attempt change nothing") {
  for (const Fault fault : all_faults) {
    CAPTURE(to_string(fault));
    Arena arena;
    const Client client = start_client(arena.options());
    warm_up(client, arena.fleet);

    std::vector<std::size_t> received;
    for (const auto& proxy : arena.proxies) {
      received.push_back(proxy->request_bytes());
      proxy->hold();
    }
    auto acquiring = client.lock("seat").async_acquire().as_future();
    for (std::size_t node = 0; node < 5; ++node) {
      REQUIRE(arena.proxies[node]->await_request_bytes(received[node] + 1));
    }
    arena.strike(1, fault);
    arena.strike(3, fault);
    for (const std::size_t node : {0U, 2U, 4U}) arena.proxies[node]->pass();

    Lease lease = must(get_soon(acquiring));
    must(lease.extend(40s));
    CHECK(must(lease.release()) == Released::released);
  }
}

TEST_CASE("with three of five nodes killed there is no quorum, and nothing stays on the others") {
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
}

TEST_CASE("with three of five nodes stopped there is no quorum, nor a lock when they resume") {
  Fleet fleet({.nodes = 5});
  ClientOptions options = options_for(fleet.uris());
  options.node_timeout = 250ms;
  const Client client = start_client(options);
  const Client patient = start_client(fleet);
  warm_up(patient, fleet);
  REQUIRE(eventually([&] { return client.lock("warm-up").acquire().has_value(); }));
  for (const std::size_t node : {0U, 2U, 4U}) fleet.pause(node);

  const auto result = client.lock("seat").acquire();
  CHECK(code_of(result) == Errc::no_quorum);
  CHECK(result.error().votes[0].cause == Cause::timed_out);
  CHECK(soon_free_everywhere(fleet, "seat"));  // on those that answer

  for (const std::size_t node : {0U, 2U, 4U}) fleet.resume(node);
  CHECK(soon_free_everywhere(fleet, "seat"));
  // The lock is there for somebody else at once; with what was left it would be refused.
  Lease lease = must(patient.lock("seat").acquire({.wait = 30s}));
  CHECK(nodes_with_lock(fleet, "seat") >= 3);
  CHECK(must(lease.release()) == Released::released);
}

TEST_CASE("three of five nodes that go in the middle of an attempt leave nothing behind") {
  Arena arena;
  const Client client = start_client(arena.options());
  warm_up(client, arena.fleet);
  std::vector<std::size_t> received;
  for (const auto& proxy : arena.proxies) {
    received.push_back(proxy->request_bytes());
    proxy->hold_replies();  // the nodes do grant
  }
  auto acquiring = client.lock("seat").async_acquire().as_future();
  REQUIRE(eventually([&] { return nodes_with_lock(arena.fleet, "seat") == 5; }));
  for (const std::size_t node : {0U, 2U, 4U}) arena.proxies[node]->reset_all();
  for (const auto& proxy : arena.proxies) proxy->pass();

  CHECK(code_of(get_soon(acquiring)) == Errc::no_quorum);
  CHECK(soon_free_everywhere(arena.fleet, "seat"));
}

TEST_CASE("who waits through the loss of three nodes is served when they come back") {
  Fleet fleet({.nodes = 5});
  const Client client = start_client(fleet);
  for (const std::size_t node : {0U, 2U, 4U}) fleet.kill(node);
  auto acquiring = client.lock("seat").async_acquire({.wait = forever}).as_future();
  CHECK(code_of(client.lock("other").acquire()) == Errc::no_quorum);
  for (const std::size_t node : {0U, 2U, 4U}) fleet.restart(node);
  CHECK(must(get_soon(acquiring)).valid());
}

}  // namespace
}  // namespace redlock::testing
