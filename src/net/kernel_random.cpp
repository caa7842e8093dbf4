// SPDX-License-Identifier: MIT
// getrandom() blocks only until the kernel has been seeded once after boot, and fails only where
// it does not exist.
#include "net/kernel_random.hpp"

#include <cerrno>
#include <cstdlib>
#include <span>
#include <sys/random.h>

namespace redlock::net {

namespace {

template <typename T>
T draw() {
  T number;
  std::span<std::byte> missing = std::as_writable_bytes(std::span(&number, 1));
  while (!missing.empty()) {
    const ssize_t got = getrandom(missing.data(), missing.size(), 0);
    if (got > 0) {
      missing = missing.subspan(static_cast<std::size_t>(got));
    } else if (errno != EINTR) {
      std::abort();  // going on without randomness would hand one lock to two owners
    }
  }
  return number;
}

}  // namespace

std::uint64_t KernelRandom::next() {
  return draw<std::uint64_t>();
}

engine::OwnerId KernelRandom::next_owner() {
  return draw<engine::OwnerId>();
}

}  // namespace redlock::net
