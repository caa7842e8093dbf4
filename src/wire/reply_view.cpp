// SPDX-License-Identifier: MIT
// Walking a flat reply: an element ends where the last of its own elements ends.
#include "wire/reply_view.hpp"

namespace redlock::wire {

const ReplyPart* ReplyView::after(const ReplyPart* part) {
  if (part->kind != Kind::array) return part + 1;
  const ReplyPart* next = part + 1;
  for (std::int64_t i = 0; i < part->number; ++i) next = after(next);
  return next;
}

bool ReplyView::integer_at(std::size_t index, std::int64_t& value) const {
  if (index >= size()) return false;
  ReplyView element = first();
  for (std::size_t i = 0; i < index; ++i) element = element.next();
  if (!element.is(Kind::integer)) return false;
  value = element.integer();
  return true;
}

Value ReplyView::to_value() const {
  switch (kind()) {
    case Kind::nil:
      return {Value::Nil{}};
    case Kind::integer:
      return {integer()};
    case Kind::text:
      return {std::string(text())};
    case Kind::error:
      return {Value::ErrorText{std::string(text())}};
    case Kind::array:
      break;
  }
  std::vector<Value> elements;
  elements.reserve(size());
  ReplyView element = first();
  for (std::size_t i = 0; i < size(); ++i, element = element.next()) {
    elements.push_back(element.to_value());
  }
  return {std::move(elements)};
}

}  // namespace redlock::wire
