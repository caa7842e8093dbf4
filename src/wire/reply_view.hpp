// SPDX-License-Identifier: MIT
// A decoded RESP reply as the reader left it: a flat list of parts, parents before children, with
// all text in one buffer, so that decoding allocates nothing once the buffers have grown. A view is
// cheap to copy and valid until the reader is asked for its next reply.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "wire/value.hpp"

namespace redlock::wire {

struct ReplyPart {
  enum class Kind : std::uint8_t { nil, integer, text, error, array };
  Kind kind = Kind::nil;
  std::int64_t number = 0;  ///< the integer, or how many elements the array has
  std::size_t offset = 0;   ///< of the text or error
  std::size_t length = 0;
};

class ReplyView {
 public:
  using Kind = ReplyPart::Kind;

  ReplyView(const ReplyPart* part, const char* texts) : part_(part), texts_(texts) {}

  [[nodiscard]] Kind kind() const { return part_->kind; }
  [[nodiscard]] bool is(Kind kind) const { return part_->kind == kind; }
  [[nodiscard]] std::int64_t integer() const { return part_->number; }
  [[nodiscard]] std::string_view text() const { return {texts_ + part_->offset, part_->length}; }
  /// How many elements; 0 for what is no array.
  [[nodiscard]] std::size_t size() const {
    return is(Kind::array) ? static_cast<std::size_t>(part_->number) : 0;
  }

  /// Walks through the elements of an array: first() and then next() from each.
  [[nodiscard]] ReplyView first() const { return {part_ + 1, texts_}; }
  [[nodiscard]] ReplyView next() const { return {after(part_), texts_}; }

  /// An element's integer, if the reply is an array that has it and it is an integer.
  [[nodiscard]] bool integer_at(std::size_t index, std::int64_t& value) const;

  [[nodiscard]] Value to_value() const;

 private:
  // Recursion goes as deep as hiredis lets replies nest: 7.
  static const ReplyPart* after(const ReplyPart* part);

  const ReplyPart* part_;
  const char* texts_;
};

}  // namespace redlock::wire
