// SPDX-License-Identifier: MIT
// Numbers that are never used again, unlike thread ids.
#include <atomic>

#include <redlock/owner.hpp>

namespace redlock {

Owner Owner::create() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return Owner(last.fetch_add(1, std::memory_order_relaxed) + 1);
}

Owner Owner::this_thread() noexcept {
  thread_local const Owner mine = create();
  return mine;
}

}  // namespace redlock
