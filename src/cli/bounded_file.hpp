// SPDX-License-Identifier: MIT
// Reads a small file that the user names, whatever stands behind the name: it may be a device or a
// pipe that never ends, or one that nobody writes to.
#pragma once

#include <string>
#include <string_view>

namespace redlock::cli {

/// The whole text. Throws Exit (64) with a sentence that begins with `option` and the path: it
/// cannot be read, is longer than any list of nodes, or does not come to its end in time.
[[nodiscard]] std::string read_bounded(std::string_view option, const std::string& path);

}  // namespace redlock::cli
