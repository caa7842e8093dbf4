// SPDX-License-Identifier: MIT
// Reads what programs keep in a file beside them: a list of nodes, passwords. Also on the client's
// own thread, so whatever could keep that waiting (a pipe, a device) is not read at all.
#pragma once

#include <string>

#include <redlock/error.hpp>

namespace redlock {

/// The whole text. Fails with invalid_argument and a sentence that repeats nothing of the file, if
/// it is no regular file, cannot be read, or has more than 65,536 bytes.
[[nodiscard]] Result<std::string> read_small_file(const std::string& path);

}  // namespace redlock
