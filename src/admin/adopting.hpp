// SPDX-License-Identifier: MIT
// What adopt and the set commands have in common: what each node is found to be, the members that
// its marker names, and the marker that is written there, if it is still as it was seen.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <redlock/admin.hpp>

#include "admin/marker.hpp"
#include "admin/node_query.hpp"
#include "engine/nodes/set_configuration.hpp"
#include "wire/adoption.hpp"
#include "wire/node_marker.hpp"

namespace redlock::admin {

inline constexpr auto* other_change =
    "another change of the members was interrupted; finish it with the same redlock set command, "
    "or undo it, first";
inline constexpr auto* way_out =
    "; if nothing of that helps, the way out is in docs/operations.md, \"More nodes, or fewer\"";
inline constexpr auto* not_agreed =
    "it takes its place when a quorum of the members name it, and too few could be told; when they "
    "can be, give the same command again";

/// The addresses of a member that leaves and of a node that joins, in its place if both are given;
/// empty: none does.
struct MemberMove {
  std::string from{};
  std::string to{};
  OldLeases leases = OldLeases::are_over;

  [[nodiscard]] bool is_none() const { return from.empty() && to.empty(); }
  [[nodiscard]] bool resizes() const { return from.empty() != to.empty(); }
  [[nodiscard]] bool is_done_in(const engine::SetConfiguration& its) const {
    return (to.empty() || its.at(to) != nullptr) && (from.empty() || its.at(from) == nullptr);
  }
};

/// Programs that run go on to a node only by the kind of connection that they have.
[[nodiscard]] std::optional<Error> other_scheme(const wire::NodeAddress& joins,
                                                const wire::NodeAddress& member);

[[nodiscard]] std::string new_id();

/// Whether who changes the set says that the leases which a promoted node may lack are over.
enum class Vouching : std::uint8_t { no, yes };

/// What the nodes of a client show, and the nodes that these name.
struct NamedMembers {
  /// Those that a majority of them name; if there is none, all that a node of the client names: a
  /// list may leave out the one node that shows a change which was interrupted.
  std::vector<wire::NodeAddress> members{};
  bool agreed = false;
  std::map<std::string, engine::SetConfiguration> shown{};  ///< by address, of those that answered
  std::optional<Error> unfit{};  ///< of the client's list: of another set, or damaged

  [[nodiscard]] bool are_of_two_sets() const { return unfit && unfit->code == Errc::no_quorum; }
};
/// A list may be older than the set, and its members may have been replaced since.
[[nodiscard]] Result<NamedMembers> ask_named_members(const Client& client);
/// The same, where no change is made unless some are named.
[[nodiscard]] Result<std::vector<wire::NodeAddress>> members_to_change(const Client& client);
/// Makes one change with connections of its own to these nodes, logged in to as to that one.
[[nodiscard]] Result<std::vector<NodeAdoption>> change_among(
    const Client& client, const std::vector<wire::NodeAddress>& nodes,
    const wire::NodeAddress& login,
    const std::function<Result<std::vector<NodeAdoption>>(NodeQuery&)>& change);

/// Sentences of changes for which every member that stays is asked.
constexpr auto* all_who_stay =
    "; every member that stays has to answer and agree: mend it, or give its place to another node "
    "first (redlock set replace OLD NEW)";
constexpr auto* without_marker =
    ": it is named as a member, and has no marker: another change was interrupted, which is to be "
    "finished with the same redlock set command, or undone, first; or it has lost its data, and "
    "has to be a member again first (redlock doctor)";
constexpr auto* none_told =
    "this time no member was told who the members are, as not all would take that now; give the "
    "same command again";
constexpr auto* told_in_turn =
    "it was not told, as one before it was not; give the same command again";

/// One adoption, or change of the members.
class Adopting {
 protected:
  using OfNodes = std::vector<std::vector<QueryCommand>>;
  using Member = engine::Member;
  using SetConfiguration = engine::SetConfiguration;

  Adopting(NodeQuery& query, MemberMove move, Vouching vouching = Vouching::no);
  ~Adopting() = default;

