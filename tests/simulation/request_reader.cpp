// SPDX-License-Identifier: MIT
#include "simulation/request_reader.hpp"

#include <algorithm>
#include <charconv>

namespace redlock::simulation {
namespace {

// The limits of Redis (proto-max-bulk-len, and what it takes as a number of arguments).
constexpr std::size_t most_arguments = std::size_t{1} << 20;
constexpr std::size_t longest_argument = std::size_t{512} << 20;
constexpr std::string_view line_end = "\r\n";

}  // namespace

void RequestReader::feed(std::string_view bytes) {
  bytes_.erase(0, begin_);
  begin_ = 0;
  bytes_ += bytes;
}

RequestReader::Outcome RequestReader::read_number(char type, std::size_t most, std::size_t& at,
                                                  std::size_t& number) const {
  const std::string_view line = std::string_view(bytes_).substr(at);
  if (line.empty()) return Outcome::incomplete;
  const std::size_t size = std::min(line.find_first_not_of("0123456789", 1), line.size());
  const std::string_view end = line.substr(size, line_end.size());
  const auto [rest, problem] = std::from_chars(line.data() + 1, line.data() + size, number);
  const bool is_number = problem == std::errc() && number <= most;
  const bool may_go_on = line.front() == type && (is_number || line.size() == 1);
  if (!may_go_on || !line_end.starts_with(end)) return Outcome::broken;
  at += size + end.size();
  return end == line_end ? Outcome::complete : Outcome::incomplete;
}

RequestReader::Outcome RequestReader::next() {
  std::size_t at = begin_;
  std::size_t words = 0;
  Outcome outcome = read_number('*', most_arguments, at, words);
  // Redis takes an empty one for nothing, and the library never sends it.
  if (outcome == Outcome::complete && words == 0) return Outcome::broken;
  request_.clear();
  while (outcome == Outcome::complete && request_.size() < words) {
    std::size_t size = 0;
    outcome = read_number('$', longest_argument, at, size);
    if (outcome != Outcome::complete) return outcome;
    if (bytes_.size() - at < size + line_end.size()) return Outcome::incomplete;
    request_.emplace_back(bytes_.data() + at, size);
    at += size + line_end.size();
    if (bytes_.compare(at - line_end.size(), line_end.size(), line_end) != 0)
      return Outcome::broken;
  }
  if (outcome == Outcome::complete) begin_ = at;
  return outcome;
}

}  // namespace redlock::simulation
