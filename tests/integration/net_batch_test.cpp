// SPDX-License-Identifier: MIT
// Holds of one turn travel in one call, and so do releases: each gets its own answer, whatever is
// wrong with another.
#include "net_link_fixture.hpp"
#include "support/lock_keys.hpp"

using namespace redlock::net;
using redlock::testing::eval;
using redlock::testing::joined;
using redlock::testing::LockKeys;

namespace {

std::string name_of(std::uint64_t number) {
  return fmt::format("n{}", number);
}

/// In one call: one's own lock, another owner's, a key of another type, none, and one's own again.
template <typename Command>
std::vector<engine::Reply> replies_for_five(Fleet& fleet, Command&& command) {
  LinkFixture link(fleet.uri(0));
  link.run_until_up();
  for (const char* name : {"mine", "other's", "also mine"}) link.call(LinkFixture::acquire(name));
  fleet.run(0, {"SET", "redlock:lock:{wrong}", "a string"});
  const std::size_t before = link.replies.size();
  std::uint64_t number = 0;
  for (const char* name : {"mine", "other's", "wrong", "nobody's", "also mine"}) {
    ++number;
    link.submit(number, command(name, number == 2 ? 2U : 1U));
  }
  link.run_until([&] { return link.replies.size() == before + 5; });
  std::vector<engine::Reply> replies;
  for (std::size_t i = before; i < before + 5; ++i) replies.push_back(link.replies[i].second);
  return replies;
}

}  // namespace

TEST_CASE("on a real node, what is wrong with one lock of a call fails no other") {
  Fleet fleet({.nodes = 1});
  const auto replies = replies_for_five(
      fleet, [](const char* name, std::uint64_t owner) { return LinkFixture::hold(name, owner); });
  CHECK(std::holds_alternative<engine::Held>(replies[0]));
  CHECK(std::holds_alternative<engine::Taken>(replies[1]));
  CHECK(std::get<engine::Taken>(replies[2]).foreign_type);
  CHECK(std::holds_alternative<engine::Free>(replies[3]));
  CHECK(std::holds_alternative<engine::Held>(replies[4]));
}

TEST_CASE("one name that the user may not touch fails none of the other holds of its call") {
  Fleet fleet({.nodes = 1,
               .settings = {"user alice on >secret ~redlock:fence:* ~redlock:node* "
                            "~redlock:lock:{n* ~redlock:forced:{n* resetchannels +@all"}});
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
  const auto source = ScriptSet(ScriptSet::Flags::unknown).source(script_for<engine::HoldCommand>);
  for (const char* name : {"a", "b"}) {
    fleet.run(0, {"HSET", "redlock:lock:{" + std::string(name) + "}", "me", "1"});
  }
  const LockKeys a("a");
  const LockKeys b("b");
  const auto said = fleet.run(0, eval(source, joined(a.of_hold("me"), b.of_hold("me")),
                                      {"me", "1", "7", "no number", "me", "1", "7", "30000"}));
  CHECK(contains(said, "user_script"));
  CHECK(fleet.run(0, {"PTTL", "redlock:lock:{a}"}) == "-1");
  CHECK(fleet.run(0, {"GET", b.fence}) == "7");
}

TEST_CASE("on a real node, each lock of a call is released by its owner only") {
  Fleet fleet({.nodes = 1});
  const auto replies = replies_for_five(fleet, [](const char* name, std::uint64_t owner) {
    return LinkFixture::release(name, owner);
  });
  const auto released = [&](std::size_t i) {
    return std::holds_alternative<engine::ReleasedHere>(replies[i]);
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
  fleet.run(0, {"ACL", "SETUSER", "ann", "resetkeys", "~redlock:*:{a}"});
  link.submit(1, LinkFixture::release("a"));
  link.submit(2, LinkFixture::release("b"));
  link.run_until([&] { return link.replies.size() == before + 2; });
  CHECK(unavailable(link.replies[before].second).cause == Cause::permission);
  CHECK(unavailable(link.replies[before + 1].second).cause == Cause::permission);
  auto alone = LinkFixture::release("a");
  alone.alone = true;
  CHECK(std::holds_alternative<engine::ReleasedHere>(link.call(alone)));
}
