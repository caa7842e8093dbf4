// SPDX-License-Identifier: MIT
// Holds of one turn travel in one call, and so do releases: each gets its own answer, whatever is
// wrong with another, and stays behind what was sent before it.
#include <fmt/core.h>

#include "wire/encoded_hold.hpp"
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

std::string name_of(std::uint64_t number) {
  return fmt::format("n{}", number);
}

std::vector<std::uint64_t> numbers_answered(const LinkRig& rig) {
  std::vector<std::uint64_t> numbers;
  for (const auto& entry : rig.replies) numbers.push_back(entry.first);
  return numbers;
}

}  // namespace

TEST_CASE("holds of one turn go in calls of a hundred, and each is answered in its order") {
  LinkRig rig(holding);
  rig.run();
  for (std::uint64_t i = 1; i <= 250; ++i) rig.submit(i, LinkRig::hold(name_of(i)));
  rig.run();
  REQUIRE(rig.replies.size() == 250);
  for (std::uint64_t i = 0; i < 250; ++i) {
    CHECK(rig.replies[i].first == i + 1);
    CHECK(std::holds_alternative<engine::Held>(rig.replies[i].second));
  }
  CHECK(calls_of(rig) == Calls{"hold 100", "hold 100", "hold 50"});
}

TEST_CASE("what is asked between two holds stays between them") {
  LinkRig rig(holding);
  rig.run();
  rig.submit(1, LinkRig::hold("a"));
  rig.submit(2, LinkRig::acquire("b"));
  rig.submit(3, LinkRig::hold("c"));
  rig.ask({"PING"});
  rig.submit(4, LinkRig::hold("d"));
  rig.run();
  REQUIRE(rig.replies.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) CHECK(rig.replies[i].first == i + 1);
  CHECK(calls_of(rig) == Calls{"hold 1", "acquire", "hold 1", "hold 1"});
}

TEST_CASE("a call that fails as a whole answers each of its holds, and NOSCRIPT each") {
  LinkRig rig([](const RedisCommand& command) {
    if (call_in(command) == "hold 2") return error("NOSCRIPT No matching script");
    if (call_in(command) == "hold 3") return error("BUSY Redis is busy running a script");
    return healthy(command);
  });
  rig.run();
  for (std::uint64_t i = 1; i <= 2; ++i) rig.submit(i, LinkRig::hold(name_of(i)));
  rig.run();
  REQUIRE(rig.replies.size() == 2);
  for (const auto& entry : rig.replies) {
    CHECK(std::holds_alternative<engine::NoScript>(entry.second));
  }
  for (std::uint64_t i = 3; i <= 5; ++i) rig.submit(i, LinkRig::hold(name_of(i)));
  rig.run();
  REQUIRE(rig.replies.size() == 5);
  for (std::size_t i = 2; i < 5; ++i) {
    CHECK(unavailable(rig.replies[i].second).cause == Cause::busy);
  }
}

TEST_CASE("an answer with too few elements, or a bad one, leaves no hold without its reply") {
  for (const std::string& bad : {array({array({integer(1), integer(7)})}),
                                 array({array({integer(1), integer(7)}), array({integer(9)})})}) {
    LinkRig rig([bad](const RedisCommand& command) {
      return call_in(command) == "hold 2" ? bad : healthy(command);
    });
    rig.run();
    rig.submit(1, LinkRig::hold("a"));
    rig.submit(2, LinkRig::hold("b"));
    rig.run();
    CHECK(rig.downs.at(0).cause == Cause::protocol_error);
    REQUIRE(rig.replies.size() == 2);
    CHECK(rig.replies[0].first == 1);
    CHECK(rig.replies[1].first == 2);
    CHECK(unavailable(rig.replies[1].second).delivery == Delivery::unknown);
  }
}

