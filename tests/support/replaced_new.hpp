// SPDX-License-Identifier: MIT
// Replaces operator new and delete of a program. For the header that defines
// redlock::testing::allocate(), which one file of the program includes.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>

namespace redlock::testing {

inline void* allocate_or_throw(std::size_t size) {
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
inline void* allocate(std::size_t size);

}  // namespace redlock::testing

void* operator new(std::size_t size) {
  return redlock::testing::allocate(size);
}
void* operator new[](std::size_t size) {
  return redlock::testing::allocate(size);
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
