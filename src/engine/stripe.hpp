// SPDX-License-Identifier: MIT
// Which of a node's 65,536 fence counters a name uses. Part of the layout on the nodes: never
// change it, or tokens of one name would come from two counters.
#pragma once

#include <cstdint>
#include <string_view>

namespace redlock::engine {

inline constexpr std::uint32_t stripe_count = 65'536;

/// FNV-1a, 64 bits (Fowler, Noll, Vo; draft-eastlake-fnv), its four quarters folded together.
[[nodiscard]] constexpr std::uint32_t stripe_of(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : name) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3U;
  }
  hash ^= hash >> 32;
  hash ^= hash >> 16;
  return static_cast<std::uint32_t>(hash % stripe_count);
}

}  // namespace redlock::engine
