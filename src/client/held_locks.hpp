// SPDX-License-Identifier: MIT
// The locks that the owners of one client hold by lock() and the other locking functions, readable
// by any thread: for each name and owner the lease, and through which RedLock each level was taken.
// The engine has the same in its queues of owners (engine/owners) and decides by that; a level is
// in this table from the answer to the call that took it until it is left; the engine learns that a
// moment later.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include <redlock/lease.hpp>

#include "client/lease_state.hpp"
#include "engine/requests.hpp"

namespace redlock::client {

class HeldLocks {
 public:
  using Key = engine::OwnerKey;
  /// The RedLock through which something is taken. Its levels are left before it is destroyed.
  struct Handle {
    std::size_t levels = 0;  // for HeldLocks alone
  };
  /// A level that was left; no lease if there was none. It keeps the table locked
  /// while the caller posts the level to the loop, so that levels are left there in the same order.
  struct Left {
    Key key;
    std::shared_ptr<Lease::State> lease;
    bool last = false;  ///< no other is left
    std::unique_lock<std::mutex> order;
  };

  [[nodiscard]] std::shared_ptr<Lease::State> find(const Key& key) const;
  /// How many levels are taken and not left.
  [[nodiscard]] std::size_t count(const Key& key) const;

  /// Adds a level; returns how many there are now.
  std::size_t enter(const Key& key, Handle& handle, const std::shared_ptr<Lease::State>& lease);

  /// The latest level that was taken through this handle, or through any if none was. With the last
  /// one the lease ends for its holder.
  [[nodiscard]] Left leave(const Key& key, const Handle* handle);
  /// A level that was taken through this handle, by any owner.
  [[nodiscard]] Left leave(Handle& handle);

 private:
  struct HeldName {
    std::shared_ptr<Lease::State> lease;
    std::vector<Handle*> levels;
  };
  using Table = std::unordered_map<Key, HeldName, Key::Hash>;

  [[nodiscard]] Left leave_level(Table::iterator held, std::vector<Handle*>::iterator level,
                                 std::unique_lock<std::mutex> order);

  mutable std::mutex mutex_;
  Table held_;
};

}  // namespace redlock::client
