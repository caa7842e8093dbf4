// SPDX-License-Identifier: MIT
#include "simulation/request_reader.hpp"

namespace redlock::simulation {
namespace {

// The limits of Redis (proto-max-bulk-len, and what it takes as a number of arguments).
constexpr std::size_t most_arguments = std::size_t{1} << 20;
constexpr std::size_t longest_argument = std::size_t{512} << 20;

}  // namespace

void RequestReader::feed(std::string_view bytes) {
  if (begin_ == bytes_.size()) {
    bytes_.clear();
    begin_ = at_ = 0;
  }
  bytes_ += bytes;
}

bool RequestReader::take_number(char type, std::size_t most, std::size_t& number) {
  if (at_ == bytes_.size()) return false;
  if (bytes_[at_] != type) {
    broken_ = true;
    return false;
  }
  number = 0;
  std::size_t at = at_ + 1;
  for (; at < bytes_.size() && bytes_[at] >= '0' && bytes_[at] <= '9' && number <= most; ++at) {
    number = number * 10 + static_cast<std::size_t>(bytes_[at] - '0');
  }
  const bool digits = at > at_ + 1;
  if (at == bytes_.size()) return false;
  if (!digits || number > most || bytes_[at] != '\r') {
    broken_ = true;
    return false;
  }
  if (at + 1 == bytes_.size()) return false;
  broken_ = bytes_[at + 1] != '\n';
  if (!broken_) at_ = at + 2;
  return !broken_;
}

RequestReader::Outcome RequestReader::next() {
  const auto unfinished = [&] { return broken_ ? Outcome::broken : Outcome::incomplete; };
  if (broken_) return Outcome::broken;
  if (expected_ == 0) {
    std::size_t count = 0;
    if (!take_number('*', most_arguments, count)) return unfinished();
    expected_ = count;
    if (expected_ == 0)
      broken_ = true;  // Redis takes it for nothing, and the library never does it
    arguments_.clear();
  }
  while (arguments_.size() < expected_ && !broken_) {
    const std::size_t before = at_;
    std::size_t size = 0;
    if (!take_number('$', longest_argument, size)) return unfinished();
    if (bytes_.size() - at_ < size + 2) {
      at_ = before;
      return Outcome::incomplete;
    }
    broken_ = bytes_[at_ + size] != '\r' || bytes_[at_ + size + 1] != '\n';
    arguments_.push_back({at_, size});
    at_ += size + 2;
  }
  if (broken_) return Outcome::broken;
  request_.clear();
  for (const Extent& argument : arguments_) {
    request_.emplace_back(bytes_.data() + argument.begin, argument.size);
  }
  expected_ = 0;
  begin_ = at_;
  return Outcome::complete;
}

}  // namespace redlock::simulation
