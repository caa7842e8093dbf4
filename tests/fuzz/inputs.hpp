// SPDX-License-Identifier: MIT
// How the fuzz targets read the bytes that they are given. A target is a file that defines
// fuzz_one(); its checks are doctest's, and a failed one aborts the program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace redlock::fuzz {

/// Runs one input. Every check in it holds for any bytes.
void fuzz_one(std::string_view input);

/// Takes one byte off; 0 when there is none.
inline std::uint8_t take_byte(std::string_view& input) {
  if (input.empty()) return 0;
  const char first = input.front();
  input.remove_prefix(1);
  return static_cast<std::uint8_t>(first);
}

/// Takes what is before the next separator, and the separator.
inline std::string_view take_part(std::string_view& input, char separator) {
  const std::size_t end = input.find(separator);
  const std::string_view part = input.substr(0, end);
  input = end == std::string_view::npos ? std::string_view() : input.substr(end + 1);
  return part;
}

}  // namespace redlock::fuzz
