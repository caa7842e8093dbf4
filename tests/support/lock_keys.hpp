// SPDX-License-Identifier: MIT
// The keys of one lock, in the order in which each script takes them.
#pragma once

#include <string>
#include <vector>

#include "wire/key_layout.hpp"

namespace redlock::testing {

using Words = std::vector<std::string>;

inline Words joined(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

struct LockKeys {
  explicit LockKeys(std::string name_of_lock)
      : name(std::move(name_of_lock)),
        lock(layout.lock(name)),
        fence(layout.fence(name)),
        line(layout.line(name)),
        waiters(layout.waiters(name)) {}

  [[nodiscard]] std::string forced(const std::string& owner) const {
    return layout.forced(name, owner);
  }
  /// For a client of a set (membership =SET) without the notes, which are not read then.
  [[nodiscard]] Words of_acquire(const std::string& owner, std::string_view membership = {}) const {
    Words keys{lock, fence, forced(owner), line, waiters, std::string(layout.marker)};
    if (!membership.starts_with('=')) keys.emplace_back(layout.notes);
    return keys;
  }
  [[nodiscard]] Words of_hold(const std::string& owner) const {
    return {lock, fence, forced(owner)};
  }
  [[nodiscard]] Words of_release() const { return {lock, line, waiters}; }
  [[nodiscard]] Words of_leave() const { return of_release(); }
  [[nodiscard]] Words of_pass(const std::string& next_owner,
                              std::string_view membership = {}) const {
    return joined(of_release(), of_acquire(next_owner, membership));
  }
  [[nodiscard]] Words of_force(const std::string& owner) const {
    return joined(of_hold(owner), {line, waiters});
  }

  static constexpr const wire::KeyLayout& layout = wire::redlock_layout;
  std::string name, lock, fence, line, waiters;
};

/// A script with its keys and arguments.
inline Words eval(const std::string& source, const Words& keys, const Words& arguments) {
  return joined(joined({"EVAL", source, std::to_string(keys.size())}, keys), arguments);
}

}  // namespace redlock::testing
