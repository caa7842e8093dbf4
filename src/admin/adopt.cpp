// SPDX-License-Identifier: MIT
// Writes the marker on nodes that have none, after a look at whether they may ever vote: a marker
// that should not be there is hard to get rid of. All markers of a set have one name: the name that
// a quorum of the nodes have, or a new name if a quorum can be given it. Where there is a set, a
// node without a marker is perhaps listed by mistake in the place of a member: only the operator
// can tell.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <redlock/admin.hpp>

#include "admin/marker.hpp"
#include "admin/node_query.hpp"
#include "admin/twins.hpp"
#include "client/client_impl.hpp"
#include "client/sentence.hpp"
#include "client/set_name.hpp"
#include "engine/quorum.hpp"
#include "net/kernel_random.hpp"
#include "wire/adoption.hpp"
#include "wire/info_text.hpp"
#include "wire/key_layout.hpp"

namespace redlock {
namespace {

using admin::QueryCommand;

constexpr auto* not_said =
    "it is new to the set of the other nodes, has lost its data or is listed by mistake; if it "
    "takes the place of a member that is stopped for good, and all earlier leases are over, say "
    "so: redlock adopt --replaced NODE; otherwise correct the list";
constexpr auto* no_set =
    "it is new beside a node that has a marker, and no quorum of the nodes is in one set; correct "
    "the list, start the nodes that are down, or see docs/operations.md if most have lost their "
    "data";
constexpr auto* too_few =
    "too few nodes could be asked to know their set; adopt again when a quorum can be asked";
constexpr auto* not_all =
    "it has no marker, and a node of the list that could not be asked may have one; a new set is "
    "adopted when all its nodes can be asked: start them and adopt again, or correct the list";

/// Decides by INFO which nodes may be given a marker.
class Candidates {
 public:
  explicit Candidates(const std::vector<wire::NodeAddress>& nodes)
      : nodes_(nodes), promotions_(nodes.size()), run_ids_(nodes.size()), markers_(nodes.size()) {
    for (const auto& node : nodes) {
      adoptions_.emplace_back();
      adoptions_.back().node = node.label;
    }
  }

  /// The user may not be allowed to read INFO; then the operator's word has to suffice.
  void take(std::size_t node, const wire::Answer& answer) {
    const auto trouble = admin::trouble_of(answer, nodes_[node]);
    if (!answer) return fail(node, trouble.cause, trouble.detail);
    const auto text = admin::text_of(answer).value_or("");
    const wire::InfoText info(text);
    const auto role = info.value("role");
    if (!role.empty() && role != "master") {
      fail(node, Cause::incompatible, "it is a replica; only independent masters are adopted");
    } else if (info.is_in_cluster()) {
      fail(node, Cause::incompatible, "it belongs to a Redis Cluster; take an independent master");
    }
    if (info.was_replica()) promotions_[node] = info.promotion();
    run_ids_[node] = info.value("run_id");
  }

  [[nodiscard]] const std::vector<std::string>& run_ids() const { return run_ids_; }
  void take_twins(const std::vector<std::optional<std::size_t>>& twins) {
    for (std::size_t node = 0; node < twins.size(); ++node) {
      if (!twins[node]) continue;
      fail(node, Cause::incompatible, same_as(*twins[node]));
      fail(*twins[node], Cause::incompatible, same_as(node));
    }
  }

  void take_marker(std::size_t node, const wire::Answer& answer) {
    const auto trouble = admin::trouble_of(answer, nodes_[node]);
    if (trouble.cause != Cause::none) fail(node, trouble.cause, trouble.detail);
    markers_[node] = admin::read_marker(answer, nodes_[node]);
  }

  /// The name for the markers of this set; empty if no quorum of the nodes can have it, so that a
  /// later adoption would take it for another set's.
  [[nodiscard]] std::string set_name(engine::RandomSource& random,
                                     const wire::SetTerms& set) const {
    std::vector<std::optional<std::string>> names(markers_.size());
    std::size_t nameless = 0;
    for (std::size_t i = 0; i < markers_.size(); ++i) {
      const auto& marker = markers_[i];
      if (!accepted(i) || (marker && marker->disagreement(set))) continue;
      if (marker && !marker->set_name.empty()) {
        names[i] = marker->set_name;
      } else if (marker || is_new()) {
        ++nameless;
      }
    }
    if (auto name = client::name_of_quorum(names)) return *name;
    return nameless >= engine::quorum_of(static_cast<std::uint32_t>(names.size()))
               ? wire::random_id(random)
               : std::string();
  }
  /// Whether the node is to be left as it is: its marker agrees except for its name, which is not
  /// that of this set, or may not be, because some nodes could not be asked.
  bool leave(std::size_t node, const std::string& name, const wire::SetTerms& set) {
    const auto& marker = markers_[node];
    if (!marker || marker->set_name.empty() || marker->set_name == name) return false;
    if (marker->disagreement(set)) return false;  // which the node's answer tells
    std::size_t alike = 0;
    for (std::size_t i = 0; i < markers_.size(); ++i) {
      const bool unknown = !accepted(i);
      alike += unknown || (markers_[i] && markers_[i]->set_name == marker->set_name) ? 1 : 0;
    }
    if (name.empty() && alike >= engine::quorum_of(static_cast<std::uint32_t>(set.nodes))) {
      adoptions_[node].adoption = Adoption::already_there;
      return true;
    }
    adoptions_[node].adoption = Adoption::disagrees;
    adoptions_[node].detail =
        client::another_set(marker->set_name, name.empty() ? std::nullopt : std::optional(name));
    return true;
  }