  Result<void> look();
  /// The run id. The user may not be allowed to read INFO; then the operator's word has to suffice.
  std::string take_info(std::size_t node, const wire::Answer& answer);
  void take_marker(std::size_t node, const wire::Answer& answer);
  void compare_number(std::size_t node);
  [[nodiscard]] std::size_t new_node() const {
    const auto found = std::ranges::find(nodes_, move_.to, &wire::NodeAddress::address);
    return static_cast<std::size_t>(found - nodes_.begin());
  }
  [[nodiscard]] tl::unexpected<Error> no_member(const SetConfiguration& its) const;
  static tl::unexpected<Error> refused(const std::string& why) {
    return tl::make_unexpected(Error{Errc::no_quorum, "no marker was changed: " + why, {}});
  }
  /// A replacement is not begun by whom the nodes do not let finish it.
  Result<void> see_fences(const OfNodes& commands, std::uint32_t quorum);
  static Result<void> too_few_fences(const std::string& whose) {
    return refused("the fences of " + whose +
                   " are to be read, and too few nodes answer or let this user; start them, or "
                   "take the user redlock-admin");
  }
  /// The new member, when it has no marker of this configuration. The fences of so many others are
  /// read, a quorum of theirs at least, so that one knows each token. Whether it gets its marker
  /// now.
  Result<bool> admit(std::size_t node, std::uint32_t read, std::uint32_t quorum,
                     const SetConfiguration& its);
  [[nodiscard]] std::uint64_t last_epoch() const;
  /// One that no other configuration has: a node that cannot be asked, or is being replaced, may
  /// name members that an interrupted replacement told it, and messages name the epoch alone.
  [[nodiscard]] std::uint64_t next_epoch() const;
  /// Refuses a node that is a member elsewhere, or has the data of another member: told of it, the
  /// members would have it in a place in which it never votes.
  [[nodiscard]] Result<void> may_join() const;
  /// Of each node that stays a member.
  OfNodes as_members(const SetConfiguration& its);
  /// Before a member is told, each one that answers promises to execute nothing of an earlier
  /// change, as in Paxos. One that does not is from now on like one that never answered. Whether
  /// all others are still as they were seen, would take it, and take part in no other change.
  Result<bool> prepare(const SetConfiguration& its);
  [[nodiscard]] std::ptrdiff_t answering() const {
    return std::ranges::count(adoptions_, Cause::none, &NodeAdoption::cause);
  }
  /// The same, where each one that answers has to promise.
  Result<bool> all_would(const SetConfiguration& its);
  /// One after the other, in this order, until one is not told.
  Result<void> tell_in_turn(const OfNodes& all, const std::vector<std::size_t>& order,
                            const SetConfiguration& its);
  /// How many of those who stay know it.
  [[nodiscard]] std::uint32_t told() const;
  /// Of so many members, how many that know of a longest lease show that all were told of it: a
  /// quorum; one of two, as the other may have come back with older data.
  [[nodiscard]] static std::size_t enough_to_know(std::size_t members);
  /// Takes along the longest leases that so many of these members may know: all may have been told
  /// of them, and others may be held. What fewer show was not announced to all, or is wrong.
  /// Whether they are not those of `its`.
  bool keep_longest_leases(SetConfiguration& its) const;
  /// Why a member shows others than a quorum of later members, as many, of whom it is one. Nothing
  /// if none does.
  [[nodiscard]] std::optional<std::string> missed_change() const;
  [[nodiscard]] bool joins(std::size_t node) const { return nodes_[node].address == move_.to; }
  /// Whether the marker of another node lists this one, by the id that is in its own.
  [[nodiscard]] bool is_listed(std::size_t node) const;
  /// Whether the new member has a marker with an id that no other node's marker lists there.
  [[nodiscard]] bool has_no_say(std::size_t node) const {
    return joins(node) && is_member(node) && !is_listed(node);
  }
  /// Whether the new member was one before, and still has the marker of then. That marker decides
  /// nothing, and is removed when a quorum names the new member. If it were changed instead, the
  /// node would vote at once, also while leases live that others confirmed without it.
  [[nodiscard]] bool was_member(std::size_t node, const SetConfiguration& its) const {
    return accepted(node) && joins(node) && is_member(node) &&
           markers_[node]->set_name == its.set && !its.has(markers_[node]->id);
  }
  [[nodiscard]] bool is_member(std::size_t node) const {
    return markers_[node] && !markers_[node]->set_name.empty();
  }
  [[nodiscard]] std::vector<QueryCommand> command(std::size_t node, const SetConfiguration& its,
                                                  const wire::AdoptionStep& step) const;
  Result<void> write(const OfNodes& commands, const SetConfiguration& its);
  void read(std::size_t node, const wire::Answer& answer, const std::string& script,
            const SetConfiguration& its);
  [[nodiscard]] std::vector<NodeHealth> healths() const;
  [[nodiscard]] bool accepted(std::size_t node) const {
    return adoptions_[node].cause == Cause::none &&
           adoptions_[node].adoption != Adoption::disagrees;
  }
  void fail(std::size_t node, Cause cause, const std::string& detail);
  void disagrees(std::size_t node, const std::string& detail) {
    adoptions_[node].adoption = Adoption::disagrees;
    adoptions_[node].detail = detail;
  }
  void unconfirmed(std::size_t node, std::string_view why) {
    if (!accepted(node)) return;
    adoptions_[node].adoption = Adoption::unconfirmed;
    adoptions_[node].detail = why;
  }
  [[nodiscard]] std::string same_as(std::size_t other) const {
    return "it is the same server as " + nodes_[other].label + "; name every node once";
  }

  NodeQuery& query_;
  const std::vector<wire::NodeAddress>& nodes_;
  const MemberMove move_;
  const Vouching vouching_;
  const std::string change_ = new_id();
  const wire::SetTerms set_;  // the longest lease of who adopts; of others it does not matter
  std::vector<NodeAdoption> adoptions_;
  std::vector<std::string> promotions_;  // of those that were replicas
  std::vector<std::optional<wire::NodeMarker>> markers_;
  bool may_have_voted_ = false;  // the new member

 private:
  std::vector<QueryCommand> as_member(std::size_t node, const SetConfiguration& its);
  /// Whether a member shows a longer longest lease than these.
  [[nodiscard]] bool is_behind_another(const SetConfiguration& its) const;
  /// If it still is as it was seen: the node may have become a member by another change.
  Result<void> clear_former(std::size_t node, const SetConfiguration& its);
};

}  // namespace redlock::admin
