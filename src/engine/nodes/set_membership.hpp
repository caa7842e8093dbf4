// SPDX-License-Identifier: MIT
// Which of the client's nodes belong to its set, by the markers that they show. A node that is
// listed by mistake, and belongs to another set or to none, must not complete a quorum: the other
// members of this client's set do not have its grants.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/config.hpp"
#include "engine/messages.hpp"
#include "engine/nodes/set_configuration.hpp"
#include "engine/quorum.hpp"
#include "engine/types.hpp"

namespace redlock::engine {

/// With quarantine: the set is the one that a quorum of the nodes name. Without quarantine: no node
/// may have a marker.
class SetMembership {
 public:
  explicit SetMembership(const Config& config);

  /// How many nodes there may be, and which of them there are: of a set that grows while clients
  /// run, each new member has a slot that was free.
  [[nodiscard]] std::uint32_t slots() const { return static_cast<std::uint32_t>(markers_.size()); }
  [[nodiscard]] NodeSet nodes() const { return nodes_; }
  /// Of the members that are known (before: of the list), and of later ones that nodes show.
  [[nodiscard]] const Majorities& majorities() const { return majorities_; }

  /// The marker that the node shows to a question of this time; none: no marker.
  void on_marker(Instant asked, NodeIndex node, std::optional<Membership> marker);
  /// It cannot be reached now.
  void on_down(NodeIndex node) {
    if (!seen(node)) unreached_.insert(node);
  }
  /// The node refused an acquire because of a marker that this client does not expect.
  void on_refused(NodeIndex node);

  /// What the node's marker says, or is to say if it has none and stands at a member's address.
  /// Nothing if it is no member of the set, as far as this client knows.
  [[nodiscard]] std::optional<Membership> membership_of(NodeIndex node) const;
  /// Why a node without a marker is not a member, as far as this client knows; nothing if it is.
  [[nodiscard]] std::optional<Unavailable> no_member(NodeIndex node) const;

  /// Whether nodes that were not seen yet decide which set counts. Without quarantine they never
  /// do: the first marker that is seen refuses all nodes.
  [[nodiscard]] bool open() const {
    const bool some_seen = seen_ != NodeSet() && !all_seen();
    return wants_markers_ && !set_ && some_seen;
  }
  [[nodiscard]] bool seen(NodeIndex node) const { return seen_.contains(node); }
  [[nodiscard]] bool has_marker(NodeIndex node) const { return markers_[node].has_value(); }
  /// Or it had one when it was seen before.
  [[nodiscard]] bool had_marker(NodeIndex node) const { return last_shown(node).has_value(); }
  /// Whether the node was asked for its marker then, or later.
  [[nodiscard]] bool was_asked(NodeIndex node, Instant since) const {
    return asked_[node] >= since;
  }
  /// Whether the members are known as they were then, or later: a quorum that was asked since then
  /// shows them; or all nodes were asked, and each shows them or did before it lost its marker, or
  /// those that have theirs show the first members of a set.
  [[nodiscard]] bool is_read_anew(Instant since) const;
  /// The longest lease that any client may have: this client's, or the set's, if a quorum of its
  /// members show that or a longer one (before so many are seen: if one node does).
  [[nodiscard]] Duration longest_lease() const { return longest_lease_; }
  /// The same for what this node may have forgotten.
  [[nodiscard]] Duration longest_lease(NodeIndex node) const;
  /// Why the node is not asked for a lease of this length: it, or the longest that was given to
  /// this client, is longer than the node's marker allows.
  [[nodiscard]] std::optional<Unavailable> other_max_lease(NodeIndex node,
                                                           std::chrono::milliseconds lease) const;
  /// Whether nodes show different members of one set: a change is on its way, or was interrupted.
  [[nodiscard]] bool is_changing() const { return changing_; }
  /// Whether quorums may have been of other nodes than these: the members are not those of the
  /// beginning, or are about to change, or it is not known yet who they are.
  [[nodiscard]] bool may_be_others() const {
    return changing_ || (known_ ? known_->epoch > 1 : shows_any_);
  }
  /// The nodes that show an earlier configuration of this node's set, and are none of its later
  /// members or do not know of its longest lease: their confirmations and those of this node must
  /// not be counted together.
  [[nodiscard]] NodeSet removed_by(NodeIndex node) const { return removed_by_[node]; }
  /// Of these nodes, those that remove another of them, and those that are removed by one.
  struct Conflict {
    NodeSet removing;
    NodeSet removed;
  };
  [[nodiscard]] Conflict conflict_in(NodeSet nodes) const;
  /// Whether a confirmation of the node must not be counted beside those of nodes that count. Of
  /// two that exclude each other, perhaps by the word of one, the one that counts already goes on
  /// to count.
  [[nodiscard]] bool contradicts(NodeIndex node, NodeSet counted) const;
  /// Whether the node may be of any members: it has lost its marker, perhaps without its locks, and
  /// this client never knew it as a member.
  [[nodiscard]] bool is_unknown(NodeIndex node) const {
    return wants_markers_ && seen(node) && !markers_[node] && member_ids_[node].empty();
  }

