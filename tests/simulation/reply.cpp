// SPDX-License-Identifier: MIT
#include "simulation/reply.hpp"

#include <array>
#include <charconv>

namespace redlock::simulation {

void RespReply::line(char type, std::string_view text) {
  out_ += type;
  out_ += text;
  out_ += "\r\n";
}

void RespReply::head(char type, std::int64_t number) {
  std::array<char, 20> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  line(type, {digits.data(), static_cast<std::size_t>(end - digits.data())});
}

void RespReply::bulk(std::string_view text) {
  head('$', static_cast<std::int64_t>(text.size()));
  out_ += text;
  out_ += "\r\n";
}

void RespReply::verbatim(std::string_view text) {
  if (!resp3_) return bulk(text);
  head('=', static_cast<std::int64_t>(text.size()) + 4);
  out_ += "txt:";
  out_ += text;
  out_ += "\r\n";
}

}  // namespace redlock::simulation
