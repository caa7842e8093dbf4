// SPDX-License-Identifier: MIT
#include "engine/types.hpp"

namespace redlock::engine {

std::array<char, 32> hex_digits(const OwnerId& owner) {
  static constexpr char digits[] = "0123456789abcdef";
  std::array<char, 32> text;
  char* at = text.data();
  for (const std::uint64_t half : owner.bits) {
    for (int shift = 60; shift >= 0; shift -= 4) *at++ = digits[(half >> shift) & 0xF];
  }
  return text;
}

std::string to_hex(const OwnerId& owner) {
  const auto digits = hex_digits(owner);
  return {digits.data(), digits.size()};
}

Duration random_between(Duration least, Duration most, RandomSource& random) {
  const auto span = static_cast<std::uint64_t>((most - least).count()) + 1;
  return least + Duration(static_cast<Duration::rep>(random.next() % span));
}

}  // namespace redlock::engine
