// SPDX-License-Identifier: MIT
// Why the standard's forms of taking a lock failed, which can only say false or throw a code: for
// each owner its last call through one RedLock. Any thread.
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
  /// Threads end without a word, so that only so many are kept: those that failed last.
  static constexpr std::size_t most = 64;

  /// What the owner's call came to.
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
