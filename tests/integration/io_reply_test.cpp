// SPDX-License-Identifier: MIT
// From bytes to replies: what arrives in pieces, what no script can have answered, what is not
// Redis at all, and what each error means.
#include <doctest/doctest.h>
#include <string>
#include <string_view>

#include "io/error_reply.hpp"
#include "io/reply_reader.hpp"
#include "io/script_call.hpp"

using namespace redlock::io;
using redlock::Cause;
using redlock::engine::Delivery;
namespace engine = redlock::engine;
using Outcome = ReplyReader::Outcome;

namespace {

constexpr std::size_t limit = 10'000;

std::optional<engine::Reply> answer_to(Script script, std::string_view bytes) {
  ReplyReader reader;
  reader.feed(bytes);
  REQUIRE(reader.next(limit) == Outcome::complete);
  return read_answer(script, reader.reply(), "hunter2");
}

template <typename Expected>
Expected expect(Script script, std::string_view bytes) {
  const auto answer = answer_to(script, bytes);
  REQUIRE_MESSAGE(answer, bytes);
  REQUIRE_MESSAGE(std::holds_alternative<Expected>(*answer), bytes);
  return std::get<Expected>(*answer);
}

Outcome outcome_of(std::string_view bytes) {
  ReplyReader reader;
  reader.feed(bytes);
  return reader.next(limit);
}

}  // namespace

TEST_CASE("a reply may arrive byte by byte") {
  const std::string bytes = "*3\r\n:1\r\n$5\r\nhe\r\nl\r\n*2\r\n$-1\r\n-ERR no\r\n";
  ReplyReader reader;
  for (std::size_t i = 0; i + 1 < bytes.size(); ++i) {
    reader.feed({&bytes[i], 1});
    REQUIRE(reader.next(limit) == Outcome::incomplete);
  }
  reader.feed({&bytes.back(), 1});
  REQUIRE(reader.next(limit) == Outcome::complete);
  const ReplyView reply = reader.reply();
  REQUIRE(reply.size() == 3);
  CHECK(reply.first().integer() == 1);
  CHECK(reply.first().next().text() == "he\r\nl");
  const ReplyView inner = reply.first().next().next();
  REQUIRE(inner.size() == 2);
  CHECK(inner.first().is(ReplyView::Kind::nil));
  CHECK(inner.first().next().is(ReplyView::Kind::error));
  CHECK(inner.first().next().text() == "ERR no");
}

TEST_CASE("several replies may arrive together") {
  ReplyReader reader;
  reader.feed(std::string_view("+OK\r\n*0\r\n:42\r\n:4"));
  REQUIRE(reader.next(limit) == Outcome::complete);
  CHECK(reader.reply().text() == "OK");
  REQUIRE(reader.next(limit) == Outcome::complete);
  CHECK(reader.reply().is(ReplyView::Kind::array));
  CHECK(reader.reply().size() == 0);
  REQUIRE(reader.next(limit) == Outcome::complete);
  CHECK(reader.reply().integer() == 42);
  CHECK(reader.next(limit) == Outcome::incomplete);
}

TEST_CASE("an element behind nested arrays is found") {
  ReplyReader reader;
  reader.feed(std::string_view("*3\r\n*2\r\n*1\r\n:1\r\n:2\r\n*0\r\n:3\r\n"));
  REQUIRE(reader.next(limit) == Outcome::complete);
  std::int64_t value = 0;
  CHECK(reader.reply().integer_at(2, value));
  CHECK(value == 3);
  CHECK_FALSE(reader.reply().integer_at(1, value));
  CHECK_FALSE(reader.reply().integer_at(3, value));
}

TEST_CASE("a value owns what the reply had") {
  ReplyReader reader;
  reader.feed(std::string_view("*4\r\n$2\r\nab\r\n*1\r\n:7\r\n$-1\r\n-ERR x\r\n"));
  REQUIRE(reader.next(limit) == Outcome::complete);
  const Value value = reader.reply().to_value();
  const auto& elements = std::get<std::vector<Value>>(value.data);
  REQUIRE(elements.size() == 4);
  CHECK(std::get<std::string>(elements[0].data) == "ab");
  const auto& inner = std::get<std::vector<Value>>(elements[1].data);
  CHECK(std::get<std::int64_t>(inner.at(0).data) == 7);
  CHECK(std::holds_alternative<Value::Nil>(elements[2].data));
  CHECK(std::get<Value::ErrorText>(elements[3].data).text == "ERR x");
}

