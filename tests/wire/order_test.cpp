// SPDX-License-Identifier: MIT
// What the calls of scripts say about who waits for a lock.
#include <chrono>
#include <doctest/doctest.h>
#include <memory>
#include <string>

#include "commands_in.hpp"
#include "support/text.hpp"
#include "wire/script_call.hpp"

using namespace redlock::wire;
namespace engine = redlock::engine;

namespace {

constexpr CallContext context{.client = "00112233445566ff"};
constexpr CallContext subscribed{.client = "00112233445566ff", .subscribed = true};
constexpr engine::Waiter waiter{.number = 18'446'744'073'709'551'615U,
                                .ticket = 1'795'227'228'964'050};

/// The call's words behind its keys.
redlock::testing::RedisCommand arguments_of(const engine::Command& command,
                                            const CallContext& how) {
  std::string bytes;
  write_call(bytes, ScriptSet(ScriptSet::Flags::understood), engine::Form::digest, command, how);
  ReplyReader reader;
  const auto commands = commands_in(bytes, reader);
  REQUIRE(commands.size() == 1);
  const auto& words = commands.front();
  return {words.begin() + 3 + std::stoi(words.at(2)), words.end()};
}

std::string of_acquire(bool in_order, const engine::Waiter& who, const CallContext& how) {
  engine::AcquireCommand command;
  command.name = std::make_shared<const std::string>("n");
  command.lease = std::chrono::milliseconds(1'000);
  command.in_order = in_order;
  command.waiter = who;
  return arguments_of(command, how).at(3);
}

std::string of_release(bool stays, const engine::Waiter& who, const CallContext& how) {
  engine::ReleaseCommand command;
  command.name = std::make_shared<const std::string>("n");
  command.waiter = who;
  command.stays = stays;
  return arguments_of(command, how).at(1);
}

}  // namespace

TEST_CASE("an acquire says whether it is out of turn, in order, or waits") {
  CHECK(of_acquire(false, {}, context).empty());
  CHECK(of_acquire(true, {}, context) == "0");
  CHECK(of_acquire(true, waiter, context) ==
        "00112233445566ff:18446744073709551615 1795227228964050 p");
  CHECK(of_acquire(true, waiter, subscribed) ==
        "00112233445566ff:18446744073709551615 1795227228964050 w");
  CHECK(of_acquire(true, {.number = 1, .ticket = -5}, subscribed) == "00112233445566ff:1 0 w");
  CHECK(of_acquire(true, waiter, {}) == "0");
}

TEST_CASE("a release says who leaves the queue, or stays in it") {
  constexpr engine::Waiter who{.number = 7, .ticket = 9};
  CHECK(of_release(false, {}, subscribed).empty());
  CHECK(of_release(false, who, subscribed) == "00112233445566ff:7");
  CHECK(of_release(true, who, subscribed) == "00112233445566ff:7 9 w");
  CHECK(of_release(true, who, context) == "00112233445566ff:7 9 p");
  CHECK(of_release(false, who, {}).empty());
}

TEST_CASE("behind the order stand the holder and the set, as far as they are there") {
  const auto name = std::make_shared<const std::string>("n");
  engine::AcquireCommand command;
  command.name = name;
  command.lease = std::chrono::milliseconds(1'000);
  CHECK(arguments_of(command, context).size() == 4);
  CallContext how = context;
  HolderText holder("host", 1, "somebody");
  how.holder = &holder;
  how.set = "a set";
  CHECK(arguments_of(command, how).size() == 5);
  command.marker_wanted = true;
  const auto words = arguments_of(command, how);
  REQUIRE(words.size() == 6);
  CHECK(words[3].empty());
  CHECK(redlock::testing::contains(words[4], "somebody"));
  CHECK(words[5] == "a set");
}
