// SPDX-License-Identifier: MIT
#include "engine/acquire/floor_estimate.hpp"

#include <algorithm>
#include <cassert>

#include "engine/quorum.hpp"
#include "engine/rules.hpp"

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
    : use_clocks_(use_clocks), node_offsets_us_(nodes), seen_(cells) {}

void FloorEstimate::on_own_clock(Instant now, std::int64_t unix_us) {
  if (!quorum_known_) offset_us_ = unix_us - to_us(now);
}

void FloorEstimate::on_node_clock(Instant now, NodeIndex node, std::int64_t unix_us,
                                  std::uint32_t quorum) {
  node_offsets_us_[node] = unix_us - to_us(now);
  const auto known = std::ranges::count_if(node_offsets_us_, [](const auto& o) { return !!o; });
  if (!rules::floor_follows(static_cast<std::uint32_t>(known), quorum)) return;
  offset_us_ = median(node_offsets_us_);
  quorum_known_ = true;
}

void FloorEstimate::on_token(std::uint32_t stripe, Token token) {
  Token& seen = seen_[stripe % cells];
  seen = std::max(seen, token);
}

Token FloorEstimate::clock(Instant now) const {
  if (!offset_us_) return 0;
  return static_cast<Token>(std::max<std::int64_t>(to_us(now) + *offset_us_, 0));
}

Token FloorEstimate::ceiling(Instant now, std::uint32_t stripe) const {
  return rules::ceiling_above(std::max(after_seen(stripe), clock(now)));
}

Token FloorEstimate::floor(Instant now, std::uint32_t stripe) const {
  // Neither absurd clocks nor the counter of one stripe use up the tokens of others.
  return std::min(std::max(after_seen(stripe), use_clocks_ ? clock(now) : 0), floor_limit);
}

}  // namespace redlock::engine
