// SPDX-License-Identifier: MIT
#include "wire/resp3.hpp"

#include <charconv>
#include <cstddef>
#include <cstdint>

namespace redlock::wire {
namespace {

std::uint64_t number_in(std::string_view digits) {
  std::uint64_t number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

void append_head(std::string& out, char type, std::uint64_t number) {
  out += type;
  out += std::to_string(number);
  out += line_end;
}

}  // namespace

void append_as_resp2(std::string_view items, std::string& out) {
  while (!items.empty()) {
    const std::size_t end = items.find(line_end);
    const char type = items.front();
    const std::string_view rest = items.substr(1, end - 1);
    const bool has_text = type == '=' || (type == '$' && rest != "-1");
    const std::string_view line = items.substr(0, end + line_end.size());
    items.remove_prefix(line.size());
    const std::size_t length =
        has_text ? static_cast<std::size_t>(number_in(rest)) + line_end.size() : 0;
    const std::string_view text = items.substr(0, length);
    items.remove_prefix(length);
    switch (type) {
      case '%':
        append_head(out, '*', 2 * number_in(rest));
        break;
      case '~':
      case '>':
        append_head(out, '*', number_in(rest));
        break;
      case '_':
        out += "$-1\r\n";
        break;
      case '#':
        out += rest == "t" ? ":1\r\n" : ":0\r\n";
        break;
      case ',':
      case '(':
        out += '+';
        out += line.substr(1);
        break;
      case '=':
        append_head(out, '$', number_in(rest) - verbatim_kind.size());
        out += text.substr(verbatim_kind.size());
        break;
      default:
        out += line;
        out += text;
    }
  }
}

}  // namespace redlock::wire
