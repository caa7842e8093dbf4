// SPDX-License-Identifier: MIT
// Reads a small file that the user names. The name may lead to a device, or to a pipe that never
// ends or has no writer.
#pragma once

#include <string>
#include <string_view>

namespace redlock::cli {

/// The whole text. Throws Exit (64) with a sentence that begins with `option` and the path: the
/// file cannot be read, is longer than any list of nodes, or does not end in time.
[[nodiscard]] std::string read_bounded(std::string_view option, const std::string& path);

}  // namespace redlock::cli
