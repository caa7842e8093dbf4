// SPDX-License-Identifier: MIT
#include "wire/wake.hpp"

#include <charconv>
#include <system_error>

namespace redlock::wire {
namespace {

// A longer time was not published by a script: a turn lasts half a second at most (longest_turn in
// line.lua, length_of_turn in engine/rules.hpp).
constexpr std::uint64_t longest_believed_ms = 10'000;

bool is_text(const ReplyView& part, std::string_view text) {
  return part.is(ReplyView::Kind::text) && part.text() == text;
}

/// A number without a sign or leading zeros.
bool read_decimal(std::string_view digits, std::uint64_t& number) {
  if (digits.empty() || (digits.front() == '0' && digits.size() > 1)) return false;
  const char* const end = digits.data() + digits.size();
  const auto [rest, error] = std::from_chars(digits.data(), end, number);
  return error == std::errc{} && rest == end;
}

}  // namespace

std::optional<Wake> read_wake(const ReplyView& push, std::string_view channel) {
  if (push.size() != 3 || !is_text(push.first(), "message")) return {};
  const ReplyView to = push.first().next();
  if (!is_text(to, channel) || !to.next().is(ReplyView::Kind::text)) return {};
  const std::string_view text = to.next().text();
  const std::size_t space = text.find(' ');
  if (space == std::string_view::npos) return {};
  std::uint64_t line = 0;
  std::uint64_t after = 0;
  const bool right =
      read_decimal(text.substr(0, space), line) && read_decimal(text.substr(space + 1), after);
  if (!right || line == 0 || after > longest_believed_ms) return {};
  return Wake{.line = line, .after = std::chrono::milliseconds(after)};
}

bool confirms_subscription(const ReplyView& push, std::string_view channel) {
  return push.size() == 3 && is_text(push.first(), "subscribe") &&
         is_text(push.first().next(), channel);
}

}  // namespace redlock::wire
