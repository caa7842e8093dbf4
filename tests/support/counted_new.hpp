// SPDX-License-Identifier: MIT
// Counts the allocations of a program, for each thread by itself and for all. To be included by one
// file of the program, whose operator new this replaces.
#pragma once

#include <atomic>
#include <cstddef>

#include "support/replaced_new.hpp"

namespace redlock::testing {

inline thread_local std::size_t allocations = 0;  ///< of this thread
inline std::atomic<std::size_t> all_allocations{0};

inline void* allocate(std::size_t size) {
  ++allocations;
  all_allocations.fetch_add(1, std::memory_order_relaxed);
  return allocate_or_throw(size);
}

}  // namespace redlock::testing
