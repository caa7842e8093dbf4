// SPDX-License-Identifier: MIT
#include "wire/item_scanner.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

#include "wire/resp3.hpp"

namespace redlock::wire {
namespace {

constexpr std::string_view types = "+-:$*%~>_=#,(";

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
      if (std::exchange(resp3_item_, false)) resp3_ = true;
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
  const char type = head_.front();
  resp3_item_ = is_resp3(type);
  const bool counted = std::string_view("$*%~>=").find(type) != std::string_view::npos;
  const bool right = counted ? finish_counted(type) : is_word(type);
  if (!right) {
    defect_ = Defect::not_redis;
    return;
  }
  line_ = 0;
}

/// -1 stands for nil in RESP2.
bool ItemScanner::is_number(char type, std::int64_t& number) const {
  const std::string_view line(head_.data(), std::min(line_, head_.size()));
  const auto [end, error] = std::from_chars(line.data() + 1, line.data() + line.size(), number);
  const bool alone = error == std::errc{} && line_ <= head_.size() &&
                     end == line.data() + line.size() - line_end.size();
  return alone && number >= (type == '$' || type == '*' ? -1 : 0);
}

/// The items that announce a length or a number of elements.
bool ItemScanner::finish_counted(char type) {
  constexpr std::int64_t most = std::numeric_limits<int>::max();
  std::int64_t number = 0;
  if (!is_number(type, number)) return false;
  if (number == -1) return true;
  if (type == '$' || type == '=') {
    announced_ = static_cast<std::uint64_t>(number);
    text_left_ = announced_ + line_end.size();
    return type == '$' || announced_ >= verbatim_kind.size();
  }
  if (type == '>') pushes_.push_back(arrays_);
  ++arrays_;
  return number <= (type == '%' ? most / 2 : most);
}

/// Of a line without a number, as far as it is not hiredis that looks at it.
bool ItemScanner::is_word(char type) const {
  const std::string_view word(head_.data() + 1, std::min(line_, head_.size()) - 1);
  if (type == '_') return word == line_end;
  if (type == '#') return word == "t\r\n" || word == "f\r\n";
  return !is_resp3(type) || word != line_end;
}

bool ItemScanner::take_push(std::uint64_t number) {
  if (pushes_.empty() || pushes_.front() != number) return false;
  pushes_.pop_front();
  return true;
}

}  // namespace redlock::wire
