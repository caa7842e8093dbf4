// SPDX-License-Identifier: MIT
// Writes the marker on nodes that have none, after a look at whether they may ever vote: a marker
// that should not be there is hard to get rid of.
#include <map>
#include <utility>

#include <redlock/admin.hpp>

#include "api/admin_ask.hpp"
#include "api/admin_marker.hpp"
#include "api/client_impl.hpp"
#include "api/sentence.hpp"
#include "io/adoption.hpp"
#include "io/info_text.hpp"
#include "io/kernel_random.hpp"

namespace redlock {
namespace {

using api::Command;

/// Which nodes may be given a marker, by what INFO says of them.
class Candidates {
 public:
  explicit Candidates(const std::vector<io::NodeAddress>& nodes)
      : nodes_(nodes), promotions_(nodes.size()) {
    for (const auto& node : nodes) {
      adoptions_.emplace_back();
      adoptions_.back().node = node.label;
    }
  }

  /// The user may not be allowed to read INFO; then the operator's word has to do.
  void take(std::size_t node, const io::Answer& answer) {
    const auto trouble = api::trouble_of(answer, nodes_[node]);
    if (!answer) return fail(node, trouble.cause, trouble.detail);
    const auto text = api::text_of(answer).value_or("");
    const io::InfoText info(text);
    const auto role = info.value("role");
    if (!role.empty() && role != "master") {
      fail(node, Cause::incompatible, "it is a replica; only independent masters are adopted");
    } else if (info.value("cluster_enabled") == "1") {
      fail(node, Cause::incompatible, "it belongs to a Redis Cluster; take an independent master");
    }
    const std::string run_id(info.value("run_id"));
    if (info.was_replica()) promotions_[node] = info.promotion();
    if (run_id.empty()) return;
    const auto [first, is_new] = seen_.emplace(run_id, node);
    if (is_new) return;
    fail(node, Cause::incompatible, same_as(first->second));
    fail(first->second, Cause::incompatible, same_as(node));
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
  [[nodiscard]] std::string same_as(std::size_t other) const {
    return "it is the same server as " + nodes_[other].label + "; name every node once";
  }

  const std::vector<io::NodeAddress>& nodes_;
  std::vector<NodeAdoption> adoptions_;
  std::vector<std::string> promotions_;
  std::map<std::string, std::size_t> seen_;
};

void read_adoption(Candidates& candidates, std::size_t at, const io::Answer& answer,
                   const io::NodeAddress& node, const io::NodeSet& set) {
  auto& adoption = candidates.adoptions()[at];
  const auto trouble = api::trouble_of(answer, node);
  if (trouble.cause != Cause::none) {
    candidates.fail(at, trouble.cause, trouble.detail);
  } else if (api::text_of(answer) == "written") {
    adoption.adoption = Adoption::written;
  } else if (const auto marker = api::read_marker(answer, node)) {
    adoption.detail = api::disagreement(*marker, set);
    adoption.adoption = adoption.detail.empty() ? Adoption::already_there : Adoption::disagrees;
  } else {
    candidates.fail(at, Cause::protocol_error, "it answered something that is not a marker");
  }
}

}  // namespace

namespace api {

std::optional<Marker> read_marker(const io::Answer& answer, const io::NodeAddress& node) {
  const auto fields = fields_of(answer);
  if (fields.empty()) return std::nullopt;
  const auto field = [&](const char* name) {
    const auto found = fields.find(name);
    return found == fields.end() ? std::string() : cleaned(found->second, node);
  };
  return Marker{field("id"), field("layout"), field("nodes"), field("max_lease_ms")};
}

std::string disagreement(const Marker& marker, const io::NodeSet& expected) {
  return io::NodeMarker{marker.id, marker.layout, marker.nodes, marker.max_lease_ms}
      .disagreement(expected)
      .value_or("");
}

}  // namespace api

Result<std::vector<NodeAdoption>> Admin::adopt() const {
  auto panel = api::Panel::inspecting(*client_->impl());
  if (!panel) return tl::make_unexpected(panel.error());
  const io::NodeSet set{panel->nodes().size(), panel->options().max_lease};
  Candidates candidates(panel->nodes());
  const auto infos =
      panel->ask(std::vector(set.nodes, std::vector<Command>{{"INFO"}}), panel->patience());
  if (!infos) return tl::make_unexpected(infos.error());
  for (std::size_t i = 0; i < set.nodes; ++i) candidates.take(i, (*infos)[i].answers[0]);

  io::KernelRandom random;
  std::vector<std::vector<Command>> commands(set.nodes);
  for (std::size_t i = 0; i < set.nodes; ++i) {
    if (candidates.accepted(i))
      commands[i] = {io::adoption_command(random, set, candidates.promotion(i))};
  }
  const auto answers = panel->ask(commands, panel->options().node_timeout);
  if (!answers) return tl::make_unexpected(answers.error());
  for (std::size_t i = 0; i < set.nodes; ++i) {
    if (commands[i].empty()) continue;
    read_adoption(candidates, i, (*answers)[i].answers[0], panel->nodes()[i], set);
  }
  return std::move(candidates.adoptions());
}

}  // namespace redlock
