// SPDX-License-Identifier: MIT
#include "fencing/storm/board.hpp"

#include <algorithm>
#include <stdexcept>
#include <sys/mman.h>
#include <vector>

namespace redlock::storm {

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

Board& Board::make_shared() {
  void* const place =
      ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (place == MAP_FAILED) throw std::runtime_error("cannot share memory");
  return *new (place) Board{};
}

void Board::enter(std::size_t worker, const Grant& grant) {
  const std::size_t place = grant_count++;
  if (place < most_grants) grants[place] = grant;
  std::uint64_t largest = largest_token;
  while (largest < grant.token && !largest_token.compare_exchange_weak(largest, grant.token)) {
  }
  inside[worker] = grant.token;
}

const char* wrong_with_history(const Board& board) {
  if (board.grant_count > most_grants) return "there were more grants than can be recorded";
  const auto end = board.grants.begin() + static_cast<std::ptrdiff_t>(board.grant_count);
  std::vector<Grant> by_begin(board.grants.begin(), end);
  std::vector<Grant> by_return = by_begin;
  std::ranges::sort(by_begin, {}, &Grant::began);
  std::ranges::sort(by_return, {}, &Grant::returned);
  std::uint64_t returned_before = 0;
  auto next = by_return.begin();
  for (const Grant& grant : by_begin) {
    for (; next != by_return.end() && next->returned < grant.began; ++next) {
      returned_before = std::max(returned_before, next->token);
    }
    if (grant.token <= returned_before) return "a token is not larger than one returned before";
  }
  std::ranges::sort(by_begin, {}, &Grant::token);
  const auto twin = std::ranges::adjacent_find(by_begin, {}, &Grant::token);
  return twin == by_begin.end() ? "" : "a token was given twice";
}

}  // namespace redlock::storm
