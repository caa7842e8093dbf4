// SPDX-License-Identifier: MIT
// Holds of one turn travel in one call: each gets its own answer, whatever is wrong with another.
#include <chrono>
#include <doctest/doctest.h>
#include <fmt/core.h>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cluster/fleet.hpp"
#include "io_link_fixture.hpp"
#include "wire/hold_text.hpp"

using namespace redlock::net;
using namespace redlock::wire;
using redlock::Cause;
using redlock::cluster::Fleet;
using redlock::engine::Delivery;
using redlock::engine::Form;
namespace engine = redlock::engine;
using namespace redlock::testing;
using namespace std::chrono_literals;

namespace {

bool is_hold_call(const Command& command, const std::string& keys) {
  return (is(command, "EVALSHA") || is(command, "EVAL")) && command.size() > 2 &&
         command[2] == keys;
}

std::size_t hold_calls(const StubServer& node, const std::string& keys) {
  std::size_t count = 0;
  for (const Command& command : node.commands()) count += is_hold_call(command, keys) ? 1 : 0;
  return count;
}

/// Answers every hold of a call with held, and acquires with granted.
std::string holding(const Command& command) {
  if (!is(command, "EVALSHA") && !is(command, "EVAL")) return healthy(command);
  const auto keys = static_cast<std::size_t>(std::stoul(command[2]));
  if (command.size() == 3 + keys + 3) return healthy(command);  // acquire
  return array(std::vector<std::string>(keys / 2, array({integer(1), integer(7)})));
}

std::string name_of(std::uint64_t number) {
  return fmt::format("n{}", number);
}

}  // namespace

TEST_CASE("holds of one turn go in calls of a hundred, and each is answered in its order") {
  StubServer node(holding);
  LinkFixture link(node.uri());
  link.run_until_up();
  for (std::uint64_t i = 1; i <= 250; ++i) link.submit(i, LinkFixture::hold(name_of(i)));
  link.run_until([&] { return link.replies.size() == 250; });
  for (std::uint64_t i = 0; i < 250; ++i) {
    CHECK(link.replies[i].first == i + 1);
    CHECK(std::holds_alternative<engine::Held>(link.replies[i].second));
  }
  CHECK(hold_calls(node, "200") == 2);
  CHECK(hold_calls(node, "100") == 1);
}

TEST_CASE("what is asked between two holds stays between them") {
  StubServer node(holding);
  LinkFixture link(node.uri());
  link.run_until_up();
  link.submit(1, LinkFixture::hold("a"));
  link.submit(2, LinkFixture::acquire("b"));
  link.submit(3, LinkFixture::hold("c"));
  link.run_until([&] { return link.replies.size() == 3; });
  CHECK(link.replies[0].first == 1);
  CHECK(link.replies[1].first == 2);
  CHECK(link.replies[2].first == 3);
  CHECK(hold_calls(node, "4") == 0);
}

TEST_CASE("on a real node, what is wrong with one lock of a call fails no other") {
  Fleet fleet({.nodes = 1});
  LinkFixture link(fleet.uri(0));
  link.run_until_up();
  for (const char* name : {"mine", "other's", "also mine"}) link.call(LinkFixture::acquire(name));
  fleet.run(0, {"SET", "redlock:lock:{wrong}", "a string"});
  const std::size_t before = link.replies.size();
  link.submit(1, LinkFixture::hold("mine"));
  link.submit(2, LinkFixture::hold("other's", 2));
  link.submit(3, LinkFixture::hold("wrong"));
  link.submit(4, LinkFixture::hold("nobody's"));
  link.submit(5, LinkFixture::hold("also mine"));
  link.run_until([&] { return link.replies.size() == before + 5; });
  const auto reply = [&](std::size_t i) { return link.replies[before + i].second; };
  CHECK(std::holds_alternative<engine::Held>(reply(0)));
  CHECK(std::holds_alternative<engine::Taken>(reply(1)));
  CHECK(std::get<engine::Taken>(reply(2)).foreign_type);
  CHECK(std::holds_alternative<engine::Free>(reply(3)));
  CHECK(std::holds_alternative<engine::Held>(reply(4)));
}

TEST_CASE("a call that fails as a whole answers each of its holds, and NOSCRIPT each") {
  StubServer node([](const Command& command) -> StubReply {
    if (is_hold_call(command, "4")) return error("NOSCRIPT No matching script");
    if (is_hold_call(command, "6")) return error("BUSY Redis is busy running a script");
    return healthy(command);
  });
  LinkFixture link(node.uri());
  link.run_until_up();
  for (std::uint64_t i = 1; i <= 2; ++i) link.submit(i, LinkFixture::hold(name_of(i)));
  link.run_until([&] { return link.replies.size() == 2; });
  for (const auto& [number, reply] : link.replies) {
    CHECK(std::holds_alternative<engine::NoScript>(reply));
  }
  for (std::uint64_t i = 3; i <= 5; ++i) link.submit(i, LinkFixture::hold(name_of(i)));
  link.run_until([&] { return link.replies.size() == 5; });
  for (std::size_t i = 2; i < 5; ++i) {
    CHECK(unavailable(link.replies[i].second).cause == Cause::busy);
  }
}

