// SPDX-License-Identifier: MIT
#include "admin/marker.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>

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
  const auto answers = query.ask_all(question, query.patience());
  if (!answers) return tl::make_unexpected(answers.error());
  std::vector<std::optional<wire::NodeMarker>> markers;
  for (std::size_t node = 0; node < answers->size(); ++node) {
    markers.push_back(read_marker((*answers)[node].answers[0], query.nodes()[node]));
  }
  return markers;
}

MarkedSet set_of(const wire::NodeMarker& marker) {
  const auto configuration = marker.configuration();
  MarkedSet set{.nodes = configuration.members.size(),
                .max_lease = configuration.max_lease,
                .announced_max_lease = configuration.announced,
                .set = configuration.set,
                .epoch = configuration.epoch};
  for (const auto& member : configuration.members) set.members.push_back(member.address);
  return set;
}

namespace {

/// The latest set that more of these markers name alike than it takes.
template <typename MoreThan>
std::optional<MarkedSet> latest_set(const std::vector<wire::NodeMarker>& markers,
                                    MoreThan more_than) {
  std::optional<MarkedSet> latest;
  for (const auto& marker : markers) {
    auto set = set_of(marker);
    const auto alike = std::ranges::count_if(
        markers, [&](const wire::NodeMarker& other) { return set_of(other) == set; });
    const bool counts = static_cast<std::size_t>(alike) > more_than(set);
    if (counts && (!latest || set.epoch > latest->epoch)) latest = std::move(set);
  }
  return latest;
}

}  // namespace

std::optional<MarkedSet> set_shown(const std::vector<wire::NodeMarker>& markers, std::size_t more) {
  return latest_set(markers, [more](const MarkedSet&) { return more; });
}

std::optional<MarkedSet> agreed_set(const std::vector<wire::NodeMarker>& markers) {
  return latest_set(markers, [](const MarkedSet& set) { return set.nodes / 2; });
}

}  // namespace redlock::admin
