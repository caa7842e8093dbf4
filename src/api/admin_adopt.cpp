// SPDX-License-Identifier: MIT
// Writes the marker on nodes that have none.
#include <utility>

#include <redlock/admin.hpp>

#include "api/admin_ask.hpp"
#include "api/admin_marker.hpp"
#include "api/client_impl.hpp"
#include "api/sentence.hpp"
#include "io/kernel_random.hpp"
#include "io/key_layout.hpp"
#include "redlock_scripts.hpp"

namespace redlock {
namespace {

using api::Command;

Command adopt_command(io::KernelRandom& random, const io::NodeSet& set) {
  const engine::OwnerId id{{random.next(), random.next()}};
  return {"EVAL",
          std::string(io::scripts::adopt),
          "1",
          std::string(io::KeyLayout::marker),
          engine::to_hex(id),
          std::string(io::KeyLayout::id),
          std::to_string(set.nodes),
          std::to_string(set.max_lease.count())};
}

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
  io::KernelRandom random;
  std::vector<std::vector<Command>> commands;
  for (std::size_t i = 0; i < set.nodes; ++i) commands.push_back({adopt_command(random, set)});
  const auto answers = panel->ask(std::move(commands), panel->patience());
  if (!answers) return tl::make_unexpected(answers.error());
  std::vector<NodeAdoption> adoptions;
  for (std::size_t i = 0; i < set.nodes; ++i) {
    adoptions.push_back(adoption_of((*answers)[i].answers[0], panel->nodes()[i], set));
  }
  return adoptions;
}

}  // namespace redlock