TEST_CASE("a script error over one lock of a call fails no other") {
  LinkRig rig([](const RedisCommand& command) {
    if (call_in(command) != "hold 2") return healthy(command);
    return array({error("OOM command not allowed"), array({integer(1), integer(7)})});
  });
  rig.run();
  rig.submit(1, LinkRig::hold("a"));
  rig.submit(2, LinkRig::hold("b"));
  rig.run();
  REQUIRE(rig.replies.size() == 2);
  CHECK(unavailable(rig.replies[0].second).cause == Cause::out_of_memory);
  CHECK(std::holds_alternative<engine::Held>(rig.replies[1].second));
}

TEST_CASE(
    "holds of a call that is refused for one name are repeated alone, that one from then on") {
  const auto names = [](const RedisCommand& command) {
    return command.size() > 3 ? command[3] : std::string();
  };
  LinkRig rig([&](const RedisCommand& command) {
    for (const std::string& word : command) {
      if (word == "redlock:lock:{forbidden}") return error("NOPERM No permissions to access a key");
    }
    return holding(command);
  });
  rig.run();
  for (int round = 0; round < 2; ++round) {
    rig.commands.clear();
    rig.submit(1, LinkRig::hold("forbidden"));
    rig.submit(2, LinkRig::hold("a"));
    rig.submit(3, LinkRig::hold("b"));
    rig.run();
    // As the engine does: what is answered so is sent again at once, in full.
    for (const auto& [number, reply] : std::exchange(rig.replies, {})) {
      if (!std::holds_alternative<engine::NoScript>(reply)) {
        rig.replies.emplace_back(number, reply);
      } else if (number == 1) {
        rig.submit(number, LinkRig::hold("forbidden"), Form::source);
      } else {
        rig.submit(number, LinkRig::hold(number == 2 ? "a" : "b"), Form::source);
      }
    }
    rig.run();
    REQUIRE(rig.replies.size() == 3);
    for (const auto& entry : std::exchange(rig.replies, {})) {
      if (entry.first == 1) {
        CHECK(unavailable(entry.second).cause == Cause::permission);
      } else {
        CHECK(std::holds_alternative<engine::Held>(entry.second));
      }
    }
    // The repetitions go by digest: it was not for want of the script.
    for (const RedisCommand& command : rig.commands) CHECK(is(command, "EVALSHA"));
    if (round == 0) {
      CHECK(calls_of(rig) == Calls{"hold 3", "hold 1", "hold 1", "hold 1"});
    } else {
      CHECK(calls_of(rig) == Calls{"hold 1", "hold 2"});
      CHECK(names(rig.commands[0]) == "redlock:lock:{forbidden}");
    }
  }
}

