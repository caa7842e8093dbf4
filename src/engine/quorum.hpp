// SPDX-License-Identifier: MIT
// Quorum arithmetic. A quorum is always counted over the configured nodes, never over those that
// happen to be connected: two clients that see different nodes must still need a common one.
#pragma once

#include <bit>
#include <cstdint>

#include "engine/types.hpp"

namespace redlock::engine {

/// A majority: N/2 + 1.
[[nodiscard]] constexpr std::uint32_t quorum_of(std::uint32_t nodes) {
  return nodes / 2 + 1;
}

/// A set of nodes as one word, which is why a client has at most 64.
class NodeSet {
 public:
  static constexpr std::uint32_t max_nodes = 64;

  constexpr NodeSet() = default;

  constexpr void insert(NodeIndex node) { bits_ |= bit(node); }
  constexpr void erase(NodeIndex node) { bits_ &= ~bit(node); }
  [[nodiscard]] constexpr bool contains(NodeIndex node) const { return (bits_ & bit(node)) != 0; }
  friend constexpr bool operator==(NodeSet, NodeSet) = default;
  friend constexpr NodeSet operator|(NodeSet a, NodeSet b) { return NodeSet(a.bits_ | b.bits_); }
  friend constexpr NodeSet operator&(NodeSet a, NodeSet b) { return NodeSet(a.bits_ & b.bits_); }
  friend constexpr NodeSet operator-(NodeSet a, NodeSet b) { return NodeSet(a.bits_ & ~b.bits_); }
  [[nodiscard]] static constexpr NodeSet of(NodeIndex node) { return NodeSet(bit(node)); }
  /// The first so many.
  [[nodiscard]] static constexpr NodeSet first(std::uint32_t nodes) {
    return NodeSet(nodes == max_nodes ? ~std::uint64_t{0} : bit(nodes) - 1);
  }
  [[nodiscard]] constexpr std::uint32_t size() const {
    return static_cast<std::uint32_t>(std::popcount(bits_));
  }

 private:
  explicit constexpr NodeSet(std::uint64_t bits) : bits_(bits) {}
  static constexpr std::uint64_t bit(NodeIndex node) { return std::uint64_t{1} << node; }
  std::uint64_t bits_ = 0;
};

/// Votes counted.
struct Tally {
  std::uint32_t nodes = 0;
  std::uint32_t yes = 0;
  std::uint32_t no = 0;           ///< voted against
  std::uint32_t unavailable = 0;  ///< did not vote, which is not a refusal

  [[nodiscard]] constexpr std::uint32_t quorum() const { return quorum_of(nodes); }
  [[nodiscard]] constexpr std::uint32_t pending() const { return nodes - yes - no - unavailable; }
  [[nodiscard]] constexpr bool won() const { return yes >= quorum(); }
  [[nodiscard]] constexpr bool out_of_reach() const { return yes + pending() < quorum(); }
  /// A quorum voted, for or against.
  [[nodiscard]] constexpr bool quorum_voted() const { return yes + no >= quorum(); }
  /// A quorum cannot vote any more.
  [[nodiscard]] constexpr bool quorum_unavailable() const { return unavailable > nodes - quorum(); }
};

}  // namespace redlock::engine
