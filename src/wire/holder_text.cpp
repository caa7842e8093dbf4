// SPDX-License-Identifier: MIT
#include "wire/holder_text.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>

namespace redlock::wire {
namespace {

constexpr std::size_t longest_part = 64;
constexpr std::size_t digits_of_time = 13;  // enough until the year 2286
constexpr std::int64_t end_of_time = 9'999'999'999'999;
/// A difference of the clocks that is more than the time between reading one and the other.
constexpr std::int64_t clock_was_set_ms = 100;

/// Cut in front of a character that does not fit as a whole.
std::string_view cut(std::string_view text) {
  if (text.size() <= longest_part) return text;
  std::size_t end = longest_part;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return text.substr(0, end);
}

std::string without(std::string_view text, char last_replaced) {
  std::string result(cut(text));
  std::ranges::replace_if(
      result,
      [last_replaced](char c) {
        return (static_cast<unsigned char>(c) <= static_cast<unsigned char>(last_replaced)) ||
               c == '\x7f';
      },
      '?');
  return result.empty() ? "?" : result;
}

template <typename Number>
bool read_number(std::string_view& text, Number& number) {
  const char* const end = text.data() + text.size();
  const auto [rest, problem] = std::from_chars(text.data(), end, number);
  if (problem != std::errc() || rest == end || *rest != ' ') return false;
  text.remove_prefix(static_cast<std::size_t>(rest - text.data()) + 1);
  return true;
}

std::int64_t ms_of(std::chrono::nanoseconds time) {
  return std::chrono::floor<std::chrono::milliseconds>(time).count();
}

}  // namespace

HolderText::HolderText(std::string_view host, std::uint64_t pid, std::string_view label)
    : text_(std::string(digits_of_time, '0') + " " + std::to_string(pid) + " " +
            without(host, ' ') + " " + without(label, '\x1f')) {}

void HolderText::set_clock(engine::Instant now, std::int64_t unix_us) {
  const std::int64_t offset = unix_us / 1'000 - ms_of(now.time_since_epoch());
  if (std::abs(offset - offset_ms_) <= clock_was_set_ms) return;
  offset_ms_ = offset;
  when_ = {};
}

std::string_view HolderText::since(engine::Instant when) {
  // An attempt tells all nodes the same in one turn: it is written once for all of them.
  if (text_.empty() || when == when_) return text_;
  when_ = when;
  std::int64_t left =
      std::clamp<std::int64_t>(ms_of(when.time_since_epoch()) + offset_ms_, 0, end_of_time);
  for (std::size_t i = digits_of_time; i > 0; --i) {
    text_[i - 1] = static_cast<char>('0' + left % 10);
    left /= 10;
  }
  return text_;
}

std::optional<HolderFields> read_holder(std::string_view text) {
  HolderFields fields;
  if (!read_number(text, fields.since_unix_ms) || !read_number(text, fields.pid)) return {};
  if (fields.since_unix_ms < 0 || fields.since_unix_ms > end_of_time) return {};
  const std::size_t space = text.find(' ');
  if (space == 0 || space == std::string_view::npos) return {};
  fields.host = cut(text.substr(0, space));
  fields.label = cut(text.substr(space + 1));
  return fields;
}

}  // namespace redlock::wire
