// SPDX-License-Identifier: MIT
// How acquire and hold show what they got.
#pragma once

#include <string>

#include <redlock/lease.hpp>

#include "cli/output.hpp"

namespace redlock::cli {

/// `owner=... token=... valid_ms=...`, which a shell can evaluate, or the same as JSON. A token
/// that is not known is left out.
[[nodiscard]] std::string grant_line(const Lease& lease, Format format);

/// Prints that line. Throws Exit if nobody takes it.
void print_grant(const Lease& lease, Format format);

}  // namespace redlock::cli
