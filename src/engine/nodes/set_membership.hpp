// SPDX-License-Identifier: MIT
// Which of the client's nodes belong to its set, by the markers that they show. A node that is
// listed by mistake, and belongs to another set, must not complete a quorum: the other members of
// this client's set do not have its grants.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/config.hpp"
#include "engine/messages.hpp"
#include "engine/quorum.hpp"
#include "engine/types.hpp"

namespace redlock::engine {

/// With quarantine: the set is the one that a quorum of the nodes name (markers without a name are
/// a set of their own). Without quarantine: no node may have a marker.
class SetMembership {
 public:
  explicit SetMembership(const Config& config);

  /// The marker that a new connection shows: the name of its set, perhaps empty; none: no marker.
  void on_marker(NodeIndex node, std::optional<std::string> set);
  /// The node refused an acquire because of a marker that this client does not expect.
  void on_refused(NodeIndex node);

  /// The name for the marker of a node that has none; nothing while it may still turn out that a
  /// quorum of nodes names a set. Never a name that fewer than a quorum of nodes have.
  [[nodiscard]] std::optional<std::string> name_for_new_marker() const;

  /// Whether nodes that were not seen yet decide which set counts. Without quarantine they never
  /// do: the first marker that is seen refuses all nodes.
  [[nodiscard]] bool open() const {
    const bool some_seen = seen_ != NodeSet() && seen_ != NodeSet::first(nodes_);
    return wants_markers_ && !set_ && some_seen;
  }
  [[nodiscard]] bool seen(NodeIndex node) const { return seen_.contains(node); }
  /// Whether the node's grants do not count, unless the set is open and becomes the node's own.
  [[nodiscard]] bool is_stranger(NodeIndex node) const { return strangers_.contains(node); }
  [[nodiscard]] bool has_strangers() const { return strangers_ != NodeSet(); }
  /// Why a stranger is refused.
  [[nodiscard]] Unavailable refusal(NodeIndex node) const;
  /// The name that a quorum shared last; none if no quorum has.
  [[nodiscard]] const std::optional<std::string>& name() const { return set_; }

 private:
  void judge();
  /// How many nodes' markers name this set.
  [[nodiscard]] std::uint32_t named(const std::string& set) const;

  std::uint32_t nodes_;
  bool wants_markers_;
  std::vector<std::optional<std::string>> names_;
  std::optional<std::string> set_;  // by the latest quorum
  NodeSet seen_;
  NodeSet strangers_;
};

}  // namespace redlock::engine
