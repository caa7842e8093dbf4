// SPDX-License-Identifier: MIT
// Counts the allocations of a program, for each thread by itself and for all. To be included by one
// file of the program, whose operator new this replaces.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace redlock::testing {

inline thread_local std::size_t allocations = 0;  ///< of this thread
inline std::atomic<std::size_t> all_allocations{0};

inline void* counted_new(std::size_t size) {
  ++allocations;
  all_allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}

}  // namespace redlock::testing

void* operator new(std::size_t size) {
  return redlock::testing::counted_new(size);
}
void* operator new[](std::size_t size) {
  return redlock::testing::counted_new(size);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}
