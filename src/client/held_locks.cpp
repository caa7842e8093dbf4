// SPDX-License-Identifier: MIT
#include "client/held_locks.hpp"

#include <algorithm>
#include <utility>

namespace redlock::client {

std::shared_ptr<Lease::State> HeldLocks::find(const Key& key) const {
  const std::scoped_lock lock(mutex_);
  const auto held = held_.find(key);
  return held == held_.end() ? nullptr : held->second.lease;
}

std::size_t HeldLocks::count(const Key& key) const {
  const std::scoped_lock lock(mutex_);
  const auto held = held_.find(key);
  return held == held_.end() ? 0 : held->second.levels.size();
}

std::size_t HeldLocks::enter(const Key& key, Handle& handle,
                             const std::shared_ptr<Lease::State>& lease) {
  const std::scoped_lock lock(mutex_);
  const auto held = held_.try_emplace(key).first;
  auto& [held_through, levels] = held->second;
  try {
    levels.push_back(&handle);
  } catch (const std::bad_alloc&) {
    if (levels.empty()) held_.erase(held);
    throw;
  }
  held_through = lease;
  Lease::State::go_on(lease);
  ++handle.levels;
  return levels.size();
}

HeldLocks::Left HeldLocks::leave_level(Table::iterator held, std::vector<Handle*>::iterator level,
                                       std::unique_lock<std::mutex> order) {
  --(*level)->levels;
  held->second.levels.erase(level);
  const bool last = held->second.levels.empty();
  Left left{held->first, held->second.lease, last, std::move(order)};
  if (last) {
    left.lease->end();
    held_.erase(held);
  }
  return left;
}

HeldLocks::Left HeldLocks::leave(const Key& key, const Handle* handle) {
  std::unique_lock lock(mutex_);
  const auto held = held_.find(key);
  if (held == held_.end()) return {};
  auto& levels = held->second.levels;
  const auto own = std::find(levels.rbegin(), levels.rend(), handle);
  const auto level = own == levels.rend() ? levels.end() - 1 : own.base() - 1;
  return leave_level(held, level, std::move(lock));
}

HeldLocks::Left HeldLocks::leave(Handle& handle) {
  std::unique_lock lock(mutex_);
  if (handle.levels == 0) return {};
  for (auto held = held_.begin(); held != held_.end(); ++held) {
    const auto level = std::ranges::find(held->second.levels, &handle);
    if (level != held->second.levels.end()) return leave_level(held, level, std::move(lock));
  }
  return {};
}

}  // namespace redlock::client
