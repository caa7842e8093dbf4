// SPDX-License-Identifier: MIT
#include "client/held_locks.hpp"

#include <algorithm>
#include <utility>

namespace redlock::client {

std::shared_ptr<Lease::State> HeldLocks::find(const Key& key) const {
  const std::scoped_lock lock(mutex_);
  const auto held = held_.find(key);
  return held == held_.end() ? nullptr : held->second.lease.state();
}

std::size_t HeldLocks::count(const Key& key) const {
  const std::scoped_lock lock(mutex_);
  const auto held = held_.find(key);
  return held == held_.end() ? 0 : held->second.levels.size();
}

void HeldLocks::hold(const Key& key, Handle& handle, Lease lease) {
  const std::scoped_lock lock(mutex_);
  ++handle.levels;
  held_.emplace(key, Held{std::move(lease), {&handle}});
}

std::size_t HeldLocks::enter(const Key& key, Handle& handle,
                             const std::shared_ptr<Lease::State>& of) {
  const std::scoped_lock lock(mutex_);
  const auto held = held_.find(key);
  if (held == held_.end() || held->second.lease.state() != of) return 0;
  ++handle.levels;
  held->second.levels.push_back(&handle);
  return held->second.levels.size();
}

HeldLocks::Left HeldLocks::leave_level(Table::iterator held, std::vector<Handle*>::iterator level) {
  --(*level)->levels;
  held->second.levels.erase(level);
  if (!held->second.levels.empty()) return {held->second.lease.state(), {}};
  Left left{nullptr, std::move(held->second.lease)};
  held_.erase(held);
  return left;
}

HeldLocks::Left HeldLocks::leave(const Key& key, Handle& handle) {
  const std::scoped_lock lock(mutex_);
  const auto held = held_.find(key);
  if (held == held_.end()) return {};
  auto& levels = held->second.levels;
  const auto own = std::find(levels.rbegin(), levels.rend(), &handle);
  return leave_level(held, own == levels.rend() ? levels.end() - 1 : own.base() - 1);
}

std::vector<HeldLocks::Left> HeldLocks::leave_all(Handle& handle) {
  const std::scoped_lock lock(mutex_);
  std::vector<Left> left;
  for (auto held = held_.begin(); handle.levels > 0 && held != held_.end();) {
    const auto current = held++;  // which may go
    for (auto times = std::ranges::count(current->second.levels, &handle); times > 0; --times) {
      left.push_back(leave_level(current, std::ranges::find(current->second.levels, &handle)));
    }
  }
  return left;
}

}  // namespace redlock::client
