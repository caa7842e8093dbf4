// SPDX-License-Identifier: MIT
// What is known of each node about one grant: whether it has the lock, and until when. The validity
// of a lease is computed from this and from nothing else. Programs hold many: every byte counts.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/messages.hpp"
#include "engine/quorum.hpp"
#include "engine/terms.hpp"
#include "engine/types.hpp"

namespace redlock::engine {

enum class Possession : std::uint8_t {
  unknown,   ///< perhaps asked by somebody else, and not known to have it
  asked,     ///< sent an acquire, and not known to have answered
  ours,      ///< confirmed
  healing,   ///< sent a heal: what it answers to earlier messages is out of date
  not_ours,  ///< it certainly has nothing of this owner
};

struct NodeGrant {
  Instant until = Instant::min();  ///< it should have the lock until then; counts while ours
  Possession possession = Possession::unknown;
  bool in_quarantine : 1 = false;  ///< it was when it confirmed
  bool forgotten : 1 = false;      ///< in quarantine, and has it no more; counts until it is over
  bool hold_awaited : 1 = false;   ///< the last hold that was sent has not been answered
  bool hold_is_out : 1 = false;    ///< one will not be answered, and may be executed at any time
};
static_assert(sizeof(NodeGrant) == 16);

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
  /// The node has the lock, and its clock is not trusted.
  void confirm_without_trust(NodeIndex node) { confirm(node, Instant::min()); }
  /// The node ends every lease that much earlier than was thought.
  void shorten(NodeIndex node, Duration by);
  /// The node replied free or taken: whatever it confirmed before no longer counts.
  void withdraw(NodeIndex node);
  /// The node lost what it confirmed, and grants nothing before that is over.
  void forget(NodeIndex node) { nodes_[node].forgotten = true; }
  void hold_sent(NodeIndex node);
  /// To the last hold that was sent.
  void hold_answered(NodeIndex node, const Reply& reply);
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
  /// Of these, nodes of which nothing is awaited but the answer to the last hold.
  [[nodiscard]] NodeSet awaits_hold() const;

 private:
  std::vector<NodeGrant> nodes_;
};

}  // namespace redlock::engine
