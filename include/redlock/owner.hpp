// SPDX-License-Identifier: MIT
// Who holds what lock() takes: by default the calling thread; for code that changes threads
// (coroutines, thread pools) a handle that is given to Client::lock.
#pragma once

#include <redlock/cpp20.hpp>

#include <cstdint>

#include <redlock/export.hpp>

namespace redlock {

/// A small value to copy and to pass on; copies are the same owner. Whoever has one can lock,
/// re-enter and unlock with it, from any thread. It owns nothing itself: see RedLock.
class REDLOCK_EXPORT Owner {
 public:
  /// One that is unlike every other in this process.
  [[nodiscard]] static Owner create() noexcept;
  /// That of the calling thread: the same for as long as the thread lives, and never used again.
  [[nodiscard]] static Owner this_thread() noexcept;

  friend bool operator==(const Owner&, const Owner&) = default;
  /// A number of its own in this process.
  [[nodiscard]] std::uint64_t id() const noexcept { return id_; }

 private:
  explicit Owner(std::uint64_t id) noexcept : id_(id) {}
  std::uint64_t id_;
};

}  // namespace redlock
