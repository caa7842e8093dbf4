// SPDX-License-Identifier: MIT
// What a reply costs hiredis, counted in bytes: those that a feed may have to move to a larger
// buffer, and those that lie unread before the parser whenever it is asked, which is what it may
// look at. Both must stay in proportion to the bytes of the reply, whatever the pieces.
#include <algorithm>
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <hiredis/read.h>
#include <random>
#include <string>
#include <string_view>

#include "wire/item_scanner.hpp"
#include "wire/reply_reader.hpp"

using namespace redlock::wire;
using Outcome = ReplyReader::Outcome;

namespace {

std::size_t work = 0;

template <typename Function>
Function* original(const char* name) {
  void* const found = dlsym(RTLD_NEXT, name);
  REQUIRE(found != nullptr);
  return reinterpret_cast<Function*>(found);
}

}  // namespace

// Visible, so that the library finds these before hiredis's own.
extern "C" [[gnu::visibility("default")]] int redisReaderFeed(redisReader* reader,
                                                              const char* bytes, size_t size) {
  static auto* const feed = original<int(redisReader*, const char*, size_t)>("redisReaderFeed");
  work += reader->len - reader->pos + size;
  return feed(reader, bytes, size);
}

extern "C" [[gnu::visibility("default")]] int redisReaderGetReply(redisReader* reader,
                                                                  void** reply) {
  static auto* const get = original<int(redisReader*, void**)>("redisReaderGetReply");
  work += reader->len - reader->pos;
  return get(reader, reply);
}

namespace {

constexpr std::size_t question_limit = std::size_t{64} << 20;

struct Cost {
  Outcome outcome = Outcome::incomplete;
  std::size_t bytes = 0;  // that were fed
  std::size_t work = 0;
};

// Until a reply is whole or broken, or there is no more.
template <typename NextSize>
Cost cost_of(std::string_view bytes, NextSize next_size) {
  work = 0;
  Cost cost;
  ReplyReader reader;
  while (cost.outcome == Outcome::incomplete && cost.bytes < bytes.size()) {
    const std::string_view piece = bytes.substr(cost.bytes, next_size());
    reader.feed(piece);
    cost.bytes += piece.size();
    cost.outcome = reader.next(question_limit);
  }
  cost.work = work;
  return cost;
}

void check_linear(std::string_view bytes, Outcome outcome) {
  std::mt19937 random(1);
  std::uniform_int_distribution<std::size_t> uneven(1, 4'000);
  for (const Cost& cost : {cost_of(bytes, [] { return std::size_t{1}; }),
                           cost_of(bytes, [] { return std::size_t{7}; }),
                           cost_of(bytes, [] { return std::size_t{1'460}; }),
                           cost_of(bytes, [] { return std::size_t{65'536}; }),
                           cost_of(bytes, [&] { return uneven(random); })}) {
    CHECK(cost.outcome == outcome);
    CHECK(cost.work <= 3 * cost.bytes);
  }
}

}  // namespace

TEST_CASE("an error that never ends costs no more than its first bytes, which are enough") {
  const std::string bytes = "-" + std::string(60'000, 'x');
  check_linear(bytes, Outcome::broken);
  const Cost cost = cost_of(bytes, [] { return std::size_t{1'000}; });
  CHECK(cost.bytes <= ItemScanner::longest_line + 1'000);
}

TEST_CASE("a long text costs its length, in drips too") {
  const std::string text(300'000, '\n');
  check_linear("$" + std::to_string(text.size()) + "\r\n" + text + "\r\n", Outcome::complete);
  check_linear("*2\r\n:1\r\n$300000\r\n" + text + "\r\n", Outcome::complete);
}

TEST_CASE("many lines, and many texts, cost their length") {
  std::string bytes = "*3000\r\n";
  for (int i = 0; i < 1'000; ++i) {
    bytes += "-ERR " + std::string(100, 'x') + "\r\n:12345678\r\n$20\r\n" + std::string(20, 'y') +
             "\r\n";
  }
  check_linear(bytes, Outcome::complete);
}
