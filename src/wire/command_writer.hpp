// SPDX-License-Identifier: MIT
// Writes one command as RESP straight into a connection's output, without an allocation of its own
// (hiredis' formatters make one string per command and one array of lengths).
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace redlock::wire {

class CommandWriter {
 public:
  /// Exactly `arguments` calls of bulk() and number() must follow; the command's name is the first.
  CommandWriter(std::string& out, std::size_t arguments);
  /// Arguments alone, of a command that begins elsewhere.
  explicit CommandWriter(std::string& out) : out_(out) {}

  /// No text may be a part of the output.
  CommandWriter& bulk(std::string_view text);
  /// One argument made of several pieces.
  CommandWriter& bulk(std::initializer_list<std::string_view> pieces);
  CommandWriter& number(std::uint64_t value);

  /// How many calls of bulk() and number() there were.
  [[nodiscard]] std::size_t written() const { return written_; }

  /// A whole command.
  static void write(std::string& out, std::initializer_list<std::string_view> arguments);

 private:
  std::string& out_;
  std::size_t written_ = 0;
};

}  // namespace redlock::wire
