// SPDX-License-Identifier: MIT
// Times of day as they are printed, always in UTC.
#pragma once

#include <chrono>
#include <string>

namespace redlock::cli {

using WallTime = std::chrono::sys_time<std::chrono::milliseconds>;

/// "2026-03-01 08:31:51 UTC"; "?" if it is no time that has a date.
[[nodiscard]] std::string in_utc(WallTime time);

/// "2026-03-01T08:31:51.250Z", as logs and JSON have it.
[[nodiscard]] std::string iso_8601(WallTime time);

}  // namespace redlock::cli
