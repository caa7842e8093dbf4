// SPDX-License-Identifier: MIT
#include "metrics/exposition.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace redlock::metrics {
namespace {

constexpr std::int64_t microsecond = 1'000;
constexpr std::int64_t millisecond = 1'000 * microsecond;
constexpr std::int64_t second = 1'000 * millisecond;

const std::vector<std::int64_t>& bounds_of(DurationHistogram::Range range) {
  static const std::vector<std::int64_t> network{
      50 * microsecond,   100 * microsecond, 250 * microsecond, 500 * microsecond, 1 * millisecond,
      2500 * microsecond, 5 * millisecond,   10 * millisecond,  25 * millisecond,  50 * millisecond,
      100 * millisecond,  250 * millisecond, 500 * millisecond, 1 * second};
  static const std::vector<std::int64_t> work{
      500 * microsecond, 1 * millisecond,   5 * millisecond, 10 * millisecond, 50 * millisecond,
      100 * millisecond, 500 * millisecond, 1 * second,      5 * second,       10 * second,
      30 * second,       60 * second,       300 * second,    1'800 * second,   3'600 * second};
  return range == DurationHistogram::Range::network ? network : work;
}

std::string in_digits(double number) {
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  return {digits.data(), end};
}

double in_seconds(std::int64_t nanoseconds) {
  return static_cast<double>(nanoseconds) / 1e9;
}

/// Backslash, quote and line break, as the format has it; other control characters, which it allows
/// and terminals obey, are replaced.
void append_value(std::string& text, std::string_view value) {
  for (const char c : value) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '\\' || c == '"') {
      text += '\\';
      text += c;
    } else if (c == '\n') {
      text += "\\n";
    } else {
      text += code < 0x20 || code == 0x7F ? '?' : c;
    }
  }
}

}  // namespace

DurationHistogram::DurationHistogram(Range range)
    : bounds_(&bounds_of(range)), counts_(bounds_->size() + 1) {}

void DurationHistogram::add(std::chrono::nanoseconds duration) {
  const std::int64_t time = std::max<std::int64_t>(duration.count(), 0);
  const auto bound = std::lower_bound(bounds_->begin(), bounds_->end(), time);
  ++counts_[static_cast<std::size_t>(bound - bounds_->begin())];
  sum_seconds_ += in_seconds(time);
}

void Exposition::family(std::string_view name, std::string_view type, std::string_view help) {
  family_ = name;
  text_.append("# HELP ").append(name).append(" ").append(help).append("\n");
  text_.append("# TYPE ").append(name).append(" ").append(type).append("\n");
}

void Exposition::line(std::string_view suffix, const Labels& labels, std::string_view number) {
  text_.append(family_).append(suffix);
  for (const auto& [label, value] : labels) {
    text_.append(&label == &labels.front().first ? "{" : ",").append(label).append("=\"");
    append_value(text_, value);
    text_ += '"';
  }
  text_.append(labels.empty() ? " " : "} ").append(number).append("\n");
}

void Exposition::value(const Labels& labels, std::uint64_t value) {
  line("", labels, std::to_string(value));
}

void Exposition::value(const Labels& labels, const DurationHistogram& histogram) {
  Labels bucket = labels;
  bucket.emplace_back("le", "");
  std::uint64_t so_far = 0;
  for (std::size_t i = 0; i < histogram.counts().size(); ++i) {
    const bool last = i == histogram.bounds().size();
    so_far += histogram.counts()[i];
    bucket.back().second = last ? "+Inf" : in_digits(in_seconds(histogram.bounds()[i]));
    line("_bucket", bucket, std::to_string(so_far));
  }
  line("_sum", labels, in_digits(histogram.sum_seconds()));
  line("_count", labels, std::to_string(so_far));
}

}  // namespace redlock::metrics
