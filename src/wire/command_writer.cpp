// SPDX-License-Identifier: MIT
// RESP2, client to server: an array of bulk strings.
#include "wire/command_writer.hpp"

#include <array>
#include <charconv>

namespace redlock::wire {
namespace {

constexpr std::string_view crlf = "\r\n";
constexpr std::size_t most_digits = 20;
constexpr std::size_t longest_head = 1 + most_digits + crlf.size();

char* put(char* at, std::string_view text) {
  return at + text.copy(at, text.size());
}

char* put_head(char* at, char type, std::size_t count) {
  *at = type;
  return put(std::to_chars(at + 1, at + 1 + most_digits, count).ptr, crlf);
}

}  // namespace

CommandWriter::CommandWriter(std::string& out, std::size_t arguments) : out_(out) {
  std::array<char, longest_head> head;
  out_.append(head.data(), put_head(head.data(), '*', arguments));
}

CommandWriter& CommandWriter::bulk(std::string_view text) {
  return bulk(std::initializer_list<std::string_view>{text});
}

/// The output grows once for each argument: a message has two dozen pieces and more.
CommandWriter& CommandWriter::bulk(std::initializer_list<std::string_view> pieces) {
  ++written_;
  std::size_t size = 0;
  for (const std::string_view piece : pieces) size += piece.size();
  const std::size_t begin = out_.size();
  out_.resize(begin + longest_head + size + crlf.size());
  char* at = put_head(out_.data() + begin, '$', size);
  for (const std::string_view piece : pieces) at = put(at, piece);
  at = put(at, crlf);
  out_.resize(static_cast<std::size_t>(at - out_.data()));
  return *this;
}

CommandWriter& CommandWriter::number(std::uint64_t value) {
  std::array<char, most_digits> digits;
  char* const end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  return bulk(std::string_view(digits.data(), static_cast<std::size_t>(end - digits.data())));
}

void CommandWriter::write(std::string& out, std::initializer_list<std::string_view> arguments) {
  CommandWriter writer(out, arguments.size());
  for (const std::string_view argument : arguments) writer.bulk(argument);
}

}  // namespace redlock::wire
