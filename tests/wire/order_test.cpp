// SPDX-License-Identifier: MIT
// What the calls of scripts say about who waits for a lock.
#include <chrono>
#include <doctest/doctest.h>
#include <memory>
#include <string>

#include "support/commands_in.hpp"
#include "support/text.hpp"
#include "wire/script_call.hpp"

using namespace redlock::wire;
namespace engine = redlock::engine;

namespace {

constexpr CallContext context{.client = "00112233445566ff"};
constexpr CallContext subscribed{.client = "00112233445566ff", .subscribed = true};
constexpr engine::Place place{.line = 18'446'744'073'709'551'615U,
                              .waited = std::chrono::microseconds(1'500),
                              .turn = std::chrono::microseconds(80'200)};
const std::string waiter = "00112233445566ff:18446744073709551615";

using Words = redlock::testing::RedisCommand;

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

engine::AcquireCommand acquire(bool in_order, const engine::Place& at = {}) {
  engine::AcquireCommand command;
  command.name = std::make_shared<const std::string>("n");
  command.lease = std::chrono::milliseconds(1'000);
  command.in_order = in_order;
  command.place = at;
  return command;
}

/// From the order on.
Words of_acquire(const engine::AcquireCommand& command, const CallContext& how) {
  const auto words = arguments_of(command, how);
  return {words.begin() + 5, words.end()};
}

Words of_release(bool first_only, const engine::Place& at, const CallContext& how) {
  engine::ReleaseCommand command;
  command.name = std::make_shared<const std::string>("n");
  command.first_only = first_only;
  command.place = at;
  const auto words = arguments_of(command, how);
  return {words.begin() + 1, words.end()};
}

}  // namespace

TEST_CASE("an acquire says whether it is out of turn, in order, or waits") {
  CHECK(of_acquire(acquire(false), context) == Words{""});
  CHECK(of_acquire(acquire(false, place), context) == Words{""});
  CHECK(of_acquire(acquire(true), context) == Words{"0"});
  CHECK(of_acquire(acquire(true, place), subscribed) == Words{"w", waiter, "1500", "81", ""});
  CHECK(of_acquire(acquire(true, place), context) == Words{"p", waiter, "1500", "141", ""});
  // A client without an id has no place.
  CHECK(of_acquire(acquire(true, place), {}) == Words{"0"});
  // How long the next call of its client has waited.
  auto command = acquire(true, place);
  command.next_waited = std::chrono::microseconds(7);
  CHECK(of_acquire(command, subscribed) == Words{"w", waiter, "1500", "81", "7"});
  // It is another call than the one that the node may have there.
  command.place.is_new = true;
  CHECK(of_acquire(command, subscribed) == Words{"w", waiter, "1500", "81", "7", "1"});
}

TEST_CASE("a waiter that polls has a turn for as long as it may pause, and its own") {
  auto short_turn = place;
  short_turn.turn = std::chrono::milliseconds(20);
  CHECK(of_acquire(acquire(true, short_turn), context).at(3) == "80");
  CHECK(of_acquire(acquire(true, short_turn), subscribed).at(3) == "20");
}

TEST_CASE("a release says which waiters are told, and the place that its client keeps") {
  CHECK(of_release(true, {}, subscribed) == Words{"1"});
  CHECK(of_release(false, {}, subscribed) == Words{"2"});
  CHECK(of_release(false, place, subscribed) == Words{"2", waiter, "w", "1500", "81", ""});
  CHECK(of_release(false, place, {}) == Words{"2"});
  auto of_another = place;
  of_another.is_new = true;
  CHECK(of_release(false, of_another, subscribed) ==
        Words{"2", waiter, "w", "1500", "81", "", "1"});
}

TEST_CASE("a client that leaves a line names itself there, and the place of its other call") {
  engine::LeaveCommand command{.name = std::make_shared<const std::string>("n"), .line = 7};
  CHECK(arguments_of(command, subscribed) == Words{"00112233445566ff:7"});
  command.next = {7, std::chrono::microseconds(1500), std::chrono::milliseconds(80)};
  CHECK(arguments_of(command, subscribed) == Words{"00112233445566ff:7", "w", "1500", "80", ""});
}

TEST_CASE("before the order stand the holder, and what the marker must name") {
  auto command = acquire(false);
  CHECK(arguments_of(command, context).at(3).empty());
  CHECK(arguments_of(command, context).at(4) == "-");
  CallContext how = context;
  HolderText holder("host", 1, "somebody");
  how.holder = &holder;
  how.membership = "a set";
  CHECK(redlock::testing::contains(arguments_of(command, how).at(3), "somebody"));
  CHECK(arguments_of(command, how).at(4) == "-");
  command.marker_wanted = true;
  CHECK(arguments_of(command, how).at(4) == "=a set");
  CHECK(arguments_of(command, context).at(4) == "=");
}
