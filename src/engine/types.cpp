// SPDX-License-Identifier: MIT
#include "engine/types.hpp"

namespace redlock::engine {

std::string to_hex(const OwnerId& owner) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  text.reserve(32);
  for (const std::uint64_t half : owner.bits) {
    for (int shift = 60; shift >= 0; shift -= 4) text.push_back(digits[(half >> shift) & 0xF]);
  }
  return text;
}

}  // namespace redlock::engine
