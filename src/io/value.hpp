// SPDX-License-Identifier: MIT
// A RESP value that owns its parts, as the answers to questions are handed out.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace redlock::io {

/// A RESP value, as far as questions to a node need it.
struct Value {
  struct Nil {};
  struct ErrorText {
    std::string text;
  };
  std::variant<Nil, std::int64_t, std::string, ErrorText, std::vector<Value>> data;
};

}  // namespace redlock::io
