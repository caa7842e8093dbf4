// SPDX-License-Identifier: MIT
// The nodes as voters: how many there are and how many are a quorum, which of them may not vote now
// and why, how much clocks may differ, how long a node may take. Every machine of the engine reads
// it.
#pragma once

#include <algorithm>
#include <cassert>
#include <chrono>
#include <vector>

#include "engine/config.hpp"
#include "engine/nodes/clock_watch.hpp"
#include "engine/nodes/quarantines.hpp"
#include "engine/quorum.hpp"
#include "engine/rules.hpp"
#include "engine/types.hpp"

namespace redlock::engine {

class Electorate {
 public:
  /// The quarantines and the clocks must outlive the electorate.
  Electorate(const Config& config, const Quarantines& quarantines, const ClockWatch& clocks)
      : config_(config),
        quarantines_(&quarantines),
        clocks_(&clocks),
        connected_(sets().slots(), Instant::min()) {
    assert(config.nodes >= 1 && sets().slots() <= NodeSet::max_nodes);
  }

  /// How many nodes there may be: indices are less.
  [[nodiscard]] std::uint32_t slots() const { return sets().slots(); }
  [[nodiscard]] NodeSet nodes() const { return sets().nodes(); }
  /// How many nodes suffice for whatever needs a quorum; for what is no question of safety.
  [[nodiscard]] std::uint32_t quorum() const { return majorities().quorum(); }
  [[nodiscard]] const Majorities& majorities() const { return sets().majorities(); }
  /// Whether these are a quorum. Of the nodes, those `connected` are counted over; see
  /// rules::quorum.
  [[nodiscard]] bool is_quorum(NodeSet yes, NodeSet connected) const {
    return majorities().best(yes, [=](const Majority& each, NodeSet nodes) {
      return each.count(nodes) >= rules::quorum(each.quorum, connected.size());
    });
  }
  [[nodiscard]] bool is_quorum(NodeSet yes) const { return is_quorum(yes, nodes()); }
  [[nodiscard]] bool won(const Tally& votes) const { return is_quorum(votes.yes, votes.of); }
  [[nodiscard]] bool out_of_reach(const Tally& votes) const {
    return !is_quorum(votes.yes | votes.pending(), votes.of);
  }
  /// A quorum voted, for or against.
  [[nodiscard]] bool quorum_voted(const Tally& votes) const {
    return is_quorum(votes.yes | votes.no, votes.of);
  }
  /// A quorum cannot vote any more.
  [[nodiscard]] bool quorum_unavailable(const Tally& votes) const {
    return !is_quorum(votes.of - votes.unavailable, votes.of);
  }
  [[nodiscard]] Duration node_timeout() const { return config_.node_timeout; }
  [[nodiscard]] const Config& config() const { return config_; }
  /// The longest lease that any client of the set may have.
  [[nodiscard]] std::chrono::milliseconds longest_lease() const {
    return std::chrono::ceil<std::chrono::milliseconds>(sets().longest_lease());
  }

  /// Why this node may not be asked for a lock for so long now; nothing if it may.
  [[nodiscard]] std::optional<Unavailable> objection(Instant now, NodeIndex node,
                                                     std::chrono::milliseconds lease = {}) const {
    if (!nodes().contains(node)) return other_members();
    if (auto why = quarantines_->objection(now, node)) return why;
    return distrust(now, node, lease);
  }
  [[nodiscard]] bool quarantined(Instant now, NodeIndex node) const {
    return !quarantines_->votes(now, node);
  }
  /// Why the node, as far as this client knows, grants no lock to any client: it may have forgotten
  /// grants, and waits until they are over.
  [[nodiscard]] std::optional<Unavailable> quarantine(Instant now, NodeIndex node) const {
    return quarantines_->objection(now, node);
  }
  /// Why this node's confirmations of leases as long as this do not count now; nothing if they do.
  [[nodiscard]] std::optional<Unavailable> distrust(Instant now, NodeIndex node,
                                                    std::chrono::milliseconds lease) const {
    if (auto why = stranger(node, lease)) return why;
    return clocks_->objection(now, node);
  }
  /// Why this node belongs to another set than the client, or allows only shorter leases; nothing
  /// if it does not, or if that is still undecided.
  [[nodiscard]] std::optional<Unavailable> stranger(NodeIndex node,
                                                    std::chrono::milliseconds lease = {}) const {
    if (!sets().open() && sets().is_stranger(node)) return sets().refusal(node);
    return sets().other_max_lease(node, lease);
  }
  /// Nodes that can tell this client's waiters that their turn has come.
  [[nodiscard]] NodeSet nodes_that_wake() const { return nodes_that_wake_; }
  void set_wakes(NodeIndex node, bool wakes) {
    if (wakes) {
      nodes_that_wake_.insert(node);
    } else {
      nodes_that_wake_.erase(node);
    }
  }
  /// What is known of a node that has not answered an acquire within the node timeout, which is
  /// over now. An attempt during its first connection proves nothing about the node.
  [[nodiscard]] Unavailable silence(Instant now, NodeIndex node) const {
    return connected_[node] > now - node_timeout() ? not_connected_yet() : no_answer();
  }
  /// The first connection to every node begins to be made; it was made at that time; it failed.
  void connecting() { connected_.assign(slots(), never); }
  void connected(Instant now, NodeIndex node) {
    connected_[node] = std::min(connected_[node], now);
  }
  void not_connected(NodeIndex node) { connected_[node] = Instant::min(); }
  [[nodiscard]] const SetMembership& sets() const { return quarantines_->sets(); }

  [[nodiscard]] Instant trusted_until(Instant sent, Duration lease) const {
    return rules::trusted_until(sent, lease, config_.drift_factor);
  }

 private:
  Config config_;
  const Quarantines* quarantines_;
  const ClockWatch* clocks_;
  NodeSet nodes_that_wake_;
  std::vector<Instant> connected_;  // for the first time
};

}  // namespace redlock::engine
