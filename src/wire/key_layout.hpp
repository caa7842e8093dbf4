// SPDX-License-Identifier: MIT
// The keys on a node, all in one place, so that another layout (Redisson's) can stand beside this.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace redlock::wire {

/// redlock:lock:{NAME} is the hash owner -> count; redlock:lock:{NAME}:forced the hash of the
/// owners who were forced out of it (the scripts spell this one, too); redlock:fence:STRIPE the
/// counter of all names of that stripe; redlock:node the marker, and
/// redlock:node:notes (acquire.lua spells it, too) what clients leave on a node that has none.
class KeyLayout {
 public:
  static constexpr std::string_view id = "redlock-1";
  static constexpr std::string_view marker = "redlock:node";
  static constexpr std::string_view notes = "redlock:node:notes";
  static constexpr std::string_view lock_prefix = "redlock:lock:{";
  static constexpr std::string_view lock_suffix = "}";
  static constexpr std::string_view forced_suffix = ":forced";
  static constexpr std::string_view fence_prefix = "redlock:fence:";

  [[nodiscard]] static std::string lock(std::string_view name);
  [[nodiscard]] static std::string forced(std::string_view name);
  [[nodiscard]] static std::string fence(std::string_view name);

  /// The same without an allocation: written into the buffer.
  static constexpr std::size_t longest_fence = 24;
  [[nodiscard]] static std::string_view fence(std::string_view name,
                                              std::array<char, longest_fence>& buffer);
};

}  // namespace redlock::wire
