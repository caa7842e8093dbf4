// SPDX-License-Identifier: MIT
// The floor sent with an acquire: the token below which a node must not go. It makes nodes agree on
// a token at once, and keeps tokens rising over nodes that lost their data. Safety never rests on
// it: a floor that is too low or too high costs a settling round, not a promise.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/types.hpp"

namespace redlock::engine {

class FloorEstimate {
 public:
  FloorEstimate(std::uint32_t nodes, bool use_clocks);

  /// This machine's own clock, taken until a quorum of the nodes' is known: a program's first
  /// acquire may be written before any node has said anything, and one node's clock may be absurd.
  void on_own_clock(Instant now, std::int64_t unix_us);
  /// A node's clock, read when ours read `now`.
  void on_node_clock(Instant now, NodeIndex node, std::int64_t unix_us, std::uint32_t quorum);
  /// The node is another server by now, or none.
  void forget(NodeIndex node) { node_offsets_us_[node].reset(); }
  /// A token of a name on this stripe was given to somebody.
  void on_token(std::uint32_t stripe, Token token);

  /// The largest token that clocks, or tokens lately seen, make believable of a single node.
  [[nodiscard]] Token ceiling(Instant now, std::uint32_t stripe) const;
  /// The larger of (largest token lately seen + 1) and the median of the nodes' clocks (or, before
  /// a quorum of them is known, our own); floor_limit at most.
  [[nodiscard]] Token floor(Instant now, std::uint32_t stripe) const;

 private:
  // Stripes that share a cell raise each other's floors, which is harmless.
  static constexpr std::size_t cells = 4096;

  [[nodiscard]] Token after_seen(std::uint32_t stripe) const { return seen_[stripe % cells] + 1; }
  [[nodiscard]] Token clock(Instant now) const;

  bool use_clocks_;
  std::vector<std::optional<std::int64_t>> node_offsets_us_;  // each node's clock less ours
  std::optional<std::int64_t> offset_us_;  // their median, or our own; kept off the hot path
  bool quorum_known_ = false;
  std::vector<Token> seen_;
};

}  // namespace redlock::engine
