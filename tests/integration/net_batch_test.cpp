// SPDX-License-Identifier: MIT
// Holds of one turn travel in one call, and so do releases, on a real node: a name that the user
// may not touch costs the others nothing but a repetition.
#include "net_link_fixture.hpp"

using namespace redlock::net;

namespace {

std::string name_of(std::uint64_t number) {
  return fmt::format("n{}", number);
}

}  // namespace

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
