// SPDX-License-Identifier: MIT
// The text that INFO answers: lines of key:value.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace redlock::wire {

/// The first two numbers of "7.0.15".
struct ServerVersion {
  std::int64_t major = 0;
  std::int64_t minor = 0;

  [[nodiscard]] static ServerVersion parse(std::string_view text);
  [[nodiscard]] bool at_least(int wanted_major, int wanted_minor) const {
    return major != wanted_major ? major > wanted_major : minor >= wanted_minor;
  }
  /// Whether it can hold locks at all.
  [[nodiscard]] bool supported() const { return at_least(6, 2); }
  /// Whether scripts may have flags.
  [[nodiscard]] bool has_script_flags() const { return at_least(7, 0); }
};

class InfoText {
 public:
  explicit InfoText(std::string_view text) : text_(text) {}

  /// The value, empty if there is no such line.
  [[nodiscard]] std::string_view value(std::string_view key) const;
  /// The same as a number, 0 if it is none.
  [[nodiscard]] std::int64_t number(std::string_view key) const;
  [[nodiscard]] ServerVersion version() const;
  /// Clamped to what can be: a damaged number, or that of a clock that was put back, must fit into
  /// nanoseconds.
  [[nodiscard]] std::chrono::seconds uptime() const;
  [[nodiscard]] bool is_replica() const;
  [[nodiscard]] bool is_sentinel() const;
  [[nodiscard]] bool is_in_cluster() const;
  /// It was promoted from a replica, as far as the node remembers.
  [[nodiscard]] bool was_replica() const;
  /// Another one with every start of the server and with every promotion; empty if not known.
  [[nodiscard]] std::string promotion() const;

 private:
  std::string_view text_;
};

/// The two texts that TIME answers as microseconds since 1970; 0 if they are no such numbers.
[[nodiscard]] std::int64_t unix_microseconds(std::string_view seconds, std::string_view rest);

}  // namespace redlock::wire
