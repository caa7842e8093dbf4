// SPDX-License-Identifier: MIT
#include "engine/nodes/set_membership.hpp"

#include <algorithm>
#include <utility>

#include "engine/rules.hpp"

namespace redlock::engine {
SetMembership::SetMembership(const Config& config)
    : nodes_(config.nodes), wants_markers_(config.quarantine), names_(config.nodes) {}

void SetMembership::on_marker(NodeIndex node, std::optional<std::string> set) {
  seen_.insert(node);
  names_[node] = std::move(set);
  judge();
}

void SetMembership::on_refused(NodeIndex node) {
  if (!wants_markers_) on_marker(node, "");
}

std::uint32_t SetMembership::named(const std::string& set) const {
  return static_cast<std::uint32_t>(std::ranges::count(names_, std::optional(set)));
}

void SetMembership::judge() {
  if (!wants_markers_) {
    // Also when it is gone again: a set that has markers is not for this client.
    const bool found =
        std::ranges::any_of(names_, [](const auto& name) { return name.has_value(); });
    if (found && rules::markers_end_carelessness()) strangers_ = NodeSet::first(nodes_);
    return;
  }
  strangers_ = {};
  for (const auto& name : names_) {
    if (name && named(*name) >= quorum_of(nodes_)) set_ = name;
  }
  if (!rules::other_sets_are_refused()) return;
  for (NodeIndex node = 0; node < nodes_; ++node) {
    if (names_[node] && names_[node] != set_) strangers_.insert(node);
  }
}

std::optional<std::string> SetMembership::name_for_new_marker() const {
  if (set_) return set_;
  const std::uint32_t unseen = nodes_ - seen_.size();
  for (const auto& name : names_) {
    if (name && named(*name) + unseen >= quorum_of(nodes_)) return std::nullopt;
  }
  return "";
}

Unavailable SetMembership::refusal(NodeIndex node) const {
  Unavailable why{Cause::incompatible, Delivery::not_sent, {}};
  if (!wants_markers_) {
    why.objection = MarkerUnwanted{names_[node].has_value()};
  } else if (open()) {  // nodes that are down may name it, so it is worth waiting for them
    why.cause = Cause::quarantined;
    why.objection = SetUndecided{*names_[node]};
  } else {
    why.objection = OtherSet{*names_[node], set_};
  }
  return why;
}

}  // namespace redlock::engine
