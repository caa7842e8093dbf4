// SPDX-License-Identifier: MIT
// fork is noticed by a handler of pthread_atfork rather than by getpid(), which is a system call
// each time since glibc no longer caches it.
#include "client/fork.hpp"

#include <atomic>
#include <mutex>
#include <pthread.h>
#include <utility>
#include <vector>

namespace redlock::client {

namespace {

std::atomic<std::uint64_t> generation{1};

void count_child() noexcept {
  generation.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

std::uint64_t process_generation() noexcept {
  static const int registered = pthread_atfork(nullptr, nullptr, count_child);
  static_cast<void>(registered);
  return generation.load(std::memory_order_relaxed);
}

void keep_forever(std::shared_ptr<void> copy) noexcept {
  static std::mutex mutex;
  static auto& kept = *new std::vector<std::shared_ptr<void>>;
  const std::scoped_lock lock(mutex);
  kept.push_back(std::move(copy));
}

}  // namespace redlock::client