TEST_CASE("what is not Redis is broken, and stays so") {
  for (const std::string_view bytes :
       {std::string_view("HTTP/1.1 400 Bad Request\r\n\r\n"), std::string_view("\0\0\0\0\r\n", 6),
        std::string_view("$x\r\n"), std::string_view("*x\r\n"), std::string_view(":1x\r\n"),
        std::string_view("*-2\r\n"), std::string_view("$-2\r\n"), std::string_view("%1\r\n"),
        std::string_view("\x16\x03\x01\x02\r\n")}) {
    ReplyReader reader;
    reader.feed(bytes);
    CHECK_MESSAGE(reader.next(limit) == Outcome::broken, bytes);
    reader.feed(std::string_view("+OK\r\n"));
    CHECK(reader.next(limit) == Outcome::broken);
    CHECK_FALSE(reader.problem().empty());
  }
}

TEST_CASE("announced lengths reserve nothing, and absurd ones are refused or waited for") {
  CHECK(outcome_of("*2147483647\r\n:1\r\n") == Outcome::incomplete);
  CHECK(outcome_of("*2147483648\r\n") == Outcome::broken);
  CHECK(outcome_of("*9223372036854775807\r\n") == Outcome::broken);
  CHECK(outcome_of("*99999999999999999999999\r\n") == Outcome::broken);
  CHECK(outcome_of("$9223372036854775807\r\nabc\r\n") == Outcome::incomplete);
  CHECK(outcome_of("$18446744073709551614\r\nabc\r\n") == Outcome::broken);
}

