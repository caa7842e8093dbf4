// SPDX-License-Identifier: MIT
// RESP as the reader shows it, in whatever pieces it arrives: what RESP3 adds to RESP2 is brought
// down to that, and pushes are told apart from replies. What is not RESP, or too much, is refused.
#include <doctest/doctest.h>
#include <string>
#include <string_view>

#include "wire/item_scanner.hpp"
#include "wire/reply_reader.hpp"

using namespace redlock::wire;

namespace {

using Outcome = ReplyReader::Outcome;
constexpr std::size_t most = 10'000;

std::string shown(const ReplyView& reply) {
  switch (reply.kind()) {
    case ReplyView::Kind::nil:
      return "nil";
    case ReplyView::Kind::integer:
      return std::to_string(reply.integer());
    case ReplyView::Kind::text:
      return '"' + std::string(reply.text()) + '"';
    case ReplyView::Kind::error:
      return "error " + std::string(reply.text());
    case ReplyView::Kind::array:
      break;
  }
  std::string all = "[";
  ReplyView element = reply.first();
  for (std::size_t i = 0; i < reply.size(); ++i, element = element.next()) {
    if (i > 0) all += ' ';
    all += shown(element);
  }
  return all + ']';
}

/// All that arrives with these bytes in pieces of this size.
std::string read_all(std::string_view bytes, std::size_t piece) {
  ReplyReader reader;
  std::string all;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    reader.feed(bytes.substr(at, piece));
    for (;;) {
      const Outcome outcome = reader.next(most);
      if (outcome == Outcome::incomplete) break;
      if (!all.empty()) all += " | ";
      if (outcome == Outcome::broken) return all + "broken";
      all += (outcome == Outcome::push ? "push " : "") + shown(reader.reply());
    }
  }
  return all;
}

std::string read_one(std::string_view bytes) {
  return read_all(bytes, bytes.size());
}

Outcome outcome_of(std::string_view bytes, std::size_t limit = most) {
  ReplyReader reader;
  reader.feed(bytes);
  return reader.next(limit);
}

/// Each of these, and whatever follows it.
void check_broken(std::initializer_list<std::string_view> all) {
  for (const std::string_view bytes : all) {
    ReplyReader reader;
    for (const std::string_view next : {bytes, std::string_view("+OK\r\n")}) {
      reader.feed(next);
      CHECK_MESSAGE(reader.next(most) == Outcome::broken, bytes);
    }
    CHECK_FALSE(reader.problem().empty());
  }
}

}  // namespace

TEST_CASE("replies may arrive byte by byte or together: the same bytes are the same replies") {
  const std::string bytes =
      "-a b\r\n$4\r\n\r\n\r\n\r\n*2\r\n$0\r\n\r\n*1\r\n$-1\r\n*-1\r\n*0\r\n:7\r\n$2\r\n$1\r\n"
      "*3\r\n:1\r\n$5\r\nhe\r\nl\r\n*2\r\n$-1\r\n-ERR no\r\n+OK\r\n"
      "=9\r\ntxt:a\r\n_b\r\n%1\r\n#t\r\n~1\r\n(12\r\n_\r\n,0.5\r\n*1\r\n=6\r\ntxt:>1\r\n|";
  const std::string expected =
      "error a b | \"\r\n\r\n\" | [\"\" [nil]] | nil | [] | 7 | \"$1\" | "
      "[1 \"he\r\nl\" [nil error ERR no]] | \"OK\" | \"a\r\n_b\" | [1 [\"12\"]] | nil | "
      "\"0.5\" | [\">1\"] | broken";
  for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
    CAPTURE(piece);
    CHECK(read_all(bytes, piece) == expected);
  }
  CHECK(read_all("*0\r\n:4", 1) == "[]");
}

