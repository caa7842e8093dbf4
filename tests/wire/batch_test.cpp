// SPDX-License-Identifier: MIT
// Holds of one turn travel in one call, and so do releases: each gets its own answer, whatever is
// wrong with another, and stays behind what was sent before it.
#include <numeric>

#include "wire/encoded_command.hpp"
#include "wire/rig.hpp"

using namespace redlock::wire;
using redlock::engine::Form;

namespace {

using Calls = std::vector<std::string>;

/// The script calls that the node was sent, in their order.
Calls calls_of(const LinkRig& rig) {
  Calls calls;
  for (const RedisCommand& command : rig.commands) {
    if (auto call = call_in(command); !call.empty()) calls.push_back(std::move(call));
  }
  return calls;
}

/// How many locks the call of this script is about; 0: it is another call.
std::size_t locks_in(const RedisCommand& command, const std::string& script) {
  const std::string call = call_in(command);
  return call.starts_with(script) ? std::stoul(call.substr(script.size())) : 0;
}

/// Answers every hold of a call with held, and acquires with granted.
std::string holding(const RedisCommand& command) {
  const std::size_t locks = locks_in(command, "hold ");
  if (locks == 0) return healthy(command);
  return array(std::vector<std::string>(locks, array({integer(1), integer(7)})));
}

/// Answers every release of a call with released.
std::string releasing(const RedisCommand& command) {
  const std::size_t locks = locks_in(command, "release ");
  return locks == 0 ? holding(command) : array(std::vector<std::string>(locks, integer(1)));
}

/// By a call that waits.
engine::AcquireCommand waiting(const std::string& name, std::uint64_t owner) {
  auto acquire = LinkRig::acquire(name, owner);
  acquire.in_order = true;
  acquire.place.line = 1;
  return acquire;
}

/// 1, 2, ... up to the last.
Numbers all_to(std::uint64_t last) {
  Numbers numbers(last);
  std::iota(numbers.begin(), numbers.end(), 1);
  return numbers;
}

engine::ReleaseCommand alone(const std::string& name) {
  auto release = LinkRig::release(name);
  release.alone = true;
  return release;
}

}  // namespace

TEST_CASE("holds of one turn go in calls of a hundred, releases too, each answered in its order") {
  for (const bool holds : {true, false}) {
    ConnectedRig rig(releasing);
    for (std::uint64_t i = 1; i <= 250; ++i) {
      const std::string name = "n" + std::to_string(i);
      if (holds) {
        rig.submit(i, LinkRig::hold(name));
      } else {
        rig.submit(i, LinkRig::release(name));
      }
    }
    rig.run();
    CHECK(rig.answered() == all_to(250));
    for (const auto& entry : rig.replies) {
      CHECK(std::holds_alternative<engine::Held>(entry.second) == holds);
      CHECK(std::holds_alternative<engine::ReleasedHere>(entry.second) != holds);
    }
    const std::string script = holds ? "hold " : "release ";
    CHECK(calls_of(rig) == Calls{script + "100", script + "100", script + "50"});
  }
}

TEST_CASE("what is asked between two holds stays between them") {
  ConnectedRig rig(holding);
  rig.submit(1, LinkRig::hold("a"));
  rig.submit(2, LinkRig::acquire("b"));
  rig.submit(3, LinkRig::hold("c"));
  rig.ask({"PING"});
  rig.submit(4, LinkRig::hold("d"));
  rig.run();
  CHECK(rig.answered() == all_to(4));
  CHECK(calls_of(rig) == Calls{"hold 1", "acquire", "hold 1", "hold 1"});
}

TEST_CASE("a call that fails as a whole answers each of its holds, and NOSCRIPT each") {
  ConnectedRig rig([](const RedisCommand& command) {
    if (call_in(command) == "hold 2") return error("NOSCRIPT No matching script");
    if (call_in(command) == "hold 3") return error("BUSY Redis is busy running a script");
    return healthy(command);
  });
  rig.submit_all({LinkRig::hold("a"), LinkRig::hold("b")});
  CHECK(rig.answered() == all_to(2));
  for (const auto& entry : rig.replies) {
    CHECK(std::holds_alternative<engine::NoScript>(entry.second));
  }
  rig.replies.clear();
  rig.submit_all({LinkRig::hold("a"), LinkRig::hold("b"), LinkRig::hold("c")});
  CHECK(rig.answered() == all_to(3));
  for (std::size_t i = 0; i < 3; ++i) CHECK(rig.fault(i).cause == Cause::busy);
}

