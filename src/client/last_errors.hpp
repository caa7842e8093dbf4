// SPDX-License-Identifier: MIT
// Why the last lock() or try_lock() of each owner through one RedLock failed: the standard's
// signatures return false or throw, and have no place for the votes. Any thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <redlock/error.hpp>
#include <redlock/owner.hpp>

namespace redlock::client {

class LastErrors {
 public:
  /// Nothing reports the end of a thread, so only a limited number is kept: those that failed last.
  static constexpr std::size_t most = 64;

  /// Records the result of the owner's call.
  void note(Owner owner, const Result<void>& result) {
    const std::scoped_lock lock(mutex_);
    std::erase_if(errors_, [owner](const auto& entry) { return entry.first == owner; });
    if (result) return;
    if (errors_.size() == most) errors_.erase(errors_.begin());
    errors_.emplace_back(owner, result.error());
  }

  [[nodiscard]] std::optional<Error> of(Owner owner) const {
    const std::scoped_lock lock(mutex_);
    for (const auto& [failed, error] : errors_) {
      if (failed == owner) return error;
    }
    return std::nullopt;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::pair<Owner, Error>> errors_;  // the latest last
};

}  // namespace redlock::client