  /// Leaves alone each node that would be new in an existing set, unless it is one of `replaced`
  /// and a quorum of the nodes are in that set; and all nodes of a new set if not all can be asked,
  /// because the silent nodes may be in another set.
  void confirm(const std::string& name, const wire::SetTerms& set,
               const std::set<std::string>& replaced) {
    std::map<std::string, std::uint32_t> members;  // by the name of their set
    for (std::size_t i = 0; i < markers_.size(); ++i) {
      if (!accepted(i) || !markers_[i] || markers_[i]->disagreement(set)) continue;
      ++members[markers_[i]->set_name];
    }
    const bool is_named = !name.empty() && members.contains(name);
    const bool is_set =
        members[is_named ? name : ""] >= engine::quorum_of(static_cast<std::uint32_t>(set.nodes));
    for (std::size_t i = 0; i < markers_.size(); ++i) {
      const bool is_member = markers_[i] && (!is_named || !markers_[i]->set_name.empty());
      if (!accepted(i) || is_member) continue;
      if (is_new() ? !name.empty() && !is_any_silent()
                   : is_set && replaced.contains(nodes_[i].label))
        continue;
      adoptions_[i].adoption = Adoption::unconfirmed;
      adoptions_[i].detail = is_new() ? (name.empty() ? too_few : not_all)
                             : is_set ? not_said
                                      : no_set;
    }
  }

  [[nodiscard]] bool accepted(std::size_t node) const {
    return adoptions_[node].cause == Cause::none;
  }
  /// Of a node that was a replica; empty for the others.
  [[nodiscard]] const std::string& promotion(std::size_t node) const { return promotions_[node]; }
  [[nodiscard]] std::vector<NodeAdoption>& adoptions() { return adoptions_; }

  void fail(std::size_t node, Cause cause, const std::string& detail) {
    if (!accepted(node)) return;
    adoptions_[node].cause = cause;
    adoptions_[node].detail = detail.empty() ? to_string(cause) : detail;
  }

 private:
  /// No node is known to be in a set.
  [[nodiscard]] bool is_new() const {
    return std::ranges::none_of(markers_, [](const auto& marker) { return marker.has_value(); });
  }

  /// Whether there is a node of which it is unknown if it has a marker.
  [[nodiscard]] bool is_any_silent() const {
    return std::ranges::any_of(adoptions_, [](const NodeAdoption& node) {
      return node.cause != Cause::none && node.cause != Cause::incompatible &&
             node.cause != Cause::read_only;
    });
  }

  [[nodiscard]] std::string same_as(std::size_t other) const {
    return "it is the same server as " + nodes_[other].label + "; name every node once";
  }

