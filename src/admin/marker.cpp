// SPDX-License-Identifier: MIT
#include "admin/marker.hpp"

#include "client/sentence.hpp"
#include "wire/key_layout.hpp"

namespace redlock::admin {

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

wire::NodeMarker as_written(const Marker& marker) {
  wire::NodeMarker written{marker.id, marker.layout, marker.nodes, marker.max_lease_ms};
  written.set_name = marker.set;
  written.epoch = marker.epoch;
  written.members = marker.members;
  return written;
}

std::string disagreement(const Marker& marker, const wire::SetTerms& expected) {
  return as_written(marker).disagreement(expected).value_or("");
}

Result<std::vector<std::optional<wire::NodeMarker>>> ask_markers(NodeQuery& query) {
  const std::vector<QueryCommand> question{{"HGETALL", std::string(wire::redlock_layout.marker)}};
  const auto answers = query.ask(std::vector(query.nodes().size(), question), query.patience());
  if (!answers) return tl::make_unexpected(answers.error());
  std::vector<std::optional<wire::NodeMarker>> markers;
  for (std::size_t node = 0; node < answers->size(); ++node) {
    markers.push_back(read_marker((*answers)[node].answers[0], query.nodes()[node]));
  }
  return markers;
}

}  // namespace redlock::admin
