// SPDX-License-Identifier: MIT
// RESP2, client to server: an array of bulk strings.
#include "wire/command_writer.hpp"

#include <array>
#include <charconv>

namespace redlock::wire {
namespace {

class Decimal {
 public:
  explicit Decimal(std::uint64_t value)
      : end_(std::to_chars(digits_.data(), digits_.data() + digits_.size(), value).ptr) {}
  [[nodiscard]] std::string_view text() const {
    return {digits_.data(), static_cast<std::size_t>(end_ - digits_.data())};
  }

 private:
  std::array<char, 20> digits_;
  char* end_;
};

}  // namespace

void CommandWriter::head(char type, std::size_t count) {
  out_ += type;
  out_ += Decimal(count).text();
  out_ += "\r\n";
}

CommandWriter& CommandWriter::bulk(std::string_view text) {
  ++written_;
  head('$', text.size());
  out_ += text;
  out_ += "\r\n";
  return *this;
}

CommandWriter& CommandWriter::bulk(std::initializer_list<std::string_view> pieces) {
  ++written_;
  std::size_t size = 0;
  for (const std::string_view piece : pieces) size += piece.size();
  head('$', size);
  for (const std::string_view piece : pieces) out_ += piece;
  out_ += "\r\n";
  return *this;
}

CommandWriter& CommandWriter::number(std::uint64_t value) {
  return bulk(Decimal(value).text());
}

void CommandWriter::write(std::string& out, std::initializer_list<std::string_view> arguments) {
  CommandWriter writer(out, arguments.size());
  for (const std::string_view argument : arguments) writer.bulk(argument);
}

}  // namespace redlock::wire
