// SPDX-License-Identifier: MIT
// getrandom() blocks only until the kernel has been seeded once after boot, and fails only where
// it does not exist.
#include "io/kernel_random.hpp"

#include <cerrno>
#include <cstdlib>
#include <span>
#include <sys/random.h>

namespace redlock::io {

std::uint64_t KernelRandom::next() {
  if (left_ == 0) refill();
  return numbers_[--left_];
}

void KernelRandom::refill() {
  std::span<std::byte> missing = std::as_writable_bytes(std::span(numbers_));
  while (!missing.empty()) {
    const ssize_t got = getrandom(missing.data(), missing.size(), 0);
    if (got > 0) {
      missing = missing.subspan(static_cast<std::size_t>(got));
    } else if (errno != EINTR) {
      std::abort();  // going on without randomness would hand one lock to two owners
    }
  }
  left_ = numbers_.size();
}

}  // namespace redlock::io
