// SPDX-License-Identifier: MIT
// What a review believes to be defects of io; each test fails before its fix.
#include <doctest/doctest.h>
#include <memory>
#include <string>
#include <thread>

#include "cluster/fleet.hpp"
#include "io/server_identities.hpp"
#include "io_core_fixture.hpp"

using namespace redlock::io;
using redlock::BootClock;
using redlock::cluster::Fleet;
namespace engine = redlock::engine;

TEST_CASE("review: a burst of releases does not break the connection of a node that reads") {
  const Fleet fleet({.nodes = 1});
  Running client({fleet.uri(0)});
  client.sink.await_up(0);
  constexpr engine::RequestId releases = 120'000;
  client.on_loop([&] {
    const auto now = BootClock::now();
    for (engine::RequestId i = 1; i <= releases; ++i) {
      client.core->engine().release(
          now, i, std::make_shared<const std::string>(std::string(100, 'x') + std::to_string(i)),
          engine::OwnerId{{1, i}}, milliseconds(30'000));
    }
  });
  const auto last = client.sink.await_finish(releases);
  INFO(client.sink.why_down(0));
  CHECK(std::get<engine::ReleaseDone>(last.result).outcome == redlock::Released::already_gone);
  // Nor does it keep everything else from the node for as long as the releases are owed.
  int granted_of_five = 0;
  for (engine::RequestId i = 1; i <= 5; ++i) {
    const auto acquired = client.acquire(releases + i, "n" + std::to_string(i));
    if (std::holds_alternative<engine::AcquireSucceeded>(acquired.result)) ++granted_of_five;
    std::this_thread::sleep_for(milliseconds(1'000));
  }
  CHECK(granted_of_five == 5);
}

TEST_CASE("review: two nodes whose addresses were exchanged come back") {
  ServerIdentities ids(2);
  CHECK_FALSE(ids.find_twin(0, "a"));
  ids.set_up(0, true);
  CHECK_FALSE(ids.find_twin(1, "b"));
  ids.set_up(1, true);
  ids.set_up(0, false);
  ids.set_up(1, false);
  bool somebody = false;
  for (int i = 0; i < 10; ++i) {
    somebody = somebody || !ids.find_twin(0, "b") || !ids.find_twin(1, "a");
  }
  // Even when both servers have been started anew since.
  for (int i = 0; i < 10; ++i) {
    somebody = somebody || !ids.find_twin(0, "c") || !ids.find_twin(1, "d");
  }
  CHECK(somebody);
}
