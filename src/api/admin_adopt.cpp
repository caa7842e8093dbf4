// SPDX-License-Identifier: MIT
// Writes the marker on nodes that have none.
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

NodeAdoption adoption_of(const io::Answer& answer, const io::NodeAddress& node,
                         const io::NodeSet& set) {
  NodeAdoption adoption;
  adoption.node = node.label;
  const auto trouble = api::trouble_of(answer, node);
  if (trouble.cause != Cause::none) {
    adoption.cause = trouble.cause;
    adoption.detail = trouble.detail.empty() ? to_string(trouble.cause) : trouble.detail;
  } else if (api::text_of(answer) == "written") {
    adoption.adoption = Adoption::written;
  } else if (const auto marker = api::read_marker(answer, node)) {
    adoption.detail = api::disagreement(*marker, set);
    adoption.adoption = adoption.detail.empty() ? Adoption::already_there : Adoption::disagrees;
  } else {
    adoption.cause = Cause::protocol_error;
    adoption.detail = "it answered something that is not a marker";
  }
  return adoption;
}

/// The run ids of those that were replicas; empty for the others.
Result<std::vector<std::string>> promoted_runs(api::Panel& panel) {
  std::vector<std::vector<Command>> questions(panel.nodes().size(), {{"INFO"}});
  const auto answers = panel.ask(std::move(questions), panel.patience());
  if (!answers) return tl::make_unexpected(answers.error());
  std::vector<std::string> runs;
  for (const auto& node : *answers) {
    const auto text = api::text_of(node.answers[0]).value_or("");
    const io::InfoText info(text);
    const auto offset = info.value("second_repl_offset");
    const bool promoted = !offset.empty() && offset != "-1";
    runs.emplace_back(promoted ? info.value("run_id") : std::string_view());
  }
  return runs;
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
  const auto runs = promoted_runs(*panel);
  if (!runs) return tl::make_unexpected(runs.error());
  io::KernelRandom random;
  std::vector<std::vector<Command>> commands;
  for (std::size_t i = 0; i < set.nodes; ++i) {
    commands.push_back({io::adoption_command(random, set, (*runs)[i])});
  }
  const auto answers = panel->ask(std::move(commands), panel->patience());
  if (!answers) return tl::make_unexpected(answers.error());
  std::vector<NodeAdoption> adoptions;
  for (std::size_t i = 0; i < set.nodes; ++i) {
    adoptions.push_back(adoption_of((*answers)[i].answers[0], panel->nodes()[i], set));
  }
  return adoptions;
}

}  // namespace redlock