TEST_CASE("a hold that differs in anything is written anew, and the same one is written the same") {
  const auto written = [](const CallParts& parts) {
    std::string out;
    parts.write(out, ScriptSet(ScriptSet::Flags::understood), Form::digest,
                script_for<engine::HoldCommand>);
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
  EncodedHold text;
  for (const engine::HoldCommand& before : all) {
    for (const engine::HoldCommand& after : all) {
      static_cast<void>(text.of(before));
      CallParts alone;
      alone.add(after);
      CHECK(written(text.of(after)) == written(alone));
    }
  }
  CallParts three;
  CallParts together;
  for (int i = 0; i < 3; ++i) {
    three.add(all[static_cast<std::size_t>(i)]);
    together.add(text.of(all[static_cast<std::size_t>(i)]));
  }
  CHECK(together.count() == 3);
  CHECK(written(together) == written(three));
}

TEST_CASE("releases of one turn go in calls of a hundred, and each is answered in its order") {
  LinkRig rig(releasing);
  rig.run();
  for (std::uint64_t i = 1; i <= 250; ++i) rig.submit(i, LinkRig::release(name_of(i)));
  rig.run();
  REQUIRE(rig.replies.size() == 250);
  for (std::uint64_t i = 0; i < 250; ++i) {
    CHECK(rig.replies[i].first == i + 1);
    CHECK(std::holds_alternative<engine::ReleasedHere>(rig.replies[i].second));
  }
  CHECK(calls_of(rig) == Calls{"release 100", "release 100", "release 50"});
}

TEST_CASE("a release stays behind the acquire and the hold that were sent before it") {
  LinkRig rig(releasing);
  rig.run();
  rig.submit(1, LinkRig::release("a"));
  rig.submit(2, LinkRig::release("b"));
  rig.submit(3, LinkRig::release("c"));
  rig.submit(4, LinkRig::acquire("a", 2));
  rig.submit(5, LinkRig::release("a", 2));
  rig.submit(6, LinkRig::hold("d"));
  rig.submit(7, LinkRig::release("d"));
  rig.run();
  REQUIRE(rig.replies.size() == 7);
  for (std::size_t i = 0; i < 7; ++i) CHECK(rig.replies[i].first == i + 1);
  CHECK(calls_of(rig) == Calls{"release 3", "acquire", "release 1", "hold 1", "release 1"});
}

TEST_CASE("releases stay in one call whatever acquires of other names come between them") {
  LinkRig rig(releasing);
  rig.run();
  rig.submit(1, LinkRig::release("a"));
  rig.submit(2, LinkRig::acquire("x"));
  rig.submit(3, LinkRig::release("b"));
  rig.submit(4, LinkRig::acquire("y"));
  rig.submit(5, LinkRig::release("c"));
  SUBCASE("and go behind those acquires") {
    rig.run();
    CHECK(calls_of(rig) == Calls{"acquire", "acquire", "release 3"});
    CHECK(numbers_answered(rig) == std::vector<std::uint64_t>{2, 4, 1, 3, 5});
  }
  SUBCASE("an acquire of one of their names stays behind them") {
    rig.submit(6, LinkRig::acquire("b", 2));
    rig.submit(7, LinkRig::release("d"));
    rig.run();
    CHECK(calls_of(rig) == Calls{"acquire", "acquire", "release 3", "acquire", "release 1"});
    CHECK(numbers_answered(rig) == std::vector<std::uint64_t>{2, 4, 1, 3, 5, 6, 7});
  }
}

TEST_CASE("a release and the acquire of its name behind it go in one call") {
  const auto passing = [](const RedisCommand& command) {
    if (call_in(command) != "pass") return releasing(command);
    return array({integer(1), array({integer(1), integer(7)})});
  };
  LinkRig rig(passing);
  rig.run();
  SUBCASE("and each gets its own reply") {
    rig.submit(1, LinkRig::release("a"));
    rig.submit(2, waiting("a", 2));
    rig.run();
    CHECK(calls_of(rig) == Calls{"pass"});
    REQUIRE(rig.replies.size() == 2);
    CHECK(rig.replies[0].first == 1);
    CHECK(std::holds_alternative<engine::ReleasedHere>(rig.replies[0].second));
    CHECK(rig.replies[1].first == 2);
    CHECK(std::holds_alternative<engine::Granted>(rig.replies[1].second));
  }
  SUBCASE("and so do those of the next owner") {
    rig.submit(1, LinkRig::release("b"));
    for (std::uint64_t owner = 1; owner <= 3; ++owner) {
      rig.submit(2 * owner, LinkRig::release("a", owner));
      rig.submit(2 * owner + 1, waiting("a", owner + 1));
    }
    rig.run();
    CHECK(calls_of(rig) == Calls{"pass", "pass", "pass", "release 1"});
    CHECK(numbers_answered(rig) == std::vector<std::uint64_t>{2, 3, 4, 5, 6, 7, 1});
  }
  SUBCASE("but none of another name, nor what is between them") {
    rig.submit(1, LinkRig::release("a"));
    rig.submit(2, LinkRig::acquire("b"));
    rig.submit(3, LinkRig::release("a"));
    rig.submit(4, LinkRig::hold("c"));
    rig.submit(5, waiting("a", 2));
    rig.run();
    CHECK(calls_of(rig) == Calls{"acquire", "release 2", "hold 1", "acquire"});
  }
  SUBCASE("the newest of several, and only that") {
    rig.submit(1, LinkRig::release("b"));
    rig.submit(2, LinkRig::release("c"));
    rig.submit(3, LinkRig::release("a"));
    rig.submit(4, waiting("a", 2));
    rig.submit(5, LinkRig::release("d"));
    rig.run();
    CHECK(calls_of(rig) == Calls{"pass", "release 3"});
    CHECK(numbers_answered(rig) == std::vector<std::uint64_t>{3, 4, 1, 2, 5});
  }
  SUBCASE("nor one of those before it, once that is passed on") {
    rig.submit(1, LinkRig::release("b"));
    rig.submit(2, LinkRig::release("a"));
    rig.submit(3, waiting("a", 2));
    rig.submit(4, waiting("b", 2));
    rig.run();
    CHECK(calls_of(rig) == Calls{"pass", "release 1", "acquire"});
    CHECK(numbers_answered(rig) == std::vector<std::uint64_t>{2, 3, 1, 4});
  }
  SUBCASE("nor one whose name was released twice: all stay before it") {
    rig.submit(1, LinkRig::release("a"));
    rig.submit(2, LinkRig::release("a", 2));
    rig.submit(3, waiting("a", 3));
    rig.run();
    CHECK(calls_of(rig) == Calls{"release 2", "acquire"});
    CHECK(numbers_answered(rig) == std::vector<std::uint64_t>{1, 2, 3});
  }
  SUBCASE("also one that stands in no line, but none behind a release that keeps a place") {
    rig.submit(1, LinkRig::release("a"));
    rig.submit(2, LinkRig::acquire("a", 2));
    auto placed = LinkRig::release("a", 2);
    placed.place.line = 5;
    rig.submit(3, placed);
    rig.submit(4, waiting("a", 3));
    rig.run();
    CHECK(calls_of(rig) == Calls{"pass", "release 1", "acquire"});
  }
  SUBCASE("nor one that goes alone, or in full") {
    auto alone = LinkRig::release("a");
    alone.alone = true;
    rig.submit(1, alone);
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
  std::string refusal;
  SUBCASE("as it is") {
    refusal = "NOMARKER redlock: gone";
  }
  SUBCASE("and may end the connection") {
    refusal = "OTHERSET redlock: another";
  }
  SUBCASE("also where the release wrote nothing") {
    refusal = "READONLY You can't write against a read only replica.";
  }
  LinkRig rig([&](const RedisCommand& command) {
    return call_in(command) == "pass" ? array({integer(0), error(refusal)}) : healthy(command);
  });
  rig.run();
  rig.submit(1, LinkRig::release("a"));
  rig.submit(2, waiting("a", 2));
  rig.run();
  REQUIRE(rig.replies.size() == 2);
  CHECK(std::holds_alternative<engine::NotHeld>(rig.replies[0].second));
  CHECK(unavailable(rig.replies[1].second).delivery == Delivery::refused);
  CHECK(rig.downs.empty() == refusal.starts_with("NOMARKER"));
}

TEST_CASE("a release that is to go alone is joined with no other") {
  LinkRig rig(releasing);
  rig.run();
  auto alone = LinkRig::release("b");
  alone.alone = true;
  rig.submit(1, LinkRig::release("a"));
  rig.submit(2, alone);
  rig.submit(3, LinkRig::release("c"));
  rig.run();
  CHECK(rig.replies.size() == 3);
  CHECK(calls_of(rig) == Calls{"release 1", "release 1", "release 1"});
}

TEST_CASE("an answer to releases with too few elements, or a bad one, is an error for each") {
  for (const std::string& bad : {array({integer(1)}), array({integer(1), integer(-4'294'967'297)}),
                                 array({array({integer(1)}), array({integer(1)})})}) {
    LinkRig rig([bad](const RedisCommand& command) {
      return is(command, "EVALSHA") ? bad : healthy(command);
    });
    rig.run();
    rig.submit(1, LinkRig::release("a"));
    rig.submit(2, LinkRig::release("b"));
    rig.run();
    CHECK(rig.downs.at(0).cause == Cause::protocol_error);
    REQUIRE(rig.replies.size() == 2);
    CHECK(unavailable(rig.replies[1].second).delivery == Delivery::unknown);
  }
}
