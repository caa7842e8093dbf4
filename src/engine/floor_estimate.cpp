// SPDX-License-Identifier: MIT
#include "engine/floor_estimate.hpp"

#include <algorithm>
#include <cassert>

namespace redlock::engine {
namespace {

std::int64_t to_us(Instant now) {
  return std::chrono::duration_cast<std::chrono::microseconds>(now.time_since_epoch()).count();
}

std::int64_t median(const std::vector<std::optional<std::int64_t>>& values) {
  std::vector<std::int64_t> known;
  for (const auto& value : values) {
    if (value) known.push_back(*value);
  }
  assert(!known.empty());
  const auto middle = known.begin() + static_cast<std::ptrdiff_t>((known.size() - 1) / 2);
  std::nth_element(known.begin(), middle, known.end());
  return *middle;
}

}  // namespace

FloorEstimate::FloorEstimate(std::uint32_t nodes, bool use_clocks)
    : use_clocks_(use_clocks), offset_us_(nodes), seen_(cells) {}

void FloorEstimate::on_own_clock(Instant now, std::int64_t unix_us) {
  if (!node_clock_known_) median_offset_us_ = unix_us - to_us(now);
}

void FloorEstimate::on_node_clock(Instant now, NodeIndex node, std::int64_t unix_us) {
  offset_us_[node] = unix_us - to_us(now);
  median_offset_us_ = median(offset_us_);
  node_clock_known_ = true;
}

void FloorEstimate::on_token(std::uint32_t stripe, Token token) {
  Token& seen = seen_[stripe % cells];
  seen = std::max(seen, token);
}

Token FloorEstimate::floor(Instant now, std::uint32_t stripe) const {
  const Token after_seen = std::min(seen_[stripe % cells] + 1, token_limit - 1);
  if (!use_clocks_ || !median_offset_us_) return after_seen;
  const std::int64_t clock = std::max<std::int64_t>(to_us(now) + *median_offset_us_, 0);
  // A node whose clock is absurd must not use the tokens up: far below the limit, clocks end.
  const Token bounded = std::min(static_cast<Token>(clock), token_limit / 2);
  return std::max(after_seen, bounded);
}

}  // namespace redlock::engine
