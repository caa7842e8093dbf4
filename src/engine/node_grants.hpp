// SPDX-License-Identifier: MIT
// What one grant knows of each node: whether the lock is ours there, and until when. The validity
// of a lease is computed from this and from nothing else. Programs hold many: every byte counts.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/quorum.hpp"
#include "engine/terms.hpp"
#include "engine/types.hpp"

namespace redlock::engine {

enum class Possession : std::uint8_t {
  unknown,   ///< perhaps asked by somebody else, and not known to have it
  asked,     ///< sent an acquire, and not known to have answered
  ours,      ///< confirmed
  healing,   ///< asked to take part again; counts when the next round confirms it
  not_ours,  ///< it certainly has nothing of this owner
};

struct NodeGrant {
  Instant until = Instant::min();  ///< it should have the lock until then; counts while ours
  std::uint32_t healed_in = 0;     ///< the last round that had begun when healing was sent
  Possession possession = Possession::unknown;
  bool in_quarantine = false;  ///< it was when it confirmed
  bool forgotten = false;      ///< in quarantine, and has it no more; counts until it is over
  bool hold_is_out = false;    ///< it may execute a hold of ours late, and lengthen what it has
};

class NodeGrants {
 public:
  /// `asked`: every node is sent an acquire. Otherwise the grant is one that exists already.
  NodeGrants(std::uint32_t nodes, bool asked)
      : nodes_(nodes, NodeGrant{.possession = asked ? Possession::asked : Possession::unknown}) {}

  [[nodiscard]] NodeGrant& operator[](NodeIndex node) { return nodes_[node]; }
  [[nodiscard]] const NodeGrant& operator[](NodeIndex node) const { return nodes_[node]; }
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(nodes_.size()); }

  /// The node has the lock for this owner until then at least.
  void confirm(NodeIndex node, Instant until);
  /// The node has the lock, and its word on the time is worth nothing.
  void confirm_without_trust(NodeIndex node) { confirm(node, Instant::min()); }
  /// The node ends every lease that much earlier than was thought.
  void shorten(NodeIndex node, Duration by);
  /// The node says that it is free, or taken: whatever it confirmed before no longer counts.
  void withdraw(NodeIndex node);
  /// The node has forgotten what it confirmed, and gives it to nobody else before it is over.
  void forget(NodeIndex node) { nodes_[node].forgotten = true; }
  void hold_sent(NodeIndex node) { nodes_[node].hold_is_out = true; }
  /// The last hold that was sent.
  void hold_executed(NodeIndex node) { nodes_[node].hold_is_out = false; }
  /// Nothing is concluded from that any more.
  void withdraw_forgotten();

  /// The quorum-th latest of the trusted times: until then, too few nodes are free for anybody
  /// else. Instant::min() if fewer than a quorum are ours.
  [[nodiscard]] Instant valid_until() const;
  /// Nodes that are ours or may be, without those that are only being healed.
  [[nodiscard]] std::uint32_t can_be_ours() const;
  /// Nodes that confirmed, and are trusted to have the lock still.
  [[nodiscard]] NodeSet trusted(Instant now) const;
  /// Nodes that may have something of this owner, and so must be released.
  [[nodiscard]] NodeSet may_hold() const;
  /// Nodes that did not answer when they were asked to take the lock, or to make it last: they may
  /// do so at any time until the next connection is up.
  [[nodiscard]] NodeSet may_answer_late() const;

 private:
  std::vector<NodeGrant> nodes_;
};

}  // namespace redlock::engine
