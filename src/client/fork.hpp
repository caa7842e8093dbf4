// SPDX-License-Identifier: MIT
// A child of fork has a copy of our memory, without the loop thread and in whatever state it was.
// By these two functions every object can find out that it is such a copy, and touch nothing.
#pragma once

#include <cstdint>
#include <memory>

namespace redlock::client {

/// A number that is another one in a child of fork. The first call makes it so.
[[nodiscard]] std::uint64_t process_generation() noexcept;

/// Keeps what a destructor must not touch in a child, reachable for leak checkers.
void keep_forever(std::shared_ptr<void> copy) noexcept;

}  // namespace redlock::client
