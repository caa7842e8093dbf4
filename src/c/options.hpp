// SPDX-License-Identifier: MIT
// The options of the C interface as those of the library.
#pragma once

#include <cstdint>
#include <stop_token>

#include <redlock/options.hpp>
#include <redlock/redlock.h>

namespace redlock::c {

/// Null means all defaults. Fails with invalid_argument and a sentence.
[[nodiscard]] Result<ClientOptions> to_options(const redlock_client_options* given);
struct AcquireCall {
  AcquireOptions options;
  std::stop_token stop;
};
[[nodiscard]] Result<AcquireCall> to_options(const redlock_acquire_options* given);

/// REDLOCK_FOREVER is `forever`.
[[nodiscard]] std::chrono::milliseconds to_duration(std::int64_t milliseconds) noexcept;

}  // namespace redlock::c
