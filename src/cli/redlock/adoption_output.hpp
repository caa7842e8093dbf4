// SPDX-License-Identifier: MIT
// What adoptions and replacements have in common.
#pragma once

#include <functional>
#include <vector>

#include <redlock/admin.hpp>

#include "cli/output.hpp"

namespace redlock::cli {

using AdoptionCall = std::function<Result<std::vector<NodeAdoption>>(const Admin&)>;
/// Makes the call. If most markers disagree, throws Exit where the client's options say why.
[[nodiscard]] Result<std::vector<NodeAdoption>> change(const Client& client,
                                                       const AdoptionCall& call);

/// Prints it, and returns the exit status.
[[nodiscard]] int show_adoptions(const std::vector<NodeAdoption>& adoptions, Format format);

}  // namespace redlock::cli
