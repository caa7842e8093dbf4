// SPDX-License-Identifier: MIT
// A network that delivers what a lost connection carried after the next one was made.
#include <doctest/doctest.h>

#include "cluster/fleet.hpp"
#include "net_link_fixture.hpp"
#include "support/proxy.hpp"

using namespace redlock::net;
using namespace redlock::wire;
using namespace redlock::testing;
using redlock::engine::Delivery;
namespace engine = redlock::engine;

TEST_CASE("what a lost connection still carries is not run once the next one is up") {
  const redlock::cluster::Fleet fleet({.nodes = 1});
  Proxy network(fleet.port(0));
  LinkFixture link(network.uri(), [](Link::Config& config) { config.silence = milliseconds(50); });
  link.run_until_up();
  network.strand();
  const std::size_t before = network.request_bytes();
  link.submit(1, LinkFixture::acquire());
  link.run_until([&] { return network.request_bytes() > before && !link.replies.empty(); });
  CHECK(unavailable(link.replies[0].second).delivery == Delivery::unknown);
  link.run_until([&] {
    return !link.replies.empty() &&
           std::holds_alternative<engine::NotHeld>(link.call(LinkFixture::release()));
  });
  network.deliver_late();
  REQUIRE(network.await_late());
  CHECK(fleet.run(0, {"EXISTS", "redlock:lock:{n}"}) == "0");
}