TEST_CASE("an answer with too few elements, or a bad one, leaves no hold without its reply") {
  for (const std::string& bad : {array({array({integer(1), integer(7)})}),
                                 array({array({integer(1), integer(7)}), array({integer(9)})})}) {
    StubServer node([bad](const Command& command) -> StubReply {
      return is_hold_call(command, "4") ? bad : healthy(command);
    });
    LinkFixture link(node.uri());
    link.run_until_up();
    link.submit(1, LinkFixture::hold("a"));
    link.submit(2, LinkFixture::hold("b"));
    link.run_until_down();
    CHECK(link.downs[0].cause == Cause::protocol_error);
    REQUIRE(link.replies.size() == 2);
    CHECK(link.replies[0].first == 1);
    CHECK(link.replies[1].first == 2);
    CHECK(unavailable(link.replies[1].second).delivery == Delivery::unknown);
  }
}

TEST_CASE("a hold that differs in anything is spelled anew, and the same one is spelled the same") {
  const auto spelled = [](const CallParts& parts) {
    std::string out;
    parts.write(out, ScriptSet(ScriptSet::Flags::understood), Form::digest, Script::hold);
    return out;
  };
  const auto name = std::make_shared<const std::string>("a");
  const engine::HoldCommand hold{name, {{1, 2}}, 30s, 1, 7};
  std::vector<engine::HoldCommand> all{hold, hold, hold, hold, hold, hold};
  all[1].name = std::make_shared<const std::string>("b");
  all[2].owner = {{1, 3}};
  all[3].lease = 31s;
  all[4].count = 2;
  all[5].token = 8;
  HoldText text;
  for (const engine::HoldCommand& before : all) {
    for (const engine::HoldCommand& after : all) {
      static_cast<void>(text.of(before));
      CallParts alone;
      alone.add(after);
      CHECK(spelled(text.of(after)) == spelled(alone));
    }
  }
  CallParts three;
  CallParts together;
  for (int i = 0; i < 3; ++i) {
    three.add(all[static_cast<std::size_t>(i)]);
    together.add(text.of(all[static_cast<std::size_t>(i)]));
  }
  CHECK(together.count() == 3);
  CHECK(spelled(together) == spelled(three));
}

TEST_CASE("one name that the user may not touch fails none of the other holds of its call") {
  Fleet fleet({.nodes = 1,
               .settings = {"user alice on >secret ~redlock:fence:* ~redlock:node* "
                            "~redlock:lock:{n* resetchannels +@all"}});
  LinkFixture owner(fleet.uri(0));
  owner.run_until_up();
  LinkFixture link("redis://alice:secret@127.0.0.1:" + std::to_string(fleet.port(0)));
  link.run_until_up();
  constexpr std::uint64_t names = 99;
  for (std::uint64_t i = 1; i <= names; ++i) owner.call(LinkFixture::acquire(name_of(i)));
  // As the engine does: what is answered so is said again at once, in full.
  const auto hold_all = [&] {
    link.replies.clear();
    link.submit(0, LinkFixture::hold("forbidden"));
    for (std::uint64_t i = 1; i <= names; ++i) link.submit(i, LinkFixture::hold(name_of(i)));
    std::map<std::uint64_t, engine::Reply> said;
    link.run_until([&] {
      for (const auto& [number, reply] : std::exchange(link.replies, {})) {
        if (std::holds_alternative<engine::NoScript>(reply)) {
          link.submit(number, LinkFixture::hold(number == 0 ? "forbidden" : name_of(number)),
                      Form::source);
        } else {
          said.emplace(number, reply);
        }
      }
      return said.size() == names + 1;
    });
    return said;
  };
  const auto calls = [&] {
    const std::string stats = fleet.run(0, {"INFO", "commandstats"});
    const auto at = stats.find("cmdstat_evalsha:");
    return stats.substr(at, stats.find('\n', at) - at);
  };
  for (int round = 0; round < 2; ++round) {
    const auto said = hold_all();
    CHECK(unavailable(said.at(0)).cause == Cause::permission);
    for (std::uint64_t i = 1; i <= names; ++i) {
      CHECK(std::holds_alternative<engine::Held>(said.at(i)));
    }
  }
  // From then on that name goes alone, and the others together: 1 and 99 in the first round,
  // refused ones apart, 1 in the second; and the acquires.
  CHECK_MESSAGE(contains(calls(), "calls=" + std::to_string(names + names + 1)), calls());
}

TEST_CASE("on a real node, a script error over one lock of a call fails no other") {
  Fleet fleet({.nodes = 1});
  const auto source = ScriptSet(ScriptSet::Flags::understood).source(Script::hold);
  for (const char* name : {"a", "b"}) {
    fleet.run(0, {"HSET", "redlock:lock:{" + std::string(name) + "}", "me", "1"});
  }
  const auto said =
      fleet.run(0, {"EVAL", source, "4", "redlock:lock:{a}", "redlock:fence:1", "redlock:lock:{b}",
                    "redlock:fence:2", "me", "1", "7", "no number", "me", "1", "7", "30000"});
  CHECK(contains(said, "user_script"));
  CHECK(fleet.run(0, {"PTTL", "redlock:lock:{a}"}) == "-1");
  CHECK(fleet.run(0, {"GET", "redlock:fence:2"}) == "7");
  StubServer node([](const Command& command) -> StubReply {
    if (!is_hold_call(command, "4")) return healthy(command);
    return array({error("OOM command not allowed"), array({integer(1), integer(7)})});
  });
  LinkFixture link(node.uri());
  link.run_until_up();
  link.submit(1, LinkFixture::hold("a"));
  link.submit(2, LinkFixture::hold("b"));
  link.run_until([&] { return link.replies.size() == 2; });
  CHECK(unavailable(link.replies[0].second).cause == Cause::out_of_memory);
  CHECK(std::holds_alternative<engine::Held>(link.replies[1].second));
}
