// SPDX-License-Identifier: MIT
// Releases of one turn travel in one call, as holds do, and stay behind what was sent before them.
#include <doctest/doctest.h>
#include <string>
#include <variant>
#include <vector>

#include "cluster/fleet.hpp"
#include "net_link_fixture.hpp"

using namespace redlock::net;
using namespace redlock::wire;
using redlock::Cause;
using redlock::cluster::Fleet;
namespace engine = redlock::engine;
using namespace redlock::testing;

TEST_CASE("on a real node, each lock of a call is released by its owner only") {
  Fleet fleet({.nodes = 1});
  LinkFixture link(fleet.uri(0));
  link.run_until_up();
  for (const char* name : {"mine", "other's", "also mine"}) link.call(LinkFixture::acquire(name));
  fleet.run(0, {"SET", "redlock:lock:{wrong}", "a string"});
  const std::size_t before = link.replies.size();
  link.submit(1, LinkFixture::release("mine"));
  link.submit(2, LinkFixture::release("other's", 2));
  link.submit(3, LinkFixture::release("wrong"));
  link.submit(4, LinkFixture::release("nobody's"));
  link.submit(5, LinkFixture::release("also mine"));
  link.run_until([&] { return link.replies.size() == before + 5; });
  const auto released = [&](std::size_t i) {
    return std::holds_alternative<engine::ReleasedHere>(link.replies[before + i].second);
  };
  CHECK(released(0));
  for (std::size_t i = 1; i <= 3; ++i) CHECK_FALSE(released(i));
  CHECK(released(4));
  CHECK(fleet.run(0, {"EXISTS", "redlock:lock:{mine}", "redlock:lock:{other's}",
                      "redlock:lock:{wrong}", "redlock:lock:{also mine}"}) == "2");
}

TEST_CASE("on a real node, a lock that may not be released is refused together with others") {
  Fleet fleet({.nodes = 1, .settings = {"user ann on >pw ~* +@all"}});
  const std::string login = "redis://ann:pw@127.0.0.1:" + std::to_string(fleet.port(0));
  LinkFixture link(login);
  link.run_until_up();
  link.call(LinkFixture::acquire("a"));
  link.call(LinkFixture::acquire("b"));
  const std::size_t before = link.replies.size();
  fleet.run(0, {"ACL", "SETUSER", "ann", "resetkeys", "~redlock:lock:{a}"});
  link.submit(1, LinkFixture::release("a"));
  link.submit(2, LinkFixture::release("b"));
  link.run_until([&] { return link.replies.size() == before + 2; });
  CHECK(unavailable(link.replies[before].second).cause == Cause::permission);
  CHECK(unavailable(link.replies[before + 1].second).cause == Cause::permission);
  auto alone = LinkFixture::release("a");
  alone.alone = true;
  CHECK(std::holds_alternative<engine::ReleasedHere>(link.call(alone)));
}