TEST_CASE("arrays nested without end are refused") {
  std::string bytes;
  for (int i = 0; i < 1'000; ++i) bytes += "*1\r\n";
  CHECK(outcome_of(bytes) == Outcome::broken);
}

TEST_CASE("a reply beyond the limit is refused, announced or not, whole or in parts") {
  CHECK(outcome_of("$20000\r\n" + std::string(20'000, 'x') + "\r\n") == Outcome::broken);
  CHECK(outcome_of("$20000\r\n" + std::string(15'000, 'x')) == Outcome::broken);
  CHECK(outcome_of("+" + std::string(15'000, 'x')) == Outcome::broken);
  std::string many = "*2000\r\n";
  for (int i = 0; i < 2'000; ++i) many += ":1\r\n";
  CHECK(outcome_of(many) == Outcome::broken);
  CHECK(outcome_of("$9000\r\n" + std::string(9'000, 'x') + "\r\n") == Outcome::complete);
}

TEST_CASE("each answer of a script has its meaning") {
  CHECK(expect<engine::Granted>(Script::acquire, "*2\r\n:1\r\n:9007199254740991\r\n").token ==
        9'007'199'254'740'991U);
  CHECK(*expect<engine::Refused>(Script::acquire, "*2\r\n:0\r\n:1500\r\n").free_in ==
        std::chrono::milliseconds(1'500));
  CHECK_FALSE(expect<engine::Refused>(Script::acquire, "*2\r\n:0\r\n:-1\r\n").free_in);
  CHECK(expect<engine::Refused>(Script::acquire, "*1\r\n:2\r\n").foreign_type);
  CHECK(expect<engine::Held>(Script::hold, "*1\r\n*2\r\n:1\r\n:5\r\n").fence == 5);
  CHECK(expect<engine::Held>(Script::hold, "*1\r\n*2\r\n:1\r\n:0\r\n").fence == 0);
  expect<engine::Free>(Script::hold, "*1\r\n*1\r\n:0\r\n");
  CHECK_FALSE(expect<engine::Taken>(Script::hold, "*1\r\n*1\r\n:-1\r\n").foreign_type);
  CHECK(expect<engine::Taken>(Script::hold, "*1\r\n*1\r\n:-2\r\n").foreign_type);
  expect<engine::ForcedOut>(Script::acquire, "*1\r\n:3\r\n");
  expect<engine::ForcedOut>(Script::hold, "*1\r\n*1\r\n:-3\r\n");
  expect<engine::ReleasedHere>(Script::force, "*1\r\n:1\r\n");
  expect<engine::NotHeld>(Script::force, "*1\r\n:0\r\n");
  expect<engine::ReleasedHere>(Script::release, "*1\r\n:1\r\n");
  expect<engine::NotHeld>(Script::release, "*1\r\n:0\r\n");
  expect<engine::NoScript>(Script::hold, "-NOSCRIPT No matching script. Please use EVAL.\r\n");
}

TEST_CASE("what no script can have answered is no answer") {
  for (const std::string_view bytes :
       {"+OK\r\n", ":1\r\n", "$-1\r\n", "*0\r\n", "*1\r\n:1\r\n", "*1\r\n$1\r\n1\r\n",
        "*2\r\n:1\r\n:9007199254740992\r\n", "*2\r\n:1\r\n:-1\r\n", "*2\r\n:1\r\n:0\r\n",
        "*2\r\n:0\r\n:-2\r\n", "*2\r\n:7\r\n:1\r\n", "*1\r\n:0\r\n", "*2\r\n:1\r\n*0\r\n"}) {
    CHECK_MESSAGE(!answer_to(Script::acquire, bytes), bytes);
  }
  for (const std::string_view bytes :
       {"*0\r\n", "*1\r\n:1\r\n", "*1\r\n*1\r\n:1\r\n", "*1\r\n*1\r\n:-4\r\n",
        "*2\r\n*1\r\n:0\r\n*1\r\n:0\r\n", "*1\r\n*2\r\n:1\r\n:9007199254740992\r\n",
        "*1\r\n*2\r\n:1\r\n:-1\r\n"}) {
    CHECK_MESSAGE(!answer_to(Script::hold, bytes), bytes);
  }
  for (const std::string_view bytes : {"+OK\r\n", "*0\r\n", "*1\r\n:2\r\n", "*1\r\n$1\r\n1\r\n"}) {
    CHECK_MESSAGE(!answer_to(Script::release, bytes), bytes);
  }
}

TEST_CASE("the prefix of an error says why the node did not vote") {
  const std::pair<std::string_view, Cause> cases[] = {
      {"LOADING Redis is loading the dataset in memory", Cause::loading},
      {"BUSY Redis is busy running a script.", Cause::busy},
      {"MISCONF Redis is configured to save RDB snapshots", Cause::write_error},
      {"OOM command not allowed when used memory > 'maxmemory'.", Cause::out_of_memory},
      {"READONLY You can't write against a read only replica.", Cause::read_only},
      {"MASTERDOWN Link with MASTER is down", Cause::master_down},
      {"NOREPLICAS Not enough good replicas to write.", Cause::too_few_replicas},
      {"MOVED 3999 127.0.0.1:6381", Cause::moved},
      {"ASK 3999 127.0.0.1:6381", Cause::moved},
      {"CLUSTERDOWN Hash slot not served", Cause::moved},
      {"NOAUTH Authentication required.", Cause::authentication},
      {"WRONGPASS invalid username-password pair", Cause::authentication},
      {"NOPERM this user has no permissions to run the 'evalsha' command", Cause::permission},
      {"DENIED Redis is running in protected mode", Cause::permission},
  };
  for (const auto& entry : cases) {
    const auto& text = entry.first;
    const auto& cause = entry.second;
    const engine::Unavailable why = to_unavailable(text);
    CHECK_MESSAGE(why.cause == cause, text);
    CHECK_MESSAGE(why.delivery == Delivery::refused, text);
    CHECK(why.detail == text);
  }
}

TEST_CASE("an error inside a script keeps its cause, in the words of Redis 7 and of 6.2") {
  const std::pair<std::string_view, Cause> cases[] = {
      {"OOM command not allowed when used memory > 'maxmemory'. script: 9a, on @user_script:31.",
       Cause::out_of_memory},
      {"ERR Error running script (call to f_9a): @user_script:31: @user_script: 31: -OOM command "
       "not "
       "allowed when used memory > 'maxmemory'.\r\n",
       Cause::out_of_memory},
      {"ERR Error running script (call to f_9a): @user_script:31: READONLY You can't write",
       Cause::read_only},
      {"MISCONF Redis is configured to save script: 9a, on @user_script:31.", Cause::write_error},
  };
  for (const auto& entry : cases) {
    const auto& text = entry.first;
    const auto& cause = entry.second;
    const engine::Unavailable why = to_unavailable(text);
    CHECK_MESSAGE(why.cause == cause, text);
    CHECK_MESSAGE(why.delivery == Delivery::refused, text);
    CHECK_MESSAGE(why.detail.find("script") == std::string::npos, why.detail);
  }
}

TEST_CASE("an error that may come after a write leaves open what the node did") {
  CHECK(to_unavailable("ERR something new").delivery == Delivery::unknown);
  CHECK(to_unavailable("NOPERM No permissions script: 9a, on @user_script:40.").delivery ==
        Delivery::unknown);
  const auto denied = to_unavailable("ERR The user executing the script can't run this command");
  CHECK(denied.cause == Cause::permission);
  CHECK(denied.delivery == Delivery::unknown);
  CHECK(to_unavailable("ERR redlock: the fence has reached 2^53").delivery == Delivery::refused);
  CHECK(to_unavailable("WRONGTYPE Operation against a key script: 9a, on @user_script:31.").cause ==
        Cause::server_error);
  CHECK(to_unavailable("BUSYGROUP Consumer Group name already exists").cause ==
        Cause::server_error);
}

TEST_CASE("what is shown has no password, no control character and no length without end") {
  CHECK(printable("unknown command 'AUTH' 'hunter2' hunter2", "hunter2") ==
        "unknown command 'AUTH' '***' ***");
  CHECK(printable("a\r\nb\x1b[31m\r\n", "") == "a  b [31m");
  CHECK(printable(std::string(1'000, 'x'), "").size() <= 203);
  CHECK(printable(std::string(198, 'x') + "hunter2", "hunter2").find("hu") == std::string::npos);
  const auto answer = answer_to(Script::acquire, "-ERR hunter2 is what you said\r\n");
  CHECK(std::get<engine::Unavailable>(*answer).detail == "ERR *** is what you said");
}
