// SPDX-License-Identifier: MIT
// What the owners of one client hold by lock() and its like: for each name and owner one lease, and
// how often it was taken, through which RedLock. Any thread; nothing here waits for the loop.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include <redlock/lease.hpp>
#include <redlock/owner.hpp>

#include "client/lease_state.hpp"
#include "engine/types.hpp"

namespace redlock::client {

class HeldLocks {
 public:
  struct Key {
    engine::Name name;
    Owner owner;
    friend bool operator==(const Key& a, const Key& b) {
      return a.owner == b.owner && *a.name == *b.name;
    }
  };
  struct Hash {
    std::size_t operator()(const Key& key) const {
      return std::hash<std::string>()(*key.name) ^ (key.owner.id() * 0x9e3779b97f4a7c15U);
    }
  };
  /// The RedLock through which something is taken. It must have left everything when it goes.
  struct Handle {
    std::size_t levels = 0;  // for HeldLocks alone
  };
  /// What was given back: one level of a lease that is still held, or the lease itself, or neither.
  struct Left {
    std::shared_ptr<Lease::State> inner;
    Lease last;
  };

  [[nodiscard]] std::shared_ptr<Lease::State> find(const Key& key) const;
  /// How often it was taken and not left.
  [[nodiscard]] std::size_t count(const Key& key) const;

  void hold(const Key& key, Handle& handle, Lease lease);
  /// One level more: how many there are now; 0 if that lease has been given back meanwhile.
  [[nodiscard]] std::size_t enter(const Key& key, Handle& handle,
                                  const std::shared_ptr<Lease::State>& of);
  /// The latest level that was taken through this handle, or through any if none was.
  [[nodiscard]] Left leave(const Key& key, Handle& handle);
  /// Everything that was taken through this handle, by whichever owner.
  [[nodiscard]] std::vector<Left> leave_all(Handle& handle);

 private:
  struct Held {
    Lease lease;
    std::vector<Handle*> levels;
  };
  using Table = std::unordered_map<Key, Held, Hash>;

  [[nodiscard]] Left leave_level(Table::iterator held, std::vector<Handle*>::iterator level);

  mutable std::mutex mutex_;
  Table held_;
};

}  // namespace redlock::client
