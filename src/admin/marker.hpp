// SPDX-License-Identifier: MIT
// Reading the nodes' markers, for examinations and adoptions, and the set that they name together.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <redlock/admin.hpp>

#include "admin/node_query.hpp"
#include "wire/node_marker.hpp"

namespace redlock::admin {

/// The marker in the answer to HGETALL, fit to be shown; nothing if there is none.
[[nodiscard]] std::optional<wire::NodeMarker> read_marker(const wire::Answer& answer,
                                                          const wire::NodeAddress& node);

/// Of each node of the query the marker that it shows now; nothing if it has none, or is silent.
[[nodiscard]] Result<std::vector<std::optional<wire::NodeMarker>>> ask_markers(NodeQuery& query);

[[nodiscard]] MarkedSet set_of(const wire::NodeMarker& marker);

/// The set that more than so many of these markers name alike, in its latest epoch.
[[nodiscard]] std::optional<MarkedSet> set_shown(const std::vector<wire::NodeMarker>& markers,
                                                 std::size_t more);

/// The latest set that a majority of its members show alike.
[[nodiscard]] std::optional<MarkedSet> agreed_set(const std::vector<wire::NodeMarker>& markers);

[[nodiscard]] wire::NodeMarker as_written(const Marker& marker);

/// How the marker differs from that of this client's set, in a sentence; empty if it agrees.
[[nodiscard]] std::string disagreement(const Marker& marker, const wire::SetTerms& expected);

}  // namespace redlock::admin
