// SPDX-License-Identifier: MIT
// What nodes push on a client's channel (see line.lua).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "wire/reply_view.hpp"

namespace redlock::wire {

/// The turn of this client's line of that number has come, or comes after this time if the waiter
/// before it does not take the lock until then.
struct Wake {
  std::uint64_t line = 0;
  std::chrono::milliseconds after{};
};

/// Nothing if the push is another message, which is ignored: any client may publish anything.
[[nodiscard]] std::optional<Wake> read_wake(const ReplyView& push, std::string_view channel);

[[nodiscard]] bool confirms_subscription(const ReplyView& push, std::string_view channel);

}  // namespace redlock::wire
