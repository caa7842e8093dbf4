// SPDX-License-Identifier: MIT
#include "simulation/sha1.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <fmt/format.h>

namespace redlock::simulation {
namespace {

using State = std::array<std::uint32_t, 5>;

void mix(State& state, std::string_view block) {
  std::array<std::uint32_t, 80> words{};
  for (std::size_t i = 0; i < 64; ++i) {
    words[i / 4] = words[i / 4] << 8 | static_cast<unsigned char>(block[i]);
  }
  for (std::size_t i = 16; i < words.size(); ++i) {
    words[i] = std::rotl(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
  }
  auto [a, b, c, d, e] = state;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::uint32_t chosen = i < 20   ? ((b & c) | (~b & d)) + 0x5a827999U
                                 : i < 40 ? (b ^ c ^ d) + 0x6ed9eba1U
                                 : i < 60 ? ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdcU
                                          : (b ^ c ^ d) + 0xca62c1d6U;
    const std::uint32_t next = std::rotl(a, 5) + chosen + e + words[i];
    e = d;
    d = c;
    c = std::rotl(b, 30);
    b = a;
    a = next;
  }
  const State added{a, b, c, d, e};
  for (std::size_t i = 0; i < state.size(); ++i) state[i] += added[i];
}

}  // namespace

std::string sha1(std::string_view text) {
  State state{0x67452301U, 0xefcdab89U, 0x98badcfeU, 0x10325476U, 0xc3d2e1f0U};
  std::string padded(text);
  padded += '\x80';
  padded.resize((padded.size() + 8 + 63) / 64 * 64);
  const std::uint64_t bits = std::uint64_t{text.size()} * 8;
  for (std::size_t i = 0; i < 8; ++i) {
    padded[padded.size() - 1 - i] = static_cast<char>(bits >> (8 * i) & 0xff);
  }
  for (std::size_t at = 0; at < padded.size(); at += 64) {
    mix(state, std::string_view(padded).substr(at, 64));
  }
  std::string digits;
  for (const std::uint32_t word : state) digits += fmt::format("{:08x}", word);
  return digits;
}

}  // namespace redlock::simulation
