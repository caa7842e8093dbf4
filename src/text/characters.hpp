// SPDX-License-Identifier: MIT
// The characters of a text in UTF-8, and which of them must not be shown as they are: names,
// holders and the words of nodes may be any bytes.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace redlock::text {

struct Character {
  char32_t code = 0;
  std::size_t bytes = 0;  ///< 0: it is not well-formed (RFC 3629, section 4)
};

/// Of a text that is not empty.
constexpr Character first_character(std::string_view text) {
  const auto byte = [text](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return {first, 1};
  if (first < 0xC2 || first > 0xF4) return {};
  const std::size_t bytes = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  char32_t code = first & (0x7FU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return {};
    code = code << 6 | (byte(i) & 0x3FU);
  }
  const char32_t least = bytes == 2 ? 0x80 : bytes == 3 ? 0x800 : 0x10000;
  const bool is_surrogate = code >= 0xD800 && code <= 0xDFFF;
  return code < least || is_surrogate || code > 0x10FFFF ? Character{} : Character{code, bytes};
}

/// Unicode's controls, format characters and separators of lines (Cc, Cf, Zl, Zp), and other
/// characters that a terminal does not show (Default_Ignorable_Code_Point): they steer it, turn the
/// direction of other text round, or make two names look like one.
constexpr bool is_unseen(char32_t code) {
  struct CodeRange {
    char32_t first;
    char32_t last;
  };
  constexpr std::array ranges{
      CodeRange{0x0000, 0x001F},   CodeRange{0x007F, 0x009F},   CodeRange{0x00AD, 0x00AD},
      CodeRange{0x034F, 0x034F},   CodeRange{0x0600, 0x0605},   CodeRange{0x061C, 0x061C},
      CodeRange{0x06DD, 0x06DD},   CodeRange{0x070F, 0x070F},   CodeRange{0x0890, 0x0891},
      CodeRange{0x08E2, 0x08E2},   CodeRange{0x115F, 0x1160},   CodeRange{0x17B4, 0x17B5},
      CodeRange{0x180B, 0x180F},   CodeRange{0x200B, 0x200F},   CodeRange{0x2028, 0x202E},
      CodeRange{0x2060, 0x206F},   CodeRange{0x3164, 0x3164},   CodeRange{0xFE00, 0xFE0F},
      CodeRange{0xFEFF, 0xFEFF},   CodeRange{0xFFA0, 0xFFA0},   CodeRange{0xFFF0, 0xFFFB},
      CodeRange{0x110BD, 0x110BD}, CodeRange{0x110CD, 0x110CD}, CodeRange{0x13430, 0x1343F},
      CodeRange{0x1BCA0, 0x1BCA3}, CodeRange{0x1D173, 0x1D17A}, CodeRange{0xE0000, 0xE0FFF}};
  return std::any_of(ranges.begin(), ranges.end(), [code](const CodeRange& range) {
    return code >= range.first && code <= range.last;
  });
}

/// The text with each byte of what is unseen or not well-formed as \xNN. Once it has `most` bytes,
/// "..." stands for the rest.
inline std::string visible(std::string_view text, std::size_t most = std::string::npos) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string shown;
  while (!text.empty()) {
    if (shown.size() >= most) return shown + "...";
    const Character next = first_character(text);
    const std::size_t bytes = std::max<std::size_t>(next.bytes, 1);
    if (next.bytes == 0 || is_unseen(next.code)) {
      for (const char c : text.substr(0, bytes)) {
        const auto byte = static_cast<unsigned char>(c);
        shown += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
      }
    } else {
      shown += text.substr(0, bytes);
    }
    text.remove_prefix(bytes);
  }
  return shown;
}

/// In single quotes, control and invisible characters escaped, cut at 64 bytes: a name in a
/// sentence.
inline std::string in_quotes(std::string_view text) {
  constexpr std::size_t longest_quote = 64;
  // "'" + visible(...) would be shorter, but GCC 12 warns about it at -O3 (-Wrestrict, wrongly).
  std::string result = "'";
  result += visible(text, longest_quote);
  result += '\'';
  return result;
}

}  // namespace redlock::text
