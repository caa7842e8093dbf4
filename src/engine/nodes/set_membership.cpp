// SPDX-License-Identifier: MIT
#include "engine/nodes/set_membership.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "engine/rules.hpp"

namespace redlock::engine {
SetMembership::SetMembership(const Config& config)
    : nodes_(NodeSet::first(config.nodes)),
      majorities_({nodes_, quorum_of(config.nodes)}),
      own_max_lease_(config.max_lease),
      longest_lease_(config.max_lease > config.max_lease.zero() ? config.max_lease
                                                                : usual_max_lease),
      addresses_(config.addresses),
      wants_markers_(config.quarantine),
      markers_(std::max(config.nodes, config.slots)),
      lost_(slots()),
      asked_(slots(), Instant::min()),
      removed_by_(slots()),
      member_ids_(slots()) {
  addresses_.resize(slots());
}

void SetMembership::on_marker(Instant asked, NodeIndex node, std::optional<Membership> marker) {
  seen_.insert(node);
  unreached_.erase(node);
  asked_[node] = std::max(asked_[node], asked);
  if (marker) {
    lost_[node].reset();
  } else if (markers_[node]) {
    lost_[node] = std::move(markers_[node]);
  }
  markers_[node] = std::move(marker);
  judge();
}

void SetMembership::on_refused(NodeIndex node) {
  if (!wants_markers_) on_marker(Instant::min(), node, Membership());
}

bool SetMembership::is_read_anew(Instant since) const {
  const auto* const first = first_members();
  bool all = true;
  for (NodeIndex node = 0; node < slots(); ++node) {
    all = all && (!nodes_.contains(node) || was_asked(node, since));
  }
  if (all && first != nullptr && (!known_ || *first == *known_)) return true;
  if (!known_) return false;
  std::uint32_t showing = 0;
  std::uint32_t knowing = 0;
  for (NodeIndex node = 0; node < slots(); ++node) {
    const auto& shown = last_shown(node);
    if (!was_asked(node, since) || !shown || shown->configuration != *known_) continue;
    ++knowing;
    showing += markers_[node] ? 1 : 0;
  }
  return showing >= base_quorum() || knowing == size_of(*known_);
}

const std::string* SetMembership::named_by(NodeIndex node) const {
  return markers_[node] ? &markers_[node]->configuration.set : nullptr;
}

std::uint32_t SetMembership::named(const std::string& set) const {
  return static_cast<std::uint32_t>(std::ranges::count_if(
      markers_, [&](const auto& marker) { return marker && marker->configuration.set == set; }));
}

std::uint32_t SetMembership::shown(const SetConfiguration& configuration) const {
  return static_cast<std::uint32_t>(std::ranges::count_if(markers_, [&](const auto& marker) {
    return marker && marker->configuration == configuration;
  }));
}

/// What a node confirmed before it lost its marker it confirmed as what it showed then; if it
/// showed nothing, as one of the members that were known last.
bool SetMembership::removes(NodeIndex other, NodeIndex node) const {
  const auto& shown = last_shown(other);
  const auto& before = last_shown(node);
  if (!shown || (!before && !known_)) return false;
  const SetConfiguration& its = before ? before->configuration : *known_;
  const std::string& id = before ? before->id : member_ids_[node];
  if (!shown->configuration.follows(its)) return false;
  const bool is_none = !id.empty() && !rules::is_member(shown->configuration.has(id));
  return is_none || rules::is_behind(its.longest_lease(), shown->configuration.longest_lease());
}

SetMembership::Conflict SetMembership::conflict_in(NodeSet nodes) const {
  Conflict found;
  if (!rules::confirmations_are_apart()) return found;
  for (NodeIndex node = 0; node < slots(); ++node) {
    if (!nodes.contains(node)) continue;
    const NodeSet removed = removed_by_[node] & nodes;
    if (removed != NodeSet()) found.removing.insert(node);
    found.removed = found.removed | removed;
  }
  return found;
}

bool SetMembership::is_copy(NodeIndex node, NodeIndex other) const {
  if (node == other || !markers_[other] || markers_[other]->id != markers_[node]->id) return false;
  const Member* const its = markers_[other]->configuration.at(addresses_[other]);
  return its != nullptr && its->id == markers_[other]->id;
}

void SetMembership::judge() {
  if (!wants_markers_) {
    // Also when it is gone again: a set that has markers is not for this client.
    const bool found =
        std::ranges::any_of(markers_, [](const auto& marker) { return marker.has_value(); });
    if (found && rules::markers_end_carelessness()) strangers_ = nodes_;
    return;
  }
  strangers_ = {};
  for (const auto& marker : markers_) {
    if (!marker) continue;
    const SetConfiguration& its = marker->configuration;
    if (named(its.set) >= base_quorum()) set_ = its.set;
    if (shown(its) < rules::shown_by_enough(enough_for(its))) continue;
    if (known_ && known_->follows(its)) continue;
    if (known_ && known_->set != its.set) member_ids_.assign(slots(), {});
    known_ = its;
  }
  note_members();
  count_majorities();
  note_longest_lease();
  const SetConfiguration* first = nullptr;
  changing_ = false;
  for (NodeIndex node = 0; node < slots(); ++node) {
    const auto& shown = last_shown(node);
    if (!shown) continue;
    if (first == nullptr) first = &shown->configuration;
    changing_ = changing_ || shown->configuration != *first;
    changing_ = changing_ || (known_ && shown->configuration.follows(*known_));
  }
  shows_any_ = first != nullptr;
  for (NodeIndex node = 0; node < slots(); ++node) {
    removed_by_[node] = {};
    for (NodeIndex other = 0; changing_ && other < slots(); ++other) {
      if (removes(node, other)) removed_by_[node].insert(other);
    }
  }
  if (!rules::other_sets_are_refused()) return;
  for (NodeIndex node = 0; node < slots(); ++node) {
    if (!markers_[node]) continue;
    if (has_too_few_) strangers_.insert(node);
    std::uint32_t removed = 0;
    bool copied = false;
    for (NodeIndex other = 0; other < slots(); ++other) {
      removed += removed_by_[other].contains(node) ? 1 : 0;
      copied = copied || is_copy(node, other);
    }
    const bool is_member = *named_by(node) == set_ && removed < base_quorum() && !copied;
    if (!is_member) strangers_.insert(node);
  }
  for (NodeSet& removed : removed_by_) removed = removed - strangers_;
}

/// Of a marker whose members were not read the nodes of the list are the members.
std::uint32_t SetMembership::size_of(const SetConfiguration& its) const {
  return its.members.empty() ? nodes_.size() : static_cast<std::uint32_t>(its.members.size());
}

bool SetMembership::is_of(NodeIndex node, const SetConfiguration& its) const {
  if (its.members.empty()) return true;
  const auto& shown = last_shown(node);
  if (shown && shown->configuration.set == its.set) return rules::is_member(its.has(shown->id));
  return has_place(node, its);
}

Majority SetMembership::majority_of(const SetConfiguration& its) const {
  Majority majority{{}, quorum_of(size_of(its))};
  for (NodeIndex node = 0; node < slots(); ++node) {
    if (nodes_.contains(node) && is_of(node, its)) majority.of.insert(node);
  }
  return majority;
}

void SetMembership::count_majorities() {
  majorities_ =
      Majorities(known_ ? majority_of(*known_) : Majority{nodes_, quorum_of(nodes_.size())});
  for (NodeIndex node = 0; node < slots(); ++node) {
    const auto& shown = last_shown(node);
    if (!shown || shown->configuration.set != set_) continue;
    const SetConfiguration& its = shown->configuration;
    if (known_ && !its.follows(*known_)) continue;
    if (!rules::later_members_count()) continue;
    majorities_.add_later(its.epoch, majority_of(its), node);
  }
  has_too_few_ = !majorities_.best(
      nodes_, [](const Majority& each, NodeSet all) { return each.count(all) >= each.quorum; });
}

/// One node may lie: a longer lease is believed when a quorum show it, or have shown it. They need
/// not show one configuration.
void SetMembership::note_longest_lease() {
  std::vector<std::chrono::milliseconds> shown;
  for (NodeIndex node = 0; node < slots(); ++node) {
    const auto& its = last_shown(node);
    if (its && (!set_ || its->configuration.set == set_)) {
      shown.push_back(its->configuration.longest_lease());
    }
  }
  std::ranges::sort(shown, std::greater());
  Duration longest = own_max_lease_ == own_max_lease_.zero() ? usual_max_lease : Duration::zero();
  if (!shown.empty()) longest = shown[shown.size() >= base_quorum() ? base_quorum() - 1 : 0];
  if (known_) longest = std::max<Duration>(longest, known_->longest_lease());
  longest_lease_ = rules::longest_lease(own_max_lease_, longest);
}

Duration SetMembership::longest_lease(NodeIndex node) const {
  const auto& its = last_shown(node);
  if (!its) return longest_lease_;
  return rules::longest_lease(longest_lease_, its->configuration.longest_lease());
}

std::optional<Unavailable> SetMembership::other_max_lease(NodeIndex node,
                                                          std::chrono::milliseconds lease) const {
  if (!markers_[node]) return std::nullopt;
  const SetConfiguration& its = markers_[node]->configuration;
  const auto here = std::max(own_max_lease_, lease);
  const bool is_read = its.max_lease != its.max_lease.zero();
  if (!is_read || here <= its.max_lease) return std::nullopt;
  return Unavailable{Cause::incompatible,
                     Delivery::not_sent,
                     {},
                     OtherMaxLease{its.max_lease, its.announced, here}};
}

/// Before a client knows the members, a majority of theirs has to show them. A client that knows
/// former ones goes on when a quorum of these does: from then on no quorum of them is left.
std::uint32_t SetMembership::enough_for(const SetConfiguration& its) const {
  const bool follows = known_ && known_->set == its.set;
  return quorum_of(size_of(follows ? *known_ : its));
}

/// What the markers that are left show, if it is one thing, and the first members of a set: they
/// agreed on it. Of others it is not known whether a quorum ever had them.
const SetConfiguration* SetMembership::first_members() const {
  const SetConfiguration* members = nullptr;
  for (const auto& marker : markers_) {
    if (!marker) continue;
    const SetConfiguration& its = marker->configuration;
    if (its.epoch != 1 || (members != nullptr && *members != its)) return nullptr;
    members = &its;
  }
  const bool all_listed =
      members != nullptr && majority_of(*members).of.size() == members->members.size();
  return all_listed ? members : nullptr;
}

/// The configuration that a quorum of the nodes shows, or showed last if no marker contradicts it
/// (a majority may have lost its data since). A client that never saw one believes in the first
/// members if all nodes were seen.
const SetConfiguration* SetMembership::configuration() const {
  if (!known_) return all_seen() ? first_members() : nullptr;
  const auto contradicts = [this](const SetConfiguration& configuration) {
    return std::ranges::any_of(markers_, [&](const auto& marker) {
      return marker && marker->configuration != configuration;
    });
  };
  const auto is_later = [this](const auto& marker) {
    return marker && marker->configuration.follows(*known_);
  };
  if (std::ranges::any_of(markers_, is_later)) return nullptr;
  return shown(*known_) >= base_quorum() || !contradicts(*known_) ? &*known_ : nullptr;
}

bool SetMembership::contradicts(NodeIndex node, NodeSet counted) const {
  if (!changing_ || !rules::confirmations_are_apart()) [[likely]]
    return false;
  if ((removed_by_[node] & counted) != NodeSet()) return true;
  if (counted.contains(node)) return false;
  counted.insert(node);
  return conflict_in(counted).removed.contains(node);
}

/// A client may spell addresses otherwise than the markers do; the ids are the same, and a member
/// keeps its own when it loses its data.
void SetMembership::note_members() {
  for (NodeIndex node = 0; known_ && node < slots(); ++node) {
    const auto& marker = markers_[node];
    const Member* const by_address = known_->at(addresses_[node]);
    if (marker && marker->configuration.set == known_->set) {
      member_ids_[node] = marker->id;
    } else if (!marker && by_address != nullptr) {
      member_ids_[node] = by_address->id;
    }
  }
}

/// Whether the node is one of these members, or stands at the address of one.
bool SetMembership::has_place(NodeIndex node, const SetConfiguration& its) const {
  return its.at(addresses_[node]) != nullptr || its.has(member_ids_[node]);
}

/// A node that was never reached may be a member whose address is spelled in another way, unless
/// all others are spelled as the markers have them. One that shows the marker of another set, or
/// none and never had a place, is listed by mistake: that is the operator's to mend.
std::vector<NodeIndex> SetMembership::nodes_without_place() const {
  std::vector<NodeIndex> without;
  bool spelled_alike = true;
  for (NodeIndex node = 0; node < slots(); ++node) {
    if (!nodes_.contains(node)) continue;
    if (!has_place(node, *known_)) without.push_back(node);
    spelled_alike = spelled_alike && (known_->at(addresses_[node]) != nullptr || !markers_[node]);
  }
  std::erase_if(without, [&](NodeIndex node) {
    if (markers_[node] && !known_->follows(markers_[node]->configuration)) return true;
    return member_ids_[node].empty() && (!unreached_.contains(node) || !spelled_alike);
  });
  return without;
}

std::vector<const Member*> SetMembership::members_without_node() const {
  std::vector<const Member*> missing;
  for (const Member& member : known_->members) {
    const bool is_listed = std::ranges::find(addresses_, member.address) != addresses_.end() ||
                           std::ranges::find(member_ids_, member.id) != member_ids_.end();
    if (!is_listed) missing.push_back(&member);
  }
  return missing;
}

NodeIndex SetMembership::first_node() const {
  NodeIndex node = 0;
  while (!nodes_.contains(node)) ++node;
  return node;
}

/// How many of the nodes are members of the known configuration, or may turn out to be.
std::uint32_t SetMembership::possible_members(const std::vector<NodeIndex>& without_place) const {
  std::uint32_t count = 0;
  for (NodeIndex node = 0; node < slots(); ++node) {
    if (!nodes_.contains(node)) continue;
    const bool lost_its_place = std::ranges::find(without_place, node) != without_place.end();
    count += has_place(node, *known_) || (!seen(node) && !lost_its_place) ? 1 : 0;
  }
  return count;
}

/// Members take the places of nodes that lost theirs, then free slots. What is left of the nodes
/// without a place goes.
std::vector<SetMembership::Relocation> SetMembership::relocations() const {
  if (!known_ || shown(*known_) == 0) return {};
  std::vector<NodeIndex> without = nodes_without_place();
  std::size_t members = possible_members(without);
  NodeSet taken = nodes_ | relocated_;
  std::vector<Relocation> found;
  for (const Member* member : members_without_node()) {
    const auto alike = [&](NodeIndex node) {
      return scheme_of(addresses_[node]) == scheme_of(member->address);
    };
    if (members == known_->members.size()) break;
    const auto moved = std::ranges::find_if(without, alike);
    NodeIndex slot = 0;
    while (slot < slots() && taken.contains(slot)) ++slot;
    if (moved != without.end()) {
      slot = *moved;
      without.erase(moved);
    } else if (slot >= slots() || !alike(first_node())) {
      continue;
    }
    taken.insert(slot);
    found.push_back({slot, member->address});
    ++members;
  }
  std::size_t nodes = taken.size();
  for (const NodeIndex node : without) {
    if (nodes-- <= known_->members.size()) break;
    found.push_back({node, {}});
  }
  return found;
}

void SetMembership::forget(NodeIndex node) {
  relocated_.erase(node);
  member_ids_[node].clear();
  seen_.erase(node);
  unreached_.erase(node);
  markers_[node].reset();
  lost_[node].reset();
  asked_[node] = Instant::min();
  judge();
}

std::optional<Membership> SetMembership::membership_of(NodeIndex node) const {
  if (markers_[node]) return *named_by(node) == set_ ? markers_[node] : std::nullopt;
  const SetConfiguration* const its = configuration();
  const Member* const member = its != nullptr ? its->at(addresses_[node]) : nullptr;
  if (member == nullptr) return std::nullopt;
  const bool is_elsewhere = std::ranges::any_of(
      markers_, [&](const auto& marker) { return marker && marker->id == member->id; });
  if (is_elsewhere) return std::nullopt;
  return Membership{member->id, *its};
}

std::optional<Unavailable> SetMembership::no_member(NodeIndex node) const {
  if (markers_[node] || membership_of(node)) return std::nullopt;
  const SetConfiguration* const its = configuration();
  Unavailable why{Cause::quarantined, Delivery::not_sent, {}};
  why.objection = NoMember{false, its != nullptr ? its->addresses() : std::vector<std::string>()};
  return why;
}

Unavailable SetMembership::refusal(NodeIndex node) const {
  if (relocated_.contains(node)) return other_members();
  Unavailable why{Cause::incompatible, Delivery::not_sent, {}};
  if (!wants_markers_) {
    why.objection = MarkerUnwanted{markers_[node].has_value()};
  } else if (has_too_few_) {
    why.objection = TooFewListed{nodes_.size(), size_of(last_shown(node)->configuration)};
  } else if (open()) {  // nodes that are down may name it, so it is worth waiting for them
    why.cause = Cause::quarantined;
    why.objection = SetUndecided{*named_by(node)};
  } else if (*named_by(node) != set_) {
    why.objection = OtherSet{*named_by(node), set_};
  } else {
    // Another one removes it: for its members, or for its longest lease.
    const SetConfiguration& its = markers_[node]->configuration;
    std::chrono::milliseconds longest{};
    for (NodeIndex other = 0; other < slots(); ++other) {
      if (!removes(other, node)) continue;
      longest = std::max(longest, last_shown(other)->configuration.longest_lease());
    }
    const bool is_member = !known_ || known_->has(markers_[node]->id);
    if (is_member && rules::is_behind(its.longest_lease(), longest)) {
      why.objection = IsBehind{its.longest_lease(), longest};
    } else if (known_) {
      why.objection = NoMember{true, known_->addresses()};
    } else {
      why.objection = OtherSet{*named_by(node), set_};
    }
  }
  return why;
}

}  // namespace redlock::engine