  const std::vector<wire::NodeAddress>& nodes_;
  std::vector<NodeAdoption> adoptions_;
  std::vector<std::string> promotions_;
  std::vector<std::string> run_ids_;
  std::vector<std::optional<wire::NodeMarker>> markers_;
};

/// As reports name them; the list may spell the same address in other ways.
Result<std::set<std::string>> labels_of(const std::vector<std::string>& uris,
                                        const std::vector<wire::NodeAddress>& nodes) {
  std::set<std::string> labels;
  for (const auto& uri : uris) {
    const auto parsed = wire::parse_node_uri(uri);
    const auto is_it = [&](const wire::NodeAddress& node) { return node.label == parsed->label; };
    if (parsed && std::ranges::any_of(nodes, is_it)) {
      labels.insert(parsed->label);
      continue;
    }
    return tl::make_unexpected(
        Error{Errc::invalid_argument,
              "the replaced node " + (parsed ? parsed->label : client::in_quotes(uri)) +
                  " is not in the list of nodes; write it as the list has it",
              {}});
  }
  return labels;
}

void read_adoption(Candidates& candidates, std::size_t at, const wire::Answer& answer,
                   const wire::NodeAddress& node, const wire::SetTerms& set,
                   const std::string& name, const std::string& script) {
  auto& adoption = candidates.adoptions()[at];
  const auto trouble = admin::trouble_of(answer, node, script);
  if (trouble.cause != Cause::none) {
    candidates.fail(at, trouble.cause, trouble.detail);
  } else if (admin::text_of(answer) == "written") {
    adoption.adoption = Adoption::written;
  } else if (const auto marker = admin::read_marker(answer, node)) {
    adoption.detail = marker->disagreement(set).value_or("");
    if (adoption.detail.empty() && marker->set_name != name) {
      // Another client has adopted the node meanwhile.
      adoption.detail = client::another_set(marker->set_name, name);
    }
    adoption.adoption = adoption.detail.empty() ? Adoption::already_there : Adoption::disagrees;
  } else {
    candidates.fail(at, Cause::protocol_error, "its answer is not a marker");
  }
}

}  // namespace

namespace admin {

std::optional<wire::NodeMarker> read_marker(const wire::Answer& answer,
                                            const wire::NodeAddress& node) {
  auto marker = answer ? wire::NodeMarker::read(*answer) : std::nullopt;
  if (!marker) return std::nullopt;
  for (std::string* shown :
       {&marker->id, &marker->layout, &marker->nodes, &marker->max_lease_ms, &marker->set_name}) {
    *shown = client::cleaned(*shown, node);
  }
  return marker;
}

std::string disagreement(const Marker& marker, const wire::SetTerms& expected) {
  return wire::NodeMarker{marker.id, marker.layout, marker.nodes, marker.max_lease_ms, marker.set}
      .disagreement(expected)
      .value_or("");
}

}  // namespace admin

Result<std::optional<MarkedSet>> Admin::marked_set() const {
  auto query = admin::NodeQuery::inspecting(*client_->impl());
  if (!query) return tl::make_unexpected(query.error());
  const std::vector<QueryCommand> question{{"HGETALL", std::string(wire::redlock_layout.marker)}};
  const auto answers = query->ask(std::vector(query->nodes().size(), question), query->patience());
  if (!answers) return tl::make_unexpected(answers.error());
  std::map<std::pair<std::int64_t, std::int64_t>, std::size_t> sets;
  std::size_t markers = 0;
  for (const auto& node : *answers) {
    const auto marker = node.answers[0] ? wire::NodeMarker::read(*node.answers[0]) : std::nullopt;
    if (!marker) continue;
    ++markers;
    const auto nodes = admin::number_of(wire::Value{marker->nodes});
    const auto max_lease = admin::number_of(wire::Value{marker->max_lease_ms});
    if (nodes && max_lease && *nodes > 0 && *max_lease > 0) ++sets[std::pair(*nodes, *max_lease)];
  }
  for (const auto& [set, count] : sets) {
    if (2 * count <= markers) continue;
    return MarkedSet{static_cast<std::size_t>(set.first), std::chrono::milliseconds(set.second)};
  }
  return std::nullopt;
}

Result<std::vector<NodeAdoption>> Admin::adopt(const std::vector<std::string>& replaced) const {
  auto labels = labels_of(replaced, client_->impl()->nodes());
  if (!labels) return tl::make_unexpected(labels.error());
  auto query = admin::NodeQuery::inspecting(*client_->impl());
  if (!query) return tl::make_unexpected(query.error());
  const wire::SetTerms set{query->nodes().size(), query->options().max_lease};
  Candidates candidates(query->nodes());
  const std::vector<QueryCommand> questions{{"INFO"},
                                            {"HGETALL", std::string(wire::redlock_layout.marker)}};
  const auto infos = query->ask(std::vector(set.nodes, questions), query->patience());
  if (!infos) return tl::make_unexpected(infos.error());
  for (std::size_t i = 0; i < set.nodes; ++i) {
    candidates.take(i, (*infos)[i].answers[0]);
    candidates.take_marker(i, (*infos)[i].answers[1]);
  }
  const auto twins = admin::find_twins(*query, candidates.run_ids());
  if (!twins) return tl::make_unexpected(twins.error());
  candidates.take_twins(*twins);

  net::KernelRandom random;
  const auto name = candidates.set_name(random, set);
  candidates.confirm(name, set, *labels);
  std::vector<std::vector<QueryCommand>> commands(set.nodes);
  for (std::size_t i = 0; i < set.nodes; ++i) {
    if (!candidates.accepted(i) || candidates.leave(i, name, set)) continue;
    if (candidates.adoptions()[i].adoption == Adoption::unconfirmed) continue;
    commands[i] = {wire::adoption_command(random, set, name, candidates.promotion(i))};
  }
  const auto answers = query->ask(commands, query->options().node_timeout);
  if (!answers) return tl::make_unexpected(answers.error());
  for (std::size_t i = 0; i < set.nodes; ++i) {
    if (commands[i].empty()) continue;
    read_adoption(candidates, i, (*answers)[i].answers[0], query->nodes()[i], set, name,
                  commands[i][0][1]);
  }
  return std::move(candidates.adoptions());
}

}  // namespace redlock
