// SPDX-License-Identifier: MIT
#include "wire/adoption.hpp"

#include "wire/redlock_scripts.hpp"

namespace redlock::wire {
namespace {

bool says(const Answer& answer, std::string_view word) {
  const auto* const text = answer ? std::get_if<std::string>(&answer->data) : nullptr;
  return text != nullptr && *text == word;
}

}  // namespace

std::string random_id(engine::RandomSource& random) {
  return engine::to_hex(random.next_owner());
}

std::vector<std::string> adoption_command(engine::RandomSource& random, const SetTerms& set,
                                          std::string_view name, std::string_view promotion,
                                          std::string_view client) {
  std::vector<std::string> command{"EVAL",
                                   std::string(scripts::adopt),
                                   "2",
                                   std::string(set.layout.marker),
                                   std::string(set.layout.notes),
                                   random_id(random),
                                   std::string(set.layout.id),
                                   std::to_string(set.nodes),
                                   std::to_string(set.max_lease.count()),
                                   std::string(name),
                                   std::string(promotion)};
  if (!client.empty()) command.emplace_back(client);
  return command;
}

std::vector<std::string> note_command(std::string_view client, const SetTerms& set) {
  // A client that cannot refresh its note for so long begins to wait anew.
  const auto kept = 4 * set.max_lease + std::chrono::minutes(1);
  return {"EVAL",
          std::string(scripts::note),
          "2",
          std::string(set.layout.marker),
          std::string(set.layout.notes),
          std::string(client),
          std::to_string(kept / std::chrono::milliseconds(1))};
}

std::vector<std::string> look_command(const SetTerms& set) {
  return {"EXISTS", std::string(set.layout.marker), std::string(set.layout.notes)};
}

bool found_any(const Answer& answer) {
  const auto* const count = answer ? std::get_if<std::int64_t>(&answer->data) : nullptr;
  return count != nullptr && *count > 0;
}

bool was_adopted(const Answer& answer) {
  return says(answer, "written");
}

bool has_forgotten_since(const Answer& answer) {
  return says(answer, "anew");
}

}  // namespace redlock::wire