TEST_CASE("each type of RESP3 is shown as what RESP2 has for it") {
  CHECK(read_one("%2\r\n+a\r\n:1\r\n$1\r\nb\r\n_\r\n") == R"(["a" 1 "b" nil])");
  CHECK(read_one("%0\r\n") == "[]");
  CHECK(read_one("~2\r\n:1\r\n:2\r\n") == "[1 2]");
  CHECK(read_one("_\r\n") == "nil");
  CHECK(read_one("#t\r\n") == "1");
  CHECK(read_one("#f\r\n") == "0");
  CHECK(read_one(",-1.5e300\r\n") == R"("-1.5e300")");
  CHECK(read_one(",inf\r\n") == R"("inf")");
  CHECK(read_one("(3492890328409238509324850943850943825024385\r\n") ==
        R"("3492890328409238509324850943850943825024385")");
  CHECK(read_one("=9\r\ntxt:a\r\n_b\r\n") == "\"a\r\n_b\"");
  CHECK(read_one("=4\r\nmkd:\r\n") == R"("")");
  CHECK(read_one("*3\r\n%1\r\n_\r\n~0\r\n*-1\r\n=5\r\ntxt:x\r\n") == R"([[nil []] nil "x"])");
}

TEST_CASE("a push is told apart from the replies around it") {
  const std::string push = ">3\r\n$7\r\nmessage\r\n+c\r\n$3\r\n1 0\r\n";
  CHECK(read_all(push, push.size()) == R"(push ["message" "c" "1 0"])");
  const std::string all =
      "*2\r\n*1\r\n:1\r\n*0\r\n" + push + ">0\r\n:5\r\n" + push + "%1\r\n_\r\n_" + "\r\n" + push;
  const std::string expected =
      R"([[1] []] | push ["message" "c" "1 0"] | push [] | 5 | push ["message" "c" "1 0"] | )"
      R"([nil nil] | push ["message" "c" "1 0"])";
  for (std::size_t piece = 1; piece <= all.size(); ++piece) {
    CAPTURE(piece);
    CHECK(read_all(all, piece) == expected);
  }
}

TEST_CASE("what is not Redis, or only nearly RESP3, is broken, and stays so") {
  using namespace std::string_view_literals;
  check_broken({"HTTP/1.1 400 Bad Request\r\n\r\n", "\0\0\0\0\r\n"sv, "$x\r\n", "*x\r\n", ":1x\r\n",
                "*-2\r\n", "$-2\r\n", "\r\n", "+a\n", "+a\rb\r\n", "-a\r\r\n", "+a\nb\r\n",
                "$1x\r\n", "*\r\n", "$ 1\r\n", "*0000000000000000000000001\r\n:1\r\n",
                "\x16\x03\x01\x02\r\n"});
  check_broken({"_x\r\n", "#x\r\n", "#\r\n", "#tt\r\n", ",\r\n", "(\r\n", "%-1\r\n", "~-1\r\n",
                ">-1\r\n", "=-1\r\n", "=x\r\n", "%x\r\n", "%\r\n", ">\r\n", "_\n", "$?\r\n",
                "*?\r\n"});
  check_broken({"=3\r\ntxt\r\n", "*2\r\n:1\r\n>1\r\n:1\r\n", "%1\r\n+a\r\n>0\r\n", ">1\r\n>0\r\n"});
}

TEST_CASE("what no server sends is refused at its first byte, also inside an array") {
  check_broken({"|", "!", ";", ".", " "});
  check_broken({"*2\r\n:1\r\n|1\r\n", "*2\r\n:1\r\n!5\r\n", "*2\r\n:1\r\n;4\r\n",
                "*2\r\n:1\r\n.\r\n", "*2\r\n:1\r\n \r\n"});
}

TEST_CASE("a line is refused when it is longer than any in a reply, whole or not") {
  constexpr std::size_t longest = ItemScanner::longest_line;
  constexpr std::size_t question_limit = std::size_t{64} << 20;
  for (const std::string_view type : {"+", "-", ":", "$", "*"}) {
    const std::string line = std::string(type) + std::string(longest, type == "-" ? 'x' : '1');
    CHECK_MESSAGE(outcome_of(line, question_limit) == Outcome::broken, type);
    CHECK_MESSAGE(outcome_of(line + "\r\n", question_limit) == Outcome::broken, type);
  }
  CHECK(outcome_of("-" + std::string(longest - 3, 'x') + "\r\n", question_limit) ==
        Outcome::complete);
}

