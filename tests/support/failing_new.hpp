// SPDX-License-Identifier: MIT
// Lets allocations of a program fail, on whichever thread. To be included by one file of the
// program, whose operator new this replaces.
#pragma once

#include <atomic>
#include <cstddef>
#include <limits>

#include "support/replaced_new.hpp"

namespace redlock::testing {

/// While it lives, the allocations from this number on fail (1: the next), so many in succession.
class FailingAllocations {
 public:
  FailingAllocations(std::size_t first, std::size_t count) {
    made = 0;
    end = first + count;
    begin = first;
  }
  ~FailingAllocations() { begin = none; }
  FailingAllocations(const FailingAllocations&) = delete;
  FailingAllocations& operator=(const FailingAllocations&) = delete;

  /// Whether one has failed.
  [[nodiscard]] bool some_failed() const { return begin != none && made >= begin; }

  static void* allocate(std::size_t size) {
    if (begin.load(std::memory_order_relaxed) != none) {
      const std::size_t number = made.fetch_add(1) + 1;
      if (number >= begin && number < end) throw std::bad_alloc();
    }
    return allocate_or_throw(size);
  }

 private:
  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
  static inline std::atomic<std::size_t> made{0};
  static inline std::atomic<std::size_t> begin{none};
  static inline std::atomic<std::size_t> end{none};
};

inline void* allocate(std::size_t size) {
  return FailingAllocations::allocate(size);
}

}  // namespace redlock::testing
