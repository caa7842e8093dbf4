// SPDX-License-Identifier: MIT
#include "engine/nodes/set_membership.hpp"

#include <algorithm>
#include <utility>

#include "engine/rules.hpp"

namespace redlock::engine {
namespace {

std::string in_short(const std::string& set) {
  constexpr std::size_t enough = 8;
  return set.size() > enough ? set.substr(0, enough) + "..." : set;
}

std::string in_words(const std::string& set) {
  return set.empty() ? "no set" : "set " + in_short(set);
}

}  // namespace

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
    why.detail = std::string(names_[node] ? "it has a marker" : "a node of this set has a marker") +
                 ", and this client runs without quarantine, which would let two programs hold "
                 "one lock; use Quarantine::on, or nodes without markers";
    return why;
  }
  if (open()) {  // nodes that are down may name it, so it is worth waiting for them
    why.cause = Cause::quarantined;
    why.detail = "it names " + in_words(*names_[node]) +
                 "; which set counts is not known before a quorum of nodes was reached";
    return why;
  }
  why.detail = refusal_of(*names_[node], set_);
  return why;
}

std::string SetMembership::refusal_of(const std::string& own,
                                      const std::optional<std::string>& set) {
  if (!set) {
    return "its marker names " + in_words(own) +
           ", and no quorum of the nodes names one set; check the list of nodes (redlock doctor)";
  }
  if (own.empty()) {
    return "its marker names no set, those of a quorum name " + in_words(*set) +
           "; run redlock adopt --replaced";
  }
  return "its marker names " + in_words(own) + ", those of a quorum name " + in_words(*set) +
         ": it is of another set; correct the list of nodes, or DEL redlock:node there when its "
         "old leases are over, and run redlock adopt --replaced";
}

}  // namespace redlock::engine
