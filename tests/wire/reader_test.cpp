// SPDX-License-Identifier: MIT
// RESP as the reader shows it, in whatever pieces it arrives: what RESP3 adds to RESP2 is brought
// down to that, and pushes are told apart from replies.
#include <doctest/doctest.h>
#include <string>
#include <string_view>

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

TEST_CASE("what is nearly RESP3, or more than the limit, is broken") {
  for (const std::string bytes :
       {"_x\r\n", "#x\r\n", "#\r\n", "#tt\r\n", ",\r\n", "(\r\n", "%-1\r\n", "~-1\r\n", ">-1\r\n",
        "=-1\r\n", "=x\r\n", "%x\r\n", "%\r\n", ">\r\n", "_\n", "$?\r\n", "*?\r\n"}) {
    CHECK_MESSAGE(read_one(bytes) == "broken", bytes);
  }
  for (const std::string bytes : {"=3\r\ntxt\r\n", "*2\r\n:1\r\n>1\r\n:1\r\n", "%1\r\n+a\r\n>0\r\n",
                                  ">1\r\n>0\r\n", "%1073741824\r\n",
                                  "%156\r\n",  // 313 parts of 32 bytes
                                  "=20000\r\ntxt:", ">312\r\n"}) {
    CHECK_MESSAGE(read_one(bytes) == "broken", bytes);
  }
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
