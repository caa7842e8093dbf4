// SPDX-License-Identifier: MIT
// How acquire and hold print their grant.
#pragma once

#include <string>

#include <redlock/lease.hpp>

#include "cli/output.hpp"

namespace redlock::cli {

/// `owner=... token=... valid_ms=...`, which a shell can evaluate, or the same as JSON. An unknown
/// token is left out.
[[nodiscard]] std::string grant_line(const Lease& lease, Format format);

/// Prints that line. Throws Exit if it cannot be written.
void print_grant(const Lease& lease, Format format);

}  // namespace redlock::cli
