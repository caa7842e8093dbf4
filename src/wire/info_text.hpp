// SPDX-License-Identifier: MIT
// The text that INFO answers: lines of key:value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace redlock::wire {

class InfoText {
 public:
  explicit InfoText(std::string_view text) : text_(text) {}

  /// The value, empty if there is no such line.
  [[nodiscard]] std::string_view value(std::string_view key) const;
  /// The same as a number, 0 if it is none.
  [[nodiscard]] std::int64_t number(std::string_view key) const;
  /// It is a replica or was promoted from one, as far as the node remembers.
  [[nodiscard]] bool was_replica() const;
  /// Another one with every start of the server and with every promotion; empty if not known.
  [[nodiscard]] std::string promotion() const;

 private:
  std::string_view text_;
};

/// The first two numbers of "7.0.15".
struct ServerVersion {
  std::int64_t major = 0;
  std::int64_t minor = 0;

  [[nodiscard]] static ServerVersion parse(std::string_view text);
  [[nodiscard]] bool at_least(int wanted_major, int wanted_minor) const {
    return major != wanted_major ? major > wanted_major : minor >= wanted_minor;
  }
};

/// The two texts that TIME answers as microseconds since 1970; 0 if they are no such numbers.
[[nodiscard]] std::int64_t unix_microseconds(std::string_view seconds, std::string_view rest);

}  // namespace redlock::wire
