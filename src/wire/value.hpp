// SPDX-License-Identifier: MIT
// A RESP value that owns its parts, as the answers to questions are handed out.
#pragma once

#include <cstdint>
#include <string>
#include <tl/expected.hpp>
#include <variant>
#include <vector>

#include "engine/messages.hpp"

namespace redlock::wire {

/// A RESP value, as far as questions to a node need it.
struct Value {
  struct Nil {};
  struct ErrorText {
    std::string text;
  };
  std::variant<Nil, std::int64_t, std::string, ErrorText, std::vector<Value>> data;
};

/// The answer to a question: the value (which may be an error reply), or why there is none.
using Answer = tl::expected<Value, engine::Unavailable>;

}  // namespace redlock::wire
