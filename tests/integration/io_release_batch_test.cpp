// SPDX-License-Identifier: MIT
// Releases of one turn travel in one call, as holds do, and stay behind what was sent before them.
#include <doctest/doctest.h>
#include <string>
#include <variant>
#include <vector>

#include "cluster/fleet.hpp"
#include "io_link_fixture.hpp"

using namespace redlock::net;
using namespace redlock::wire;
using redlock::Cause;
using redlock::cluster::Fleet;
namespace engine = redlock::engine;
using namespace redlock::testing;

namespace {

/// The numbers of keys of the script calls that a node was sent, in their order.
std::vector<std::string> keys_of_calls(const StubServer& node) {
  std::vector<std::string> keys;
  for (const Command& command : node.commands()) {
    if (is(command, "EVALSHA")) keys.push_back(command.at(2));
  }
  return keys;
}

/// Answers a release of several locks with released; what has two keys is an acquire or a hold.
std::string releasing(const Command& command) {
  if (!is(command, "EVALSHA")) return healthy(command);
  if (command.at(2) != "2") {
    return array(std::vector<std::string>(std::stoul(command.at(2)), integer(1)));
  }
  return command.size() == 3 + 2 + 4 ? array({array({integer(1), integer(7)})}) : healthy(command);
}

std::string lock_number(std::uint64_t number) {
  return "n" + std::to_string(number);
}

}  // namespace

TEST_CASE("releases of one turn go in calls of a hundred, and each is answered in its order") {
  StubServer node(releasing);
  LinkFixture link(node.uri());
  link.run_until_up();
  for (std::uint64_t i = 1; i <= 250; ++i) link.submit(i, LinkFixture::release(lock_number(i)));
  link.run_until([&] { return link.replies.size() == 250; });
  for (std::uint64_t i = 0; i < 250; ++i) {
    CHECK(link.replies[i].first == i + 1);
    CHECK(std::holds_alternative<engine::ReleasedHere>(link.replies[i].second));
  }
  CHECK(keys_of_calls(node) == std::vector<std::string>{"100", "100", "50"});
}

TEST_CASE("a release stays behind the acquire and the hold that were sent before it") {
  StubServer node(releasing);
  LinkFixture link(node.uri());
  link.run_until_up();
  link.submit(1, LinkFixture::release("a"));
  link.submit(2, LinkFixture::release("b"));
  link.submit(3, LinkFixture::release("c"));
  link.submit(4, LinkFixture::acquire("a", 2));
  link.submit(5, LinkFixture::release("a", 2));
  link.submit(6, LinkFixture::hold("d"));
  link.submit(7, LinkFixture::release("d"));
  link.run_until([&] { return link.replies.size() == 7; });
  for (std::size_t i = 0; i < 7; ++i) CHECK(link.replies[i].first == i + 1);
  CHECK(keys_of_calls(node) == std::vector<std::string>{"3", "3", "1", "2", "1"});
}

TEST_CASE("a release that is to go alone is joined with no other") {
  StubServer node(releasing);
  LinkFixture link(node.uri());
  link.run_until_up();
  auto alone = LinkFixture::release("b");
  alone.alone = true;
  link.submit(1, LinkFixture::release("a"));
  link.submit(2, alone);
  link.submit(3, LinkFixture::release("c"));
  link.run_until([&] { return link.replies.size() == 3; });
  CHECK(keys_of_calls(node) == std::vector<std::string>{"1", "1", "1"});
}

TEST_CASE("an answer to releases with too few elements, or a bad one, is an error for each") {
  for (const std::string& bad : {array({integer(1)}), array({integer(1), integer(2)}),
                                 array({array({integer(1)}), array({integer(1)})})}) {
    StubServer node([bad](const Command& command) -> StubReply {
      return is(command, "EVALSHA") ? bad : healthy(command);
    });
    LinkFixture link(node.uri());
    link.run_until_up();
    link.submit(1, LinkFixture::release("a"));
    link.submit(2, LinkFixture::release("b"));
    link.run_until_down();
    CHECK(link.downs[0].cause == Cause::protocol_error);
    REQUIRE(link.replies.size() == 2);
    CHECK(unavailable(link.replies[1].second).delivery == engine::Delivery::unknown);
  }
}

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
