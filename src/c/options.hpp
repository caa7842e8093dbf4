// SPDX-License-Identifier: MIT
// The options of the C interface as those of the library.
#pragma once

#include <cstdint>

#include <redlock/options.hpp>
#include <redlock/redlock.h>

namespace redlock::c {

/// Null means all defaults. Fails with invalid_argument and a sentence.
[[nodiscard]] Result<ClientOptions> to_options(const redlock_client_options* given);
[[nodiscard]] Result<AcquireOptions> to_options(const redlock_acquire_options* given);

/// REDLOCK_FOREVER is `forever`.
[[nodiscard]] std::chrono::milliseconds to_duration(std::int64_t milliseconds) noexcept;

}  // namespace redlock::c
