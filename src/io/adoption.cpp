// SPDX-License-Identifier: MIT
#include "io/adoption.hpp"

#include "io/key_layout.hpp"
#include "redlock_scripts.hpp"

namespace redlock::io {

std::vector<std::string> adoption_command(engine::RandomSource& random, const NodeSet& set,
                                          std::string_view vouched_run) {
  const std::uint64_t high = random.next();
  const engine::OwnerId id{{high, random.next()}};
  return {"EVAL",
          std::string(scripts::adopt),
          "1",
          std::string(KeyLayout::marker),
          engine::to_hex(id),
          std::string(KeyLayout::id),
          std::to_string(set.nodes),
          std::to_string(set.max_lease.count()),
          std::string(vouched_run)};
}

bool was_adopted(const Answer& answer) {
  const auto* const text = answer ? std::get_if<std::string>(&answer->data) : nullptr;
  return text != nullptr && *text == "written";
}

std::string marker_field(const Answer& answer, std::string_view field) {
  const auto* const fields = answer ? std::get_if<std::vector<Value>>(&answer->data) : nullptr;
  if (fields == nullptr) return {};
  for (std::size_t i = 0; i + 1 < fields->size(); i += 2) {
    const auto* const name = std::get_if<std::string>(&(*fields)[i].data);
    const auto* const value = std::get_if<std::string>(&(*fields)[i + 1].data);
    if (name != nullptr && value != nullptr && *name == field) return *value;
  }
  return {};
}

}  // namespace redlock::io