  /// A node that has lost its place, and the address of the member that has it by now, or has a
  /// place of its own where no node was; empty: the set has no such place any more.
  struct Relocation {
    NodeIndex node = 0;
    std::string address;
  };
  /// Those that follow from what a quorum shows. To be answered by relocate().
  [[nodiscard]] std::vector<Relocation> relocations() const;
  /// The node is to be the server at this address; empty: there is none any more.
  void relocate(NodeIndex node, std::string address) {
    address.empty() ? nodes_.erase(node) : nodes_.insert(node);
    addresses_[node] = std::move(address);
    relocated_.insert(node);
  }
  /// Nothing is known of the node.
  void forget(NodeIndex node);
  /// Whether the node's grants do not count, unless the set is open and becomes the node's own.
  [[nodiscard]] bool is_stranger(NodeIndex node) const { return strangers_.contains(node); }
  [[nodiscard]] bool has_strangers() const { return strangers_ != NodeSet(); }
  /// Why a stranger is refused.
  [[nodiscard]] Unavailable refusal(NodeIndex node) const;
  /// The name that a quorum shared last; none if no quorum has.
  [[nodiscard]] const std::optional<std::string>& name() const { return set_; }
  /// What a quorum showed last of the set; none if no quorum has.
  [[nodiscard]] const std::optional<SetConfiguration>& known() const { return known_; }

 private:
  void judge();
  void count_majorities();
  void note_longest_lease();
  [[nodiscard]] Majority majority_of(const SetConfiguration& configuration) const;
  [[nodiscard]] std::uint32_t base_quorum() const { return majorities_.known().quorum; }
  [[nodiscard]] std::uint32_t enough_for(const SetConfiguration& configuration) const;
  [[nodiscard]] bool all_seen() const { return nodes_ - seen_ == NodeSet(); }
  [[nodiscard]] std::vector<NodeIndex> nodes_without_place() const;
  [[nodiscard]] std::vector<const Member*> members_without_node() const;
  [[nodiscard]] std::uint32_t possible_members(const std::vector<NodeIndex>& without_place) const;
  [[nodiscard]] NodeIndex first_node() const;
  [[nodiscard]] std::uint32_t size_of(const SetConfiguration& configuration) const;
  [[nodiscard]] bool is_of(NodeIndex node, const SetConfiguration& its) const;
  [[nodiscard]] const std::string* named_by(NodeIndex node) const;
  /// How many nodes' markers name this set, or show this configuration.
  [[nodiscard]] std::uint32_t named(const std::string& set) const;
  [[nodiscard]] std::uint32_t shown(const SetConfiguration& configuration) const;
  [[nodiscard]] const std::optional<Membership>& last_shown(NodeIndex node) const {
    return markers_[node] ? markers_[node] : lost_[node];
  }
  [[nodiscard]] bool removes(NodeIndex other, NodeIndex node) const;
  void note_members();
  [[nodiscard]] bool has_place(NodeIndex node, const SetConfiguration& its) const;
  /// Whether that node has the data of this one, which stands in the other's place.
  [[nodiscard]] bool is_copy(NodeIndex node, NodeIndex other) const;
  [[nodiscard]] const SetConfiguration* configuration() const;
  [[nodiscard]] const SetConfiguration* first_members() const;

  NodeSet nodes_;
  Majorities majorities_;
  bool has_too_few_ = false;
  const std::chrono::milliseconds own_max_lease_;
  Duration longest_lease_;
  std::vector<std::string> addresses_;  // empty where no node is
  bool wants_markers_;
  std::vector<std::optional<Membership>> markers_;
  std::vector<std::optional<Membership>> lost_;  // what nodes without a marker showed before
  std::vector<Instant> asked_;
  std::vector<NodeSet> removed_by_;
  std::vector<std::string> member_ids_;    // of the members that the nodes are, or were at last
  std::optional<std::string> set_;         // by the latest quorum
  std::optional<SetConfiguration> known_;  // the same
  NodeSet seen_;
  NodeSet relocated_;  // are still the server that lost its place
  NodeSet unreached_;  // were down, and were never seen
  NodeSet strangers_;
  bool changing_ = false;
  bool shows_any_ = false;  // a node some members
};

}  // namespace redlock::engine
