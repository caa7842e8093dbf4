// SPDX-License-Identifier: MIT
// An operator replaces members of the set while everything goes on, and raises its longest lease:
// tells the members that stay, one after the other and with pauses, who the members are; stops the
// old one later, or never; and goes on with the next when the new one has its marker.
#pragma once

#include <optional>
#include <vector>

#include "simulation/scene.hpp"
#include "simulation/servers.hpp"
#include "wire/adoption.hpp"

namespace redlock::simulation {

/// One member joins, leaves, or is replaced; or the longest lease is raised.
struct MemberChange {
  std::vector<NodeIndex> members;
  std::optional<NodeIndex> leaves = {};
  std::optional<NodeIndex> joins = {};
  std::vector<NodeIndex> untold = {};  ///< of those that stay
  [[nodiscard]] bool resizes() const { return joins.has_value() != leaves.has_value(); }
  std::uint32_t told = 0;
  Instant told_last = Instant::min();
  bool committed = false;  ///< a quorum is told
  bool raises = false;
};

class Replacements {
 public:
  Replacements(Scene& scene, Servers& servers);

  /// Where the world has spare servers.
  void schedule_first();
  void go_on();
  /// All that was begun is finished: the members are told, and old ones are stopped.
  void finish();

  /// The servers that are the members by the markers of a quorum, in the order of places; and those
  /// before.
  [[nodiscard]] const std::vector<NodeIndex>& members() const { return members_; }
  [[nodiscard]] const std::vector<NodeIndex>& former() const { return former_; }
  /// Whether every change is done, and a quorum of the members before the last show it: otherwise
  /// some have lost their markers, and who does not know the members yet cannot learn of them.
  [[nodiscard]] bool are_shown() const;
  /// Those that an operator is about to make the members.
  [[nodiscard]] const std::vector<NodeIndex>& planned() const {
    return change_ ? change_->members : members_;
  }

 private:
  void begin(std::vector<NodeIndex> of);
  bool stops_half_way();
  void go_on_from_half_way();
  [[nodiscard]] MemberChange choose(const std::vector<NodeIndex>& of);
  void tell_next();
  /// By the script that programs of operators use; or asks only whether it would take it.
  [[nodiscard]] bool adopts(NodeIndex node, const MemberChange& change, std::uint64_t epoch,
                            wire::AdoptionStep::Kind kind);
  [[nodiscard]] bool tell(NodeIndex node);
  void carry_fences(const std::vector<NodeIndex>& to);
  [[nodiscard]] bool all_run(const std::vector<NodeIndex>& nodes) const;
  void mark_the_new_one();
  bool lose_one();
  [[nodiscard]] bool one_is_behind() const;
  void raise_leases();
  [[nodiscard]] bool all_know_of_raised() const;
  [[nodiscard]] bool is_over() const;
  void go_on_within(Duration most);

  Scene& scene_;
  Servers& servers_;
  Random random_;
  Random losses_;  // of its own, so that worlds without them stay as they are
  Random raises_;  // likewise
  Random stops_;   // likewise
  std::uint64_t epoch_ = 1;
  std::vector<NodeIndex> members_;
  std::vector<NodeIndex> former_;
  NodeIndex next_;  // of the spare servers
  std::optional<MemberChange> change_;
  std::optional<MemberChange> half_done_;  // nobody is at it
};

}  // namespace redlock::simulation