TEST_CASE("more than the limit is refused, announced or not, whole or in parts") {
  std::string many = "*2000\r\n";
  for (int i = 0; i < 2'000; ++i) many += ":1\r\n";
  std::string nested;
  for (int i = 0; i < 1'000; ++i) nested += "*1\r\n";
  check_broken({"*312\r\n:1\r\n", "%156\r\n", ">312\r\n",  // 313 parts of 32 bytes
                "*2147483647\r\n:1\r\n", "*2147483648\r\n", "*2\r\n*2147483648\r\n",
                "*9223372036854775807\r\n", "*99999999999999999999999\r\n", "%1073741824\r\n",
                "$9969\r\n", "$9223372036854775807\r\nabc\r\n", "$18446744073709551614\r\nabc\r\n",
                "=20000\r\ntxt:"});
  const std::string x(20'000, 'x');
  check_broken(
      {"$20000\r\n" + x + "\r\n", "$20000\r\n" + x.substr(5'000), "+" + x + "\r\n", many, nested});
  CHECK(outcome_of("*311\r\n:1\r\n") == Outcome::incomplete);
  CHECK(outcome_of("$9968\r\n") == Outcome::incomplete);
  CHECK(outcome_of("$9000\r\n" + std::string(9'000, 'x') + "\r\n") == Outcome::complete);
}

TEST_CASE("the beginning of a reply is told apart from that of a push") {
  const auto amid_reply = [](std::string_view bytes) {
    ReplyReader reader;
    reader.feed(bytes);
    while (reader.next(most) != Outcome::incomplete) continue;
    return reader.amid_reply();
  };
  CHECK_FALSE(amid_reply(""));
  CHECK_FALSE(amid_reply(":1\r\n"));
  CHECK_FALSE(amid_reply(">1\r\n:1\r\n"));
  for (const std::string_view begun : {"*", "*2\r\n", "*2\r\n:1\r\n", "*2\r\n:1\r\n$4\r\nx",
                                       "$9\r\n", ">0\r\n$5\r\nx", "%1\r\n:1\r\n"}) {
    CHECK_MESSAGE(amid_reply(begun), begun);
  }
  for (const std::string_view begun :
       {">", ">2", ">2\r\n:1\r\n", ">2\r\n$5\r\nx", ":1\r\n>1\r\n"}) {
    CHECK_MESSAGE(!amid_reply(begun), begun);
  }
}

TEST_CASE("an element behind nested arrays is found") {
  ReplyReader reader;
  reader.feed(std::string_view("*3\r\n*2\r\n*1\r\n:1\r\n:2\r\n*0\r\n:3\r\n"));
  REQUIRE(reader.next(most) == Outcome::complete);
  std::int64_t value = 0;
  CHECK(reader.reply().integer_at(2, value));
  CHECK(value == 3);
  CHECK_FALSE(reader.reply().integer_at(1, value));
  CHECK_FALSE(reader.reply().integer_at(3, value));
}

TEST_CASE("a value owns what the reply had") {
  ReplyReader reader;
  reader.feed(std::string_view("*4\r\n$2\r\nab\r\n*1\r\n:7\r\n$-1\r\n-ERR x\r\n"));
  REQUIRE(reader.next(most) == Outcome::complete);
  const Value value = reader.reply().to_value();
  const auto& elements = std::get<std::vector<Value>>(value.data);
  REQUIRE(elements.size() == 4);
  CHECK(std::get<std::string>(elements[0].data) == "ab");
  const auto& inner = std::get<std::vector<Value>>(elements[1].data);
  CHECK(std::get<std::int64_t>(inner.at(0).data) == 7);
  CHECK(std::holds_alternative<Value::Nil>(elements[2].data));
  CHECK(std::get<Value::ErrorText>(elements[3].data).text == "ERR x");
}
