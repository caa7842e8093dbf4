// SPDX-License-Identifier: MIT
// The keys on a node, as a table of values, so that another layout (Redisson's) can stand beside
// this one.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace redlock::wire {

struct KeyLayout {
  std::string_view id;              ///< which the marker names
  std::string_view marker;          ///< a hash: the set that the node belongs to
  std::string_view notes;           ///< a hash: that a node without a marker is pending
  std::string_view change;          ///< the change of the members that has the node's promise
  std::string_view clock;           ///< there while the node's clock is not to be trusted
  std::string_view nothing;         ///< never there: a node that takes no write refuses one of it
  std::string_view lock_prefix;     ///< before a name in braces: the hash owner -> count
  std::string_view line_prefix;     ///< the same: who waits, in order
  std::string_view waiters_prefix;  ///< the same: what is known of those
  std::string_view forced_prefix;   ///< the same, and the owner behind it: it was forced out
  std::string_view fence_prefix;    ///< before the stripe: the counter of all names of that stripe
  /// Before a random id: see ServerIdentities. Below the fences, where every user may write.
  std::string_view identity_prefix;
  std::string_view wake_prefix;  ///< before a client's id: the channel on which it is told of turns

  [[nodiscard]] std::string lock(std::string_view name) const { return of(lock_prefix, name); }
  [[nodiscard]] std::string line(std::string_view name) const { return of(line_prefix, name); }
  [[nodiscard]] std::string waiters(std::string_view name) const {
    return of(waiters_prefix, name);
  }
  [[nodiscard]] std::string forced(std::string_view name, std::string_view owner) const;
  [[nodiscard]] std::string fence(std::string_view name) const;
  [[nodiscard]] std::string channel(std::string_view client) const;

  /// The same without an allocation: written into the buffer.
  static constexpr std::size_t longest_fence = 32;
  [[nodiscard]] std::string_view fence(std::string_view name,
                                       std::array<char, longest_fence>& buffer) const;

 private:
  [[nodiscard]] static std::string of(std::string_view prefix, std::string_view name);
};

/// line.lua spells `wake_prefix`, too.
inline constexpr KeyLayout redlock_layout{.id = "redlock-3",
                                          .marker = "redlock:node",
                                          .notes = "redlock:node:notes",
                                          .change = "redlock:node:change",
                                          .clock = "redlock:node:clock",
                                          .nothing = "redlock:node:nothing",
                                          .lock_prefix = "redlock:lock:",
                                          .line_prefix = "redlock:line:",
                                          .waiters_prefix = "redlock:waiters:",
                                          .forced_prefix = "redlock:forced:",
                                          .fence_prefix = "redlock:fence:",
                                          .identity_prefix = "redlock:fence:identity:",
                                          .wake_prefix = "redlock:wake:"};

}  // namespace redlock::wire
