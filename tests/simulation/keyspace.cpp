// SPDX-License-Identifier: MIT
#include "simulation/keyspace.hpp"

#include <algorithm>
#include <tuple>

namespace redlock::simulation {

const std::string* Hash::find(std::string_view field) const {
  const auto found = std::ranges::find(fields_, field, &Field::first);
  return found == fields_.end() ? nullptr : &found->second;
}

bool Hash::set(std::string_view field, std::string_view value) {
  const auto found = std::ranges::find(fields_, field, &Field::first);
  const bool is_new = found == fields_.end();
  if (is_new) {
    fields_.emplace_back(field, value);
  } else {
    found->second = value;
  }
  return is_new;
}

bool Hash::erase(std::string_view field) {
  return std::erase_if(fields_, [&](const Field& each) { return each.first == field; }) > 0;
}

const double* SortedSet::score(std::string_view name) const {
  const auto found = std::ranges::find(members_, name, &Member::name);
  return found == members_.end() ? nullptr : &found->score;
}

std::optional<std::size_t> SortedSet::rank(std::string_view name) const {
  const auto found = std::ranges::find(members_, name, &Member::name);
  if (found == members_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - members_.begin());
}

void SortedSet::set(std::string_view name, double score) {
  Member member{score, std::string(name)};
  erase(name);
  const auto before = [](const Member& left, const Member& right) {
    return std::tie(left.score, left.name) < std::tie(right.score, right.name);
  };
  const auto at = std::ranges::upper_bound(members_, member, before);
  members_.insert(at, std::move(member));
}

bool SortedSet::erase(std::string_view name) {
  return std::erase_if(members_, [&](const Member& each) { return each.name == name; }) > 0;
}

const Keyspace::Entry* Keyspace::find(std::string_view key, std::int64_t now_ms) const {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return nullptr;
  // Redis: a key is gone when the clock has passed its time, not when it has reached it.
  const auto& ends = found->second.ends_ms;
  return ends && now_ms > *ends ? nullptr : &found->second;
}

Keyspace::Entry* Keyspace::find(std::string_view key, std::int64_t now_ms, bool deletes) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return nullptr;
  const auto& ends = found->second.ends_ms;
  if (!ends || now_ms <= *ends) return &found->second;
  if (deletes) entries_.erase(found);
  return nullptr;
}

Keyspace::Entry& Keyspace::put(std::string_view key, Value value) {
  const auto at = entries_.lower_bound(key);
  if (at != entries_.end() && at->first == key) {
    at->second = {std::move(value)};
    return at->second;
  }
  return entries_.emplace_hint(at, std::string(key), Entry{std::move(value)})->second;
}

bool Keyspace::erase(std::string_view key) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return false;
  entries_.erase(found);
  return true;
}

}  // namespace redlock::simulation
