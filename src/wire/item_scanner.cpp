// SPDX-License-Identifier: MIT
#include "wire/item_scanner.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

namespace redlock::wire {
namespace {

constexpr std::string_view types = "+-:$*";

}  // namespace

std::size_t ItemScanner::scan(std::string_view bytes) {
  std::size_t whole = 0;
  std::size_t at = 0;
  while (at < bytes.size() && defect_ == Defect::none) {
    if (text_left_ > 0) {
      const auto skipped = std::min<std::uint64_t>(text_left_, bytes.size() - at);
      text_left_ -= skipped;
      at += static_cast<std::size_t>(skipped);
    } else {
      at += scan_line(bytes.substr(at));
    }
    if (line_ == 0 && text_left_ == 0 && defect_ == Defect::none) {
      announced_ = 0;
      whole = at;
    }
  }
  return whole;
}

std::size_t ItemScanner::scan_line(std::string_view bytes) {
  const std::size_t new_line = bytes.find('\n');
  const bool ends = new_line != std::string_view::npos;
  const std::string_view part = bytes.substr(0, ends ? new_line + 1 : new_line);
  const bool known = line_ > 0 || types.find(part.front()) != std::string_view::npos;
  if (!known || !is_line(part, ends)) {
    defect_ = Defect::not_redis;
    return part.size();
  }
  if (line_ < head_.size()) part.copy(head_.data() + line_, head_.size() - line_);
  line_ += part.size();
  after_return_ = part.back() == '\r';
  if (line_ > longest_line) {
    defect_ = Defect::long_line;
  } else if (ends) {
    finish_line();
  }
  return part.size();
}

// Within a line there is neither '\r' nor '\n'; hiredis 0.14 would accept both.
bool ItemScanner::is_line(std::string_view part, bool ends) const {
  if (after_return_) return part == "\n";
  const std::size_t at = part.find('\r');
  if (ends) return at != std::string_view::npos && at + 2 == part.size();
  return at == std::string_view::npos || at + 1 == part.size();
}

void ItemScanner::finish_line() {
  const std::string_view line(head_.data(), std::min(line_, head_.size()));
  const char type = line.front();
  if (type == '$' || type == '*') {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(line.data() + 1, line.data() + line.size(), number);
    const bool alone = error == std::errc{} && line_ <= head_.size() &&
                       end == line.data() + line.size() - std::string_view("\r\n").size();
    const bool fits = type == '$' || number <= std::numeric_limits<int>::max();
    if (!alone || !fits || number < -1) {
      defect_ = Defect::not_redis;
      return;
    }
    if (type == '$' && number >= 0) {
      announced_ = static_cast<std::uint64_t>(number);
      text_left_ = announced_ + std::string_view("\r\n").size();
    }
  }
  line_ = 0;
}

}  // namespace redlock::wire
