// SPDX-License-Identifier: MIT
// Quorum arithmetic. A quorum is always counted over the members of the set, never over those that
// happen to be connected: two clients that see different nodes must still need a common one.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

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
  /// One more than the last of them; 0 if there is none.
  [[nodiscard]] constexpr std::uint32_t width() const {
    return static_cast<std::uint32_t>(std::bit_width(bits_));
  }

 private:
  explicit constexpr NodeSet(std::uint64_t bits) : bits_(bits) {}
  static constexpr std::uint64_t bit(NodeIndex node) { return std::uint64_t{1} << node; }
  std::uint64_t bits_ = 0;
};

/// The members of one configuration of the set, and how many of them are a quorum.
struct Majority {
  NodeSet of;  ///< those that the client has a slot for
  std::uint32_t quorum = 0;

  [[nodiscard]] constexpr std::uint32_t count(NodeSet nodes) const { return (nodes & of).size(); }
  friend constexpr bool operator==(const Majority&, const Majority&) = default;
};

/// What counts as a quorum while the members of the set may change: a majority of the known
/// members, none of whom shows later ones; or a majority of each configuration that some of them
/// show. A change may come to an end or be given up; what has a quorum of both shares a node with
/// whatever counts then. The word of one node takes no vote but its own.
class Majorities {
 public:
  explicit Majorities(const Majority& known) : known_(known) {}

  /// One that a node shows.
  void add_later(std::uint64_t epoch, const Majority& majority, NodeIndex shown_by) {
    later_nodes_.insert(shown_by);
    const auto next =
        std::ranges::find_if(later_, [&](const Later& each) { return each.epoch >= epoch; });
    if (next != later_.end() && next->epoch == epoch && next->majority == majority) {
      return next->shown_by.insert(shown_by);
    }
    later_.insert(next, {epoch, majority, NodeSet::of(shown_by)});
  }
  [[nodiscard]] const Majority& known() const { return known_; }
  /// How many nodes suffice for each of them.
  [[nodiscard]] std::uint32_t quorum() const {
    std::uint32_t most = known_.quorum;
    for (const Later& later : later_) most = std::max(most, later.majority.quorum);
    return most;
  }
  /// The largest value that a quorum of these nodes gives; `value` is that of some nodes for one
  /// majority. Of a bool: whether there is such a quorum.
  template <typename Value>
  [[nodiscard]] auto best(NodeSet nodes, const Value& value) const {
    const NodeSet others = nodes - later_nodes_;
    auto found = value(known_, others);
    for (std::size_t last = 0; last < later_.size(); ++last) {
      for (const std::size_t first : {std::size_t{0}, last}) {
        NodeSet all = others;
        for (std::size_t i = first; i <= last; ++i) all = all | (nodes & later_[i].shown_by);
        auto least = value(known_, all);
        for (std::size_t i = first; i <= last; ++i) {
          least = std::min(least, value(later_[i].majority, all));
        }
        found = std::max(found, least);
      }
    }
    return found;
  }
  friend bool operator==(const Majorities&, const Majorities&) = default;

 private:
  struct Later {
    std::uint64_t epoch = 0;
    Majority majority;
    NodeSet shown_by;
    friend bool operator==(const Later&, const Later&) = default;
  };

  Majority known_;
  std::vector<Later> later_;  // by epochs
  NodeSet later_nodes_;
};

/// Votes counted.
struct Tally {
  NodeSet of;  ///< all that are counted
  NodeSet yes;
  NodeSet no;           ///< voted against
  NodeSet unavailable;  ///< did not vote, which is not a refusal

  [[nodiscard]] constexpr NodeSet pending() const { return of - (yes | no | unavailable); }
};

}  // namespace redlock::engine
