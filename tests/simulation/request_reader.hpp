// SPDX-License-Identifier: MIT
// Reads what clients send to a server, RESP arrays of bulk strings, from bytes that arrive in
// pieces cut anywhere. It shares no code with the product, whose bytes it checks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::simulation {

class RequestReader {
 public:
  enum class Outcome : std::uint8_t { incomplete, complete, broken };
  using Request = std::vector<std::string_view>;

  void feed(std::string_view bytes);
  [[nodiscard]] Outcome next();
  /// After `complete`, until the next call: the command's name and its arguments; never empty.
  [[nodiscard]] const Request& request() const { return request_; }

 private:
  /// Of a line "<type><number>\r\n" at `at`, which moves behind it.
  [[nodiscard]] Outcome read_number(char type, std::size_t most, std::size_t& at,
                                    std::size_t& number) const;

  std::string bytes_;
  std::size_t begin_ = 0;  // of the request that is being read
  Request request_;
};

}  // namespace redlock::simulation