TEST_CASE("an answer with too few elements, or a bad one, leaves no command without its reply") {
  const std::string held = array({integer(1), integer(7)});
  const std::pair<const char*, std::string> cases[] = {
      {"hold 2", array({held})},
      {"hold 2", array({held, array({integer(9)})})},
      {"release 2", array({integer(1)})},
      {"release 2", array({integer(1), integer(-4'294'967'297)})},
      {"release 2", array({array({integer(1)}), array({integer(1)})})}};
  for (const auto& entry : cases) {
    ConnectedRig rig([&entry](const RedisCommand& command) {
      return call_in(command) == entry.first ? entry.second : healthy(command);
    });
    if (std::string_view(entry.first) == "hold 2") {
      rig.submit_all({LinkRig::hold("a"), LinkRig::hold("b")});
    } else {
      rig.submit_all({LinkRig::release("a"), LinkRig::release("b")});
    }
    CHECK(rig.downs.at(0).cause == Cause::protocol_error);
    CHECK(rig.answered() == all_to(2));
    CHECK(rig.fault(1).delivery == Delivery::unknown);
  }
}

TEST_CASE("a script error over one lock of a call fails no other, unless the node is a replica") {
  for (const char* words :
       {"OOM command not allowed", "READONLY You can't write against a read only replica."}) {
    ConnectedRig rig([words](const RedisCommand& command) {
      if (call_in(command) != "hold 2") return healthy(command);
      return array({error(words), array({integer(1), integer(7)})});
    });
    rig.submit_all({LinkRig::hold("a"), LinkRig::hold("b")});
    REQUIRE(rig.replies.size() == 2);
    const bool replica = rig.fault(0).cause == Cause::read_only;
    CHECK(rig.fault(0).cause == (replica ? Cause::read_only : Cause::out_of_memory));
    CHECK(replica == std::string_view(words).starts_with("READONLY"));
    CHECK(std::holds_alternative<engine::Held>(rig.replies[1].second));
    CHECK(rig.downs.size() == (replica ? 1 : 0));
  }
}

TEST_CASE(
    "holds of a call that is refused for one name are repeated alone, that one from then on") {
  ConnectedRig rig([&](const RedisCommand& command) {
    return std::ranges::count(command, "redlock:lock:{forbidden}") > 0
               ? error("NOPERM No permissions to access a key")
               : holding(command);
  });
  const std::string names[] = {"forbidden", "a", "b"};
  for (int round = 0; round < 2; ++round) {
    rig.commands.clear();
    rig.submit_all({LinkRig::hold(names[0]), LinkRig::hold(names[1]), LinkRig::hold(names[2])});
    // As the engine does: what is answered so is sent again at once, in full.
    for (const auto& [number, reply] : std::exchange(rig.replies, {})) {
      if (std::holds_alternative<engine::NoScript>(reply)) {
        rig.submit(number, LinkRig::hold(names[number - 1]), Form::source);
      } else {
        rig.replies.emplace_back(number, reply);
      }
    }
    rig.run();
    REQUIRE(rig.replies.size() == 3);
    for (const auto& [number, reply] : std::exchange(rig.replies, {})) {
      if (number == 1) {
        CHECK(unavailable(reply).cause == Cause::permission);
      } else {
        CHECK(std::holds_alternative<engine::Held>(reply));
      }
    }
    // The repetitions go by digest: it was not for want of the script.
    for (const RedisCommand& command : rig.commands) CHECK(is(command, "EVALSHA"));
    if (round == 0) {
      CHECK(calls_of(rig) == Calls{"hold 3", "hold 1", "hold 1", "hold 1"});
    } else {
      CHECK(calls_of(rig) == Calls{"hold 1", "hold 2"});
      CHECK(rig.commands[0].at(3) == "redlock:lock:{forbidden}");
    }
  }
}

namespace {

/// Each differs from the first in one thing.
std::vector<engine::Command> all_holds() {
  const engine::HoldCommand hold{std::make_shared<const std::string>("a"), {{1, 2}}, 30s, 1, 7};
  std::vector<engine::HoldCommand> all(6, hold);
  all[1].name = std::make_shared<const std::string>("b");
  all[2].owner = {{1, 3}};
  all[3].lease = 31s;
  all[4].count = 2;
  all[5].token = 8;
  return {all.begin(), all.end()};
}

std::vector<engine::Command> all_acquires() {
  engine::AcquireCommand acquire{std::make_shared<const std::string>("a"), {{1, 2}}, 30s, 7};
  acquire.in_order = true;
  acquire.place = {.line = 3, .waited = 1ms, .turn = 500ms};
  std::vector<engine::AcquireCommand> all(12, acquire);
  all[1].name = std::make_shared<const std::string>("b");
  all[2].owner = {{1, 3}};
  all[3].lease = 31s;
  all[4].floor = 8;
  all[5].marker_wanted = true;
  all[6].in_order = false;
  all[7].place.line = 4;
  all[8].place.waited = 2ms;
  all[9].place.is_new = true;
  all[10].next_waited = 1ms;
  all[11].place.turn = 400ms;
  return {all.begin(), all.end()};
}

std::vector<engine::Command> all_releases() {
  const engine::ReleaseCommand release{std::make_shared<const std::string>("a"), {{1, 2}}};
  std::vector<engine::ReleaseCommand> all(5, release);
  all[1].owner = {{1, 3}};
  all[2].first_only = true;
  all[3].place.line = 4;
  all[4] = all[3];
  all[4].place.waited = 1ms;
  return {all.begin(), all.end()};
}

}  // namespace

TEST_CASE("a command that differs in anything is encoded anew, and the same one reads the same") {
  const auto written = [](const CallParts& parts, const engine::Command& command) {
    std::string out;
    parts.write(out, ScriptSet(ScriptSet::Flags::understood), Form::digest, script_of(command));
    return out;
  };
  std::vector<std::pair<engine::Command, CallContext>> all;
  for (const engine::Command& hold : all_holds()) all.emplace_back(hold, CallContext{});
  const CallContext context{.membership = "s", .client = "c"};
  for (const engine::Command& acquire : all_acquires()) all.emplace_back(acquire, context);
  const engine::Command last = all.at(11).first;  // with marker_wanted
  for (const engine::Command& release : all_releases()) all.emplace_back(release, context);
  all.emplace_back(last, CallContext{.membership = "t", .client = "c"});
  all.emplace_back(last, CallContext{.membership = "s", .client = "d"});
  all.emplace_back(last, CallContext{.membership = "s", .client = "c", .subscribed = true});
  EncodedCommand text;
  for (const auto& [before, its_context] : all) {
    for (const auto& [after, context_after] : all) {
      static_cast<void>(text.of(before, its_context));
      CallParts alone;
      alone.add(after, context_after);
      CHECK(written(text.of(after, context_after), after) == written(alone, after));
    }
  }
  CallParts three;
  CallParts together;
  for (const std::size_t i : {0U, 1U, 2U}) {
    three.add(all[i].first);
    together.add(text.of(all[i].first));
  }
  CHECK(together.count() == 3);
  CHECK(written(together, all[0].first) == written(three, all[0].first));
}

TEST_CASE("a release stays behind the acquire and the hold that were sent before it") {
  ConnectedRig rig(releasing);
  rig.submit_all({LinkRig::release("a"), LinkRig::release("b"), LinkRig::release("c"),
                  LinkRig::acquire("a", 2), LinkRig::release("a", 2), LinkRig::hold("d"),
                  LinkRig::release("d")});
  CHECK(rig.answered() == all_to(7));
  CHECK(calls_of(rig) == Calls{"release 3", "acquire", "release 1", "hold 1", "release 1"});
}

TEST_CASE("releases stay in one call whatever acquires of other names come between them") {
  ConnectedRig rig(releasing);
  const std::vector<engine::Command> all{
      LinkRig::release("a"), LinkRig::acquire("x"),    LinkRig::release("b"), LinkRig::acquire("y"),
      LinkRig::release("c"), LinkRig::acquire("b", 2), LinkRig::release("d")};
  for (std::uint64_t number = 1; number <= 5; ++number) rig.submit(number, all[number - 1]);
  SUBCASE("and go behind those acquires") {
    rig.run();
    CHECK(calls_of(rig) == Calls{"acquire", "acquire", "release 3"});
    CHECK(rig.answered() == Numbers{2, 4, 1, 3, 5});
  }
  SUBCASE("an acquire of one of their names stays behind them") {
    rig.submit(6, all[5]);
    rig.submit(7, all[6]);
    rig.run();
    CHECK(calls_of(rig) == Calls{"acquire", "acquire", "release 3", "acquire", "release 1"});
    CHECK(rig.answered() == Numbers{2, 4, 1, 3, 5, 6, 7});
  }
}

TEST_CASE("a script that the node has lost goes in full the next time") {
  bool lost = true;
  ConnectedRig rig([&](const RedisCommand& command) {
    if (call_in(command) != "pass") return releasing(command);
    if (is(command, "EVAL")) lost = false;
    if (lost) return error("NOSCRIPT No matching script. Please use EVAL.");
    return array({integer(1), array({integer(1), integer(7)})});
  });
  for (std::uint64_t i = 0; i < 3; ++i) {
    rig.submit_all({LinkRig::release("a", i), waiting("a", i + 1)});
    CHECK(std::holds_alternative<engine::NoScript>(rig.replies.back().second) == (i == 0));
  }
  CHECK_FALSE(is(rig.commands.back(), "EVAL"));
}

TEST_CASE("a release and the acquire of its name behind it go in one call") {
  ConnectedRig rig([](const RedisCommand& command) {
    if (call_in(command) != "pass") return releasing(command);
    return array({integer(1), array({integer(1), integer(7)})});
  });
  SUBCASE("and each gets its own reply") {
    rig.submit_all({LinkRig::release("a"), waiting("a", 2)});
    CHECK(calls_of(rig) == Calls{"pass"});
    CHECK(rig.answered() == Numbers{1, 2});
    CHECK(std::holds_alternative<engine::ReleasedHere>(rig.replies.at(0).second));
    CHECK(std::holds_alternative<engine::Granted>(rig.replies.at(1).second));
  }
  SUBCASE("and so do those of the next owner") {
    rig.submit_all({LinkRig::release("b"), LinkRig::release("a", 1), waiting("a", 2),
                    LinkRig::release("a", 2), waiting("a", 3), LinkRig::release("a", 3),
                    waiting("a", 4)});
    CHECK(calls_of(rig) == Calls{"pass", "pass", "pass", "release 1"});
    CHECK(rig.answered() == Numbers{2, 3, 4, 5, 6, 7, 1});
  }
  SUBCASE("but none of another name, nor what is between them") {
    rig.submit_all({LinkRig::release("a"), LinkRig::acquire("b"), LinkRig::release("a"),
                    LinkRig::hold("c"), waiting("a", 2)});
    CHECK(calls_of(rig) == Calls{"acquire", "release 2", "hold 1", "acquire"});
  }
  SUBCASE("the newest of several, and only that") {
    rig.submit_all({LinkRig::release("b"), LinkRig::release("c"), LinkRig::release("a"),
                    waiting("a", 2), LinkRig::release("d")});
    CHECK(calls_of(rig) == Calls{"pass", "release 3"});
    CHECK(rig.answered() == Numbers{3, 4, 1, 2, 5});
  }
  SUBCASE("nor one of those before it, once that is passed on") {
    rig.submit_all(
        {LinkRig::release("b"), LinkRig::release("a"), waiting("a", 2), waiting("b", 2)});
    CHECK(calls_of(rig) == Calls{"pass", "release 1", "acquire"});
    CHECK(rig.answered() == Numbers{2, 3, 1, 4});
  }
  SUBCASE("nor one whose name was released twice: all stay before it") {
    rig.submit_all({LinkRig::release("a"), LinkRig::release("a", 2), waiting("a", 3)});
    CHECK(calls_of(rig) == Calls{"release 2", "acquire"});
    CHECK(rig.answered() == Numbers{1, 2, 3});
  }
  SUBCASE("also one that stands in no line, but none behind a release that keeps a place") {
    auto placed = LinkRig::release("a", 2);
    placed.place.line = 5;
    rig.submit_all({LinkRig::release("a"), LinkRig::acquire("a", 2), placed, waiting("a", 3)});
    CHECK(calls_of(rig) == Calls{"pass", "release 1", "acquire"});
  }
  SUBCASE("nor one that goes alone, or in full") {
    rig.submit(1, alone("a"));
    rig.submit(2, waiting("a", 2));
    rig.submit(3, LinkRig::release("a", 2));
    rig.submit(4, waiting("a", 3), Form::source);
    rig.submit(5, LinkRig::release("a", 3), Form::source);
    rig.submit(6, waiting("a", 4));
    rig.submit(7, LinkRig::release("a", 4), Form::source);
    rig.submit(8, waiting("a", 5), Form::source);
    rig.run();
    CHECK(calls_of(rig) == Calls{"release 1", "acquire", "release 1", "acquire", "release 1",
                                 "acquire", "release 1", "acquire"});
  }
}

TEST_CASE("what is wrong with an acquire in the call of a release is its own") {
  for (const char* refusal :
       {"NOMARKER redlock: gone", "OTHERSET redlock: another",
        "READONLY You can't write against a read only replica."}) {  // which ends the connection
    ConnectedRig rig([refusal](const RedisCommand& command) {
      return call_in(command) == "pass" ? array({integer(0), error(refusal)}) : healthy(command);
    });
    rig.submit_all({LinkRig::release("a"), waiting("a", 2)});
    REQUIRE(rig.replies.size() == 2);
    CHECK(std::holds_alternative<engine::NotHeld>(rig.replies[0].second));
    CHECK(rig.fault(1).delivery == Delivery::refused);
    CHECK(rig.downs.empty() != std::string_view(refusal).starts_with("READONLY"));
  }
}

TEST_CASE("a release that is to go alone is joined with no other") {
  ConnectedRig rig(releasing);
  rig.submit_all({LinkRig::release("a"), alone("b"), LinkRig::release("c")});
  CHECK(rig.replies.size() == 3);
  CHECK(calls_of(rig) == Calls{"release 1", "release 1", "release 1"});
}
