// SPDX-License-Identifier: MIT
// Which program holds a lock, in words. Another program wrote this text: it is shown, never used.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <redlock/admin.hpp>

#include "cli/output.hpp"

namespace redlock::cli {

/// "backup.sh, pid 4711 on web-1"; "?" if the holder is unknown.
[[nodiscard]] std::string program_of(const std::optional<Holder>& holder);

/// The same, and since when, in UTC.
[[nodiscard]] std::string in_words(const std::optional<Holder>& holder);

/// {label, pid, host, since_unix_ms}, null for none.
[[nodiscard]] Json holder_as_json(const std::optional<Holder>& holder);

/// [{id, who}], first the next in line; `who` as above.
[[nodiscard]] Json waiting_as_json(const std::vector<WaitingCall>& waiting);

}  // namespace redlock::cli
