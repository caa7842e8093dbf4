// SPDX-License-Identifier: MIT
// What of a text is shown as it is: of every code point, and of bytes that are no character.
#include "text/characters.hpp"

#include <doctest/doctest.h>
#include <initializer_list>

namespace redlock::text {
namespace {

std::string in_utf8(char32_t code) {
  const auto tail = [code](int shift) {
    return static_cast<char>(0x80U | (code >> shift & 0x3FU));
  };
  if (code < 0x80) return {static_cast<char>(code)};
  if (code < 0x800) return {static_cast<char>(0xC0U | code >> 6), tail(0)};
  if (code < 0x10000) return {static_cast<char>(0xE0U | code >> 12), tail(6), tail(0)};
  return {static_cast<char>(0xF0U | code >> 18), tail(12), tail(6), tail(0)};
}

bool is_shown(char32_t code) {
  return visible(in_utf8(code)) == in_utf8(code);
}

TEST_CASE("every code point is read as itself, but for the surrogates, which no text has") {
  for (char32_t code = 0; code < 0x110000; ++code) {
    const std::string text = in_utf8(code) + "x";
    const Character read = first_character(text);
    const bool good = code < 0xD800 || code > 0xDFFF;
    if (read.bytes != (good ? text.size() - 1 : 0) || read.code != (good ? code : 0)) {
      FAIL("U+" << static_cast<unsigned>(code));
    }
  }
  CHECK(first_character(in_utf8(0x110000)).bytes == 0);
}

TEST_CASE("nothing is shown that steers a terminal, turns text round, or cannot be seen") {
  const auto hidden = [](char32_t first, char32_t last) {
    for (char32_t code = first; code <= last; ++code) {
      CHECK_MESSAGE(!is_shown(code), static_cast<unsigned>(code));
    }
  };
  hidden(0x00, 0x1F);
  hidden(0x7F, 0x9F);
  hidden(0x200B, 0x200F);    // zero width, and marks of direction
  hidden(0x2028, 0x202E);    // separators of lines and paragraphs; embeddings, overrides
  hidden(0x2060, 0x206F);    // joiners, invisible operators, isolates
  hidden(0xFE00, 0xFE0F);    // variation selectors
  hidden(0xFFF9, 0xFFFB);    // annotations
  hidden(0xE0000, 0xE0FFF);  // tags, more variation selectors
  for (const char32_t code : std::initializer_list<char32_t>{0xAD, 0x34F, 0x61C, 0x115F, 0x180E,
                                                             0x3164, 0xFEFF, 0xFFA0, 0x1D173}) {
    hidden(code, code);
  }
}

TEST_CASE("letters, digits and signs of all scripts are shown") {
  for (const auto& [first, last] :
       {std::pair(U' ', U'~'), std::pair(U'\u00A1', U'\u00AC'), std::pair(U'\u00AE', U'\u034E'),
        std::pair(U'\u0370', U'\u05FF'), std::pair(U'\u0620', U'\u06DC'),
        std::pair(U'\u0900', U'\u10FF'), std::pair(U'\u2010', U'\u2027'),
        std::pair(U'\u3041', U'\u3163'), std::pair(U'\u4E00', U'\uD7A3'),
        std::pair(U'\U0001F300', U'\U0001FAFF')}) {
    for (char32_t code = first; code <= last; ++code) {
      CHECK_MESSAGE(is_shown(code), static_cast<unsigned>(code));
    }
  }
}

TEST_CASE("whatever the bytes, what is shown of them is well-formed and has nothing unseen") {
  for (unsigned bytes = 0; bytes < 0x1000000; bytes += bytes < 0x20000 ? 1 : 251) {
    const std::string text{static_cast<char>(bytes >> 16), static_cast<char>(bytes >> 8),
                           static_cast<char>(bytes)};
    const std::string shown = visible(text);
    for (std::string_view rest = shown; !rest.empty();) {
      const Character next = first_character(rest);
      if (next.bytes == 0 || is_unseen(next.code)) FAIL(bytes);
      rest.remove_prefix(next.bytes);
    }
  }
  CHECK(visible("a\x9b"
                "31m") == "a\\x9b31m");
  CHECK(visible("\xc0\xaf") == "\\xc0\\xaf");       // overlong
  CHECK(visible("\xf5\x80\x80\x80").size() == 16);  // beyond the last
  CHECK(visible("gr\xc3\xbc\xc3") == "gr\xc3\xbc\\xc3");
}

TEST_CASE("a long text is cut between characters") {
  CHECK(visible("abc", 3) == "abc");
  CHECK(visible("abcd", 3) == "abc...");
  CHECK(visible("\xc3\xbc\xc3\xbc\xc3\xbc", 3) == "\xc3\xbc\xc3\xbc...");
  CHECK(in_quotes("a\tb") == "'a\\x09b'");
  CHECK(in_quotes(std::string(65, 'a')) == "'" + std::string(64, 'a') + "...'");
}

}  // namespace
}  // namespace redlock::text
