// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <vector>

#include "seat_model.hpp"

using testing::explore_seat;
using testing::SeatBug;
using testing::SeatCast;

namespace {

const std::vector<SeatCast>& casts() {
  static const std::vector<SeatCast> all = {
      {.callers = 1, .calls_each = 2, .posted = 0, .events = 1},
      {.callers = 1, .calls_each = 1, .posted = 1, .events = 1},
      {.callers = 2, .calls_each = 1, .posted = 0, .events = 0},
  };
  return all;
}

void check_all_orders(const SeatCast& cast) {
  const auto found = explore_seat(cast, SeatBug::none);
  CAPTURE(cast.callers);
  CAPTURE(cast.posted);
  CHECK(found.problem == "");
  CHECK(found.ends > 0);
  MESSAGE(found.states << " states");
}

}  // namespace

TEST_CASE("in no order of their steps is a task, an answer or an event slept through") {
  for (const SeatCast& cast : casts()) check_all_orders(cast);
}

TEST_CASE("the same with more threads, which takes a minute" * doctest::skip()) {
  check_all_orders({.callers = 2, .calls_each = 1, .posted = 0, .events = 1});
  check_all_orders({.callers = 2, .calls_each = 1, .posted = 1, .events = 0});
}

TEST_CASE("each way to break the seat shows in some order") {
  for (int number = 1; number <= static_cast<int>(SeatBug::seat_not_exclusive); ++number) {
    std::string problem;
    for (const SeatCast& cast : casts()) {
      if (problem.empty()) problem = explore_seat(cast, static_cast<SeatBug>(number)).problem;
    }
    CAPTURE(number);
    CHECK(problem != "");
  }
}
