// SPDX-License-Identifier: MIT
// Reading a node's marker, for both who examine it and who write it.
#pragma once

#include <optional>
#include <string>

#include <redlock/admin.hpp>

#include "api/admin_ask.hpp"
#include "io/node_marker.hpp"

namespace redlock::api {

/// The marker in the answer to HGETALL; nothing if there is none.
[[nodiscard]] std::optional<Marker> read_marker(const io::Answer& answer,
                                                const io::NodeAddress& node);

/// How the marker differs from that of this client's set, in a sentence; empty if it agrees.
[[nodiscard]] std::string disagreement(const Marker& marker, const io::NodeSet& expected);

}  // namespace redlock::api
