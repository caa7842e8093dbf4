// SPDX-License-Identifier: MIT
#include "wire/item_scanner.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

namespace redlock::wire {
namespace {

constexpr std::string_view types = "+-:$*%~>_=#,(";
constexpr std::string_view line_end = "\r\n";
constexpr std::string_view verbatim_kind = "txt:";  // three letters say what kind of text it is
constexpr std::int64_t most_elements = std::numeric_limits<int>::max();

}  // namespace

std::size_t ItemScanner::scan(std::string_view bytes, std::string& out) {
  std::size_t whole = 0;
  while (!bytes.empty() && defect_ == nullptr) {
    std::size_t taken = 0;
    if (text_left_ > 0) {
      taken = static_cast<std::size_t>(std::min<std::uint64_t>(text_left_, bytes.size()));
      const auto of_kind = std::min<std::uint64_t>(kind_left_, taken);
      out += bytes.substr(static_cast<std::size_t>(of_kind), taken - of_kind);
      kind_left_ -= of_kind;
      text_left_ -= taken;
    } else {
      taken = std::min(bytes.find('\n'), bytes.size() - 1) + 1;
      line_ += bytes.substr(0, taken);
      take_line(out);
    }
    bytes.remove_prefix(taken);
    if (line_.empty() && text_left_ == 0) {
      announced_ = 0;
      whole = out.size();
    }
  }
  return whole;
}

void ItemScanner::take_line(std::string& out) {
  const bool known = types.find(line_.front()) != std::string_view::npos;
  const bool ends = line_.back() == '\n';
  if (known && line_.size() > longest_line) {
    defect_ = "it sent a line longer than any in a reply";
  } else if (!known || (ends && !append_line(out))) {
    defect_ = not_redis;
  } else if (ends) {
    line_.clear();
  }
}

/// False: there is no such item. Within a line there is neither '\r' nor '\n'; hiredis 0.14 would
/// accept both.
bool ItemScanner::append_line(std::string& out) {
  if (line_.find('\r') != line_.size() - line_end.size()) return false;
  const std::string_view rest = std::string_view(line_).substr(1, line_.find('\r') - 1);
  switch (line_.front()) {
    case '+':
    case '-':
    case ':':
      out += line_;
      return true;
    case '_':
      out += "$-1\r\n";
      return rest.empty();
    case '#':
      out += rest == "t" ? ":1\r\n" : ":0\r\n";
      return rest == "t" || rest == "f";
    case ',':
    case '(':
      out.append("+").append(rest).append(line_end);
      return !rest.empty();
    default:
      return append_counted(line_.front(), rest, out);
  }
}

/// What announces a length or a number of elements; -1 stands for nil in RESP2.
bool ItemScanner::append_counted(char type, std::string_view digits, std::string& out) {
  std::int64_t number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (std::to_string(number) != digits) return false;
  if (number == -1 && (type == '$' || type == '*')) {
    out += line_;
    return true;
  }
  const bool has_text = type == '$' || type == '=';
  if (has_text) {
    kind_left_ = type == '=' ? verbatim_kind.size() : 0;
    announced_ = static_cast<std::uint64_t>(number);
    text_left_ = announced_ + line_end.size();
    number -= static_cast<std::int64_t>(kind_left_);
  } else {
    arrays_.push_back(type == '>');
    if (type == '%' && number <= most_elements) number *= 2;
    if (number > most_elements) return false;
  }
  out.append(has_text ? "$" : "*").append(std::to_string(number)).append(line_end);
  return number >= 0;
}

bool ItemScanner::take_push() {
  const bool push = arrays_.front();
  arrays_.pop_front();
  return push;
}

}  // namespace redlock::wire
