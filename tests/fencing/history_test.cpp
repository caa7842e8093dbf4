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

TEST_CASE("a token is wrong that is given twice, or not larger than one returned before") {
  const std::string twice = "a token was given twice";
  const std::string not_larger = "a token is not larger than one returned before";
  CHECK(wrong_with({}) == "");
  // In whatever order they are noted.
  CHECK(wrong_with({grant(1, 2, 5), grant(3, 4, 6), grant(5, 6, 9)}) == "");
  CHECK(wrong_with({grant(5, 6, 9), grant(1, 2, 5), grant(3, 4, 6)}) == "");
  // Of two attempts that overlap either may have the larger token.
  CHECK(wrong_with({grant(1, 4, 6), grant(2, 3, 5)}) == "");
  CHECK(wrong_with({grant(1, 4, 5), grant(2, 3, 6)}) == "");
  CHECK(wrong_with({grant(1, 4, 5), grant(2, 3, 5)}) == twice);
  CHECK(wrong_with({grant(1, 2, 6), grant(3, 4, 5)}) == not_larger);
  CHECK(wrong_with({grant(1, 2, 6), grant(3, 4, 6)}) == not_larger);
  // Neither the newest nor the neighbour has to be the larger one.
  CHECK(wrong_with({grant(1, 3, 9), grant(2, 4, 5), grant(5, 6, 8)}) == not_larger);
}

TEST_CASE("a history that does not fit is not called well") {
  const auto board = std::make_unique<Board>();
  board->grant_count = most_grants + 1;
  CHECK(std::string(wrong_with_history(*board)) != "");
}

}  // namespace
}  // namespace redlock::storm
