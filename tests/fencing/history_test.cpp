// SPDX-License-Identifier: MIT
// The storm's look at the tokens that were given: what it must call wrong, and what not.
#include <chrono>
#include <doctest/doctest.h>
#include <memory>
#include <string>
#include <vector>

#include "fencing/storm/board.hpp"

namespace redlock::storm {
namespace {

Grant grant(int began, int returned, std::uint64_t token) {
  using Milliseconds = std::chrono::milliseconds;
  return {BootClock::time_point(Milliseconds(began)), BootClock::time_point(Milliseconds(returned)),
          token};
}

std::string wrong_with(const std::vector<Grant>& grants) {
  const auto board = std::make_unique<Board>();
  for (const Grant& one : grants) board->enter(0, one);
  return wrong_with_history(*board);
}

TEST_CASE(
    "tokens that rise from one grant to the next are well, in whatever order they are noted") {
  CHECK(wrong_with({}) == "");
  CHECK(wrong_with({grant(1, 2, 5), grant(3, 4, 6), grant(5, 6, 9)}) == "");
  CHECK(wrong_with({grant(5, 6, 9), grant(1, 2, 5), grant(3, 4, 6)}) == "");
}

TEST_CASE("of two attempts that overlap either may have the larger token, but not both one") {
  CHECK(wrong_with({grant(1, 4, 6), grant(2, 3, 5)}) == "");
  CHECK(wrong_with({grant(1, 4, 5), grant(2, 3, 6)}) == "");
  CHECK(wrong_with({grant(1, 4, 5), grant(2, 3, 5)}) == "a token was given twice");
}

TEST_CASE("a token that is not larger than one returned before its attempt began is wrong") {
  const std::string wrong = "a token is not larger than one returned before";
  CHECK(wrong_with({grant(1, 2, 6), grant(3, 4, 5)}) == wrong);
  CHECK(wrong_with({grant(1, 2, 6), grant(3, 4, 6)}) == wrong);
  // Neither the newest nor the neighbour has to be the larger one.
  CHECK(wrong_with({grant(1, 3, 9), grant(2, 4, 5), grant(5, 6, 8)}) == wrong);
}

TEST_CASE("a history that does not fit is not called well") {
  const auto board = std::make_unique<Board>();
  board->grant_count = most_grants + 1;
  CHECK(std::string(wrong_with_history(*board)) != "");
}

}  // namespace
}  // namespace redlock::storm
