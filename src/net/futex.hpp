// SPDX-License-Identifier: MIT
// The two calls of the kernel's futex that are used here. std::atomic has wait() and notify_one(),
// which first give the processor up several times in the hope that they need not sleep.
#pragma once

#include <atomic>
#include <cstdint>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace redlock::net {

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));

/// Returns at once if the word is not `expected`; otherwise when it is woken, or now and then
/// without a reason.
inline void sleep_on(std::atomic<std::uint32_t>& word, std::uint32_t expected) noexcept {
  ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}

/// Wakes one thread that sleeps on it. The word may be gone already.
inline void wake_from(std::atomic<std::uint32_t>& word) noexcept {
  ::syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

}  // namespace redlock::net
