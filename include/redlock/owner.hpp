// SPDX-License-Identifier: MIT
// The owner of a lock that lock() takes: by default the calling thread; for code that changes
// threads (coroutines, thread pools) a handle that is given to Client::lock.
#pragma once

#include <redlock/cpp20.hpp>

#include <cstdint>

#include <redlock/export.hpp>

namespace redlock {

/// A small value to copy and to pass on; copies are the same owner. Code that has an Owner can
/// lock, re-enter and unlock with it, from any thread. The value itself holds no lock: see RedLock.
class REDLOCK_EXPORT Owner {
 public:
  /// A new owner, unlike every other in this process.
  [[nodiscard]] static Owner create() noexcept;
  /// The owner of the calling thread: the same for as long as the thread lives, and never used
  /// again.
  [[nodiscard]] static Owner this_thread() noexcept;

  friend bool operator==(const Owner&, const Owner&) = default;
  /// The owner's number, unique in this process.
  [[nodiscard]] std::uint64_t id() const noexcept { return id_; }

 private:
  explicit Owner(std::uint64_t id) noexcept : id_(id) {}
  std::uint64_t id_;
};

}  // namespace redlock
