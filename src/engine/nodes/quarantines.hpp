// SPDX-License-Identifier: MIT
// Which nodes may vote, and from when. A node that may have forgotten a grant must not grant the
// lock again while old leases may live: it is quarantined for the longest lease and a little more.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/config.hpp"
#include "engine/messages.hpp"
#include "engine/nodes/node_facts.hpp"
#include "engine/nodes/set_membership.hpp"
#include "engine/outbox.hpp"
#include "engine/rules.hpp"
#include "engine/types.hpp"

namespace redlock::engine {

class Quarantines {
 public:
  explicit Quarantines(const Config& config);

  /// What a new connection shows of the node.
  void on_node_facts(Instant now, NodeIndex node, const NodeFacts& facts);
  /// The run that was shown last is still there.
  void on_sign_of_life(Instant now, NodeIndex node);
  /// The node has a marker, which says this.
  void on_marker(Instant now, NodeIndex node, Membership marker = {});
  /// The marker that it had all the time says this by now, to a question of that time.
  void on_members(Instant now, NodeIndex node, Membership marker, Instant asked);
  /// The node has no marker, to a question of that time.
  void on_no_marker(Instant now, NodeIndex node, Instant asked);
  /// The node has no marker, and is pending with this id, which is lost with the rest of its data.
  void on_pending_marker(Instant now, NodeIndex node, std::string id, Instant asked);

  void on_down(NodeIndex node) { sets_.on_down(node); }
  /// See SetMembership.
  void relocate(NodeIndex node, const std::string& address) { sets_.relocate(node, address); }
  void forget(NodeIndex node);

  /// Whether it may be asked for the lock now, as far as this client knows.
  [[nodiscard]] bool votes(Instant now, NodeIndex node) const;
  /// Why it may not be asked for the lock now; nothing if it may.
  [[nodiscard]] std::optional<Unavailable> objection(Instant now, NodeIndex node) const;

  /// Which nodes belong to the set at all.
  [[nodiscard]] const SetMembership& sets() const { return sets_; }
  /// An acquire or heal may be refused because the marker is missing, or names another set.
  void on_acquire_reply(Instant now, NodeIndex node, const Reply& reply);

  [[nodiscard]] Instant deadline() const { return next_look_; }
  void on_deadline(Instant now, Outbox& out);

 private:
  struct Node {
    Instant up_since = Instant::min();
    Instant seen_at = Instant::min();
    std::optional<Instant> suspect_since;  // without a marker that vouches for it, first seen at
                                           // this time
    bool reads_members = false;            // before it waits
    std::string run;
    std::string pending;  // the id that was seen last
    bool durable = true;
    bool promoted = false;
  };

  void follow_members(Instant now);
  void suspect(Instant now, NodeIndex node);
  void wait_from(Instant now, NodeIndex node);
  /// For how long the node waits that may have forgotten a grant: longer, if longer leases are
  /// announced meanwhile.
  [[nodiscard]] Duration quarantine_of(NodeIndex node) const {
    return rules::over_everywhere(sets_.longest_lease(node), drift_factor_);
  }
  [[nodiscard]] Instant votes_from(NodeIndex node) const {
    const Node& state = nodes_[node];
    const Instant kept_since = state.durable ? Instant::min() : state.up_since;
    return state.suspect_since.value_or(kept_since) + quarantine_of(node);
  }
  void require_reading(NodeIndex node, bool required);
  void read_members(Instant since, Outbox& out) const;
  void look_for_markers(Instant now, Outbox& out);

  bool is_on_;
  double drift_factor_;
  Duration between_markers_;  // without quarantine, which has no other reason to look
  SetMembership sets_;
  std::vector<Node> nodes_;
  Instant next_look_ = never;
  std::optional<SetConfiguration> followed_;
};

}  // namespace redlock::engine
