// SPDX-License-Identifier: MIT
#include "wire/adoption.hpp"

#include <charconv>
#include <cstdint>

#include "engine/rules.hpp"
#include "wire/redlock_scripts.hpp"

namespace redlock::wire {
namespace {

constexpr std::string_view written = "written";
constexpr std::string_view resized = "resized ";
constexpr std::string_view another = "another";

const std::string* text_of(const Answer& answer) {
  return answer ? std::get_if<std::string>(&answer->data) : nullptr;
}

/// In milliseconds. If no client looks for that long, the next one begins to wait anew.
std::string notes_kept(const SetTerms& set) {
  const auto kept = 4 * set.max_lease + std::chrono::minutes(1);
  return std::to_string(kept / std::chrono::milliseconds(1));
}

/// In milliseconds.
std::string size_stays(const SetTerms& set) {
  const auto all = engine::rules::between_resizes(set.max_lease, set.drift_factor);
  return std::to_string(std::chrono::ceil<std::chrono::milliseconds>(all).count());
}

const char* field_of(AdoptionStep::Kind kind) {
  switch (kind) {
    case AdoptionStep::Kind::joins:
      return "set";
    case AdoptionStep::Kind::leaves:
      return "former";
    case AdoptionStep::Kind::forms:
      return "forming";
    case AdoptionStep::Kind::asks:
      break;
  }
  return "";
}

}  // namespace

std::string random_id(engine::RandomSource& random) {
  return engine::to_hex(random.next_owner());
}

std::vector<std::string> adoption_command(const SetTerms& set, const engine::Membership& marker,
                                          const AdoptionStep& step, std::string_view promotion,
                                          const StillPending* pending) {
  const engine::SetConfiguration& its = marker.configuration;
  std::vector<std::string> command{"EVAL", std::string(scripts::adopt),
                                   step.change.empty() ? "2" : "3", std::string(set.layout.marker),
                                   std::string(set.layout.notes)};
  if (!step.change.empty()) command.emplace_back(set.layout.change);
  command.insert(command.end(), {step.seen, field_of(step.kind), marker.id,
                                 std::string(set.layout.id), std::to_string(its.members.size()),
                                 NodeMarker::max_lease_text(its.max_lease, its.announced), its.set,
                                 std::to_string(its.epoch), NodeMarker::members_text(its.members),
                                 std::string(promotion), size_stays(set)});
  if (!step.change.empty()) command.push_back(step.change);
  if (pending != nullptr) {
    command.push_back(pending->id);
    command.push_back(notes_kept(set));
    command.push_back(pending->next);
  }
  return command;
}

std::vector<std::string> pending_command(engine::RandomSource& random, const SetTerms& set) {
  // The id is always new: a repeated id would hide that the node has lost it.
  return {"EVAL",
          std::string(scripts::pending),
          "2",
          std::string(set.layout.marker),
          std::string(set.layout.notes),
          random_id(random),
          notes_kept(set)};
}

std::vector<std::string> look_command(const SetTerms& set) {
  return {"EXISTS", std::string(set.layout.marker), std::string(set.layout.notes)};
}

bool found_any(const Answer& answer) {
  const auto* const count = answer ? std::get_if<std::int64_t>(&answer->data) : nullptr;
  return count != nullptr && *count > 0;
}

bool was_adopted(const Answer& answer) {
  const std::string* const text = text_of(answer);
  return text != nullptr && *text == written;
}

std::optional<std::chrono::milliseconds> stays_for(const Answer& answer) {
  const std::string* const text = text_of(answer);
  if (text == nullptr || !text->starts_with(resized)) return std::nullopt;
  std::int64_t left = 0;
  std::from_chars(text->data() + resized.size(), text->data() + text->size(), left);
  return std::chrono::milliseconds(left);
}

std::vector<std::string> change_command(const SetTerms& set) {
  return {"GET", std::string(set.layout.change)};
}

bool promised_another(const Answer& answer) {
  const std::string* const text = text_of(answer);
  return text != nullptr && *text == another;
}

std::optional<std::string> pending_id(const Answer& answer) {
  const std::string* const text = text_of(answer);
  if (text == nullptr || *text == written) return std::nullopt;
  return *text;
}

}  // namespace redlock::wire
