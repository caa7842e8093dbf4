// SPDX-License-Identifier: MIT
// What adoptions and replacements have in common.
#pragma once

#include <functional>
#include <vector>

#include <redlock/admin.hpp>

#include "cli/nodes.hpp"
#include "cli/output.hpp"

namespace redlock::cli {

using AdoptionCall = std::function<Result<std::vector<NodeAdoption>>(const Admin&)>;
/// Makes the call; if most markers disagree, once more with the longest lease that they say, which
/// the client has from then on. Throws Exit if another one was given.
[[nodiscard]] Result<std::vector<NodeAdoption>> adopt_as_marked(const NodeOptions& nodes,
                                                                Client& client,
                                                                const AdoptionCall& call);

/// Prints it, and returns the exit status.
[[nodiscard]] int show_adoptions(const std::vector<NodeAdoption>& adoptions, Format format);

}  // namespace redlock::cli
