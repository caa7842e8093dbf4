// SPDX-License-Identifier: MIT
#include "simulation/node_data.hpp"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>

#include "simulation/documented.hpp"
#include "support/documented_keys.hpp"
#include "wire/key_layout.hpp"
#include "wire/node_marker.hpp"

namespace redlock::simulation {
namespace {

using wire::redlock_layout;

std::string fence_key(std::uint32_t stripe) {
  return std::string(redlock_layout.fence_prefix) + std::to_string(stripe);
}

template <typename Number>
bool read(std::string_view text, Number& number, int base = 10) {
  const char* const end = text.data() + text.size();
  const auto [rest, problem] = std::from_chars(text.data(), end, number, base);
  return problem == std::errc() && rest == end;
}

bool read_owner(std::string_view text, engine::OwnerId& owner) {
  return text.size() == 32 && read(text.substr(0, 16), owner.bits[0], 16) &&
         read(text.substr(16), owner.bits[1], 16);
}

const Hash* hash_of(const Keyspace::Entry* entry) {
  return entry == nullptr ? nullptr : std::get_if<Hash>(&entry->value);
}

}  // namespace

std::string_view NodeData::name_of(std::string_view key) {
  constexpr std::string_view prefix = redlock_layout.lock_prefix;
  if (!key.starts_with(prefix) || !key.ends_with("}")) return {};
  return key.substr(prefix.size() + 1, key.size() - prefix.size() - 2);
}

std::optional<NodeData::Lock> NodeData::lock(std::string_view name, std::int64_t now_ms) const {
  const auto* const entry = keys.find(redlock_layout.lock(name), now_ms);
  if (entry == nullptr) return std::nullopt;
  Lock lock{.owner = {}, .count = 0, .ends_ms = entry->ends_ms};
  const Hash* const hash = hash_of(entry);
  lock.foreign_type = hash == nullptr;
  if (hash == nullptr) return lock;
  for (const auto& [field, value] : hash->fields()) {
    if (read_owner(field, lock.owner) && read(value, lock.count)) break;
  }
  return lock;
}

bool NodeData::is_free(std::string_view name, std::int64_t now_ms) const {
  return keys.find(redlock_layout.lock(name), now_ms) == nullptr;
}

bool NodeData::holds(std::string_view name, const engine::OwnerId& owner,
                     std::int64_t now_ms) const {
  const Hash* const hash = hash_of(keys.find(redlock_layout.lock(name), now_ms));
  const auto digits = engine::hex_digits(owner);
  return hash != nullptr && hash->find({digits.data(), digits.size()}) != nullptr;
}

std::vector<std::string_view> NodeData::locks(std::int64_t now_ms) const {
  std::vector<std::string_view> names;
  for (const auto& [key, entry] : keys.entries()) {
    const std::string_view name = name_of(key);
    if (!name.empty() && keys.find(key, now_ms) != nullptr) names.push_back(name);
  }
  return names;
}

std::optional<NodeData::ForcedOut> NodeData::forced_out(std::string_view key,
                                                        std::int64_t now_ms) const {
  engine::OwnerId owner;
  const bool names_owner = key.starts_with(redlock_layout.forced_prefix) && key.size() > 32 &&
                           read_owner(key.substr(key.size() - 32), owner);
  const auto* const entry = names_owner ? keys.find(key, now_ms) : nullptr;
  if (entry == nullptr || !entry->ends_ms) return std::nullopt;
  return ForcedOut{owner, *entry->ends_ms};
}

std::vector<NodeData::Waiter> NodeData::waiters(std::string_view name, std::int64_t now_ms) const {
  std::vector<Waiter> all;
  const auto* const entry = keys.find(redlock_layout.line(name), now_ms);
  const auto* const line = entry == nullptr ? nullptr : std::get_if<SortedSet>(&entry->value);
  if (line == nullptr) return all;
  const Hash* const records = hash_of(keys.find(redlock_layout.waiters(name), now_ms));
  for (const auto& member : line->members()) {
    const std::size_t colon = member.name.find(':');
    Waiter waiter{member.name, member.name.substr(0, colon), 0, member.score};
    if (const auto* record = records != nullptr ? records->find(member.name) : nullptr) {
      read(std::string_view(*record).substr(0, record->find(' ')), waiter.alive_until_ms);
    }
    if (read(std::string_view(member.name).substr(colon + 1), waiter.line)) all.push_back(waiter);
  }
  return all;
}

NodeData::LineRecords NodeData::line_records(std::string_view name, std::int64_t now_ms) const {
  LineRecords records;
  const Hash* const hash = hash_of(keys.find(redlock_layout.waiters(name), now_ms));
  if (hash == nullptr) return records;
  records.fields = hash->fields().size();
  for (const auto& [field, value] : hash->fields()) {
    const std::size_t space = value.find(' ');
    if (field.starts_with('@') || space == std::string::npos) continue;
    const bool is_turn = field.starts_with(redlock_layout.lock_prefix);
    const bool polls = value.substr(space).starts_with(" p ");
    std::int64_t& until = is_turn ? records.turn_until
                          : polls ? records.polling_until
                                  : records.subscribed_until;
    const std::string_view text(value);
    std::int64_t number = 0;
    std::int64_t turn = 0;
    if (!read(is_turn ? text.substr(space + 1) : text.substr(0, space), number)) continue;
    // As if all turns were short.
    if (polls && read(text.substr(space + 3), turn)) {
      number -=
          documented::poller_forgotten_within_ms(turn) - documented::poller_forgotten_within_ms(0);
    }
    until = std::max(until, number);
  }
  return records;
}

std::optional<NodeData::Turn> NodeData::turn(std::string_view name, std::int64_t now_ms) const {
  const Hash* const hash = hash_of(keys.find(redlock_layout.waiters(name), now_ms));
  const auto* const text = hash == nullptr ? nullptr : hash->find(redlock_layout.lock(name));
  if (text == nullptr) return std::nullopt;
  const std::size_t space = text->find(' ');
  Turn turn{text->substr(0, space)};
  read(std::string_view(*text).substr(space + 1), turn.until_ms);
  return turn;
}

bool NodeData::line_is_whole(std::string_view name, std::int64_t now_ms) const {
  const auto there = waiters(name, now_ms);
  const Hash* const records = hash_of(keys.find(redlock_layout.waiters(name), now_ms));
  const auto known = [&](const Waiter& waiter) {
    return records != nullptr && records->find(waiter.name) != nullptr;
  };
  if (!std::ranges::all_of(there, known)) return false;
  return records == nullptr || std::ranges::all_of(records->fields(), [&](const Hash::Field& each) {
           const std::string_view field = each.first;
           return field.starts_with(redlock_layout.lock_prefix) ||
                  std::ranges::count(there, field.substr(field.starts_with('@') ? 1 : 0),
                                     &Waiter::name);
         });
}

bool NodeData::has_line(std::string_view name, std::int64_t now_ms) const {
  return keys.find(redlock_layout.line(name), now_ms) != nullptr ||
         keys.find(redlock_layout.waiters(name), now_ms) != nullptr;
}

engine::Token NodeData::fence(std::string_view key) const {
  if (!key.starts_with(redlock_layout.fence_prefix)) return 0;
  const auto* const entry = keys.find(key, 0);
  const auto* const text = entry == nullptr ? nullptr : std::get_if<std::string>(&entry->value);
  engine::Token token = 0;
  return text != nullptr && read(*text, token) ? token : 0;
}

bool NodeData::is_marked(std::int64_t now_ms) const {
  return keys.find(redlock_layout.marker, now_ms) != nullptr;
}

wire::NodeMarker NodeData::marker() const {
  const auto* const entry = keys.find(redlock_layout.marker, 0);
  const auto* const fields = entry == nullptr ? nullptr : std::get_if<Hash>(&entry->value);
  if (fields == nullptr) return {};
  const auto field = [&](std::string_view name) {
    const std::string* const text = fields->find(name);
    return text == nullptr ? std::string() : *text;
  };
  wire::NodeMarker marker{};
  marker.set_name = field("set");
  marker.epoch = field("epoch");
  marker.max_lease_ms = field("max_lease_ms");
  return marker;
}

void NodeData::forget_locks() {
  std::vector<std::string> forgotten;
  for (const auto& entry : keys.entries()) {
    if (entry.first.starts_with(redlock_layout.lock_prefix)) forgotten.push_back(entry.first);
  }
  for (const std::string& key : forgotten) keys.erase(key);
}

void NodeData::set_marker(std::initializer_list<Hash::Field> fields) {
  Hash marker;
  for (const auto& [field, value] : fields) {
    if (!value.empty()) marker.set(field, value);
  }
  keys.put(redlock_layout.marker, std::move(marker));
}

void NodeData::put_foreign(std::string_view name) {
  keys.put(redlock_layout.lock(name), std::string("foreign"));
}

void NodeData::remove_foreign(std::string_view name) {
  const std::string key = redlock_layout.lock(name);
  const auto found = keys.entries().find(key);
  if (found != keys.entries().end() && hash_of(&found->second) == nullptr) keys.erase(key);
}

void NodeData::put_fence(std::uint32_t stripe, Keyspace::Value value) {
  keys.put(fence_key(stripe), std::move(value));
}

void NodeData::put_dead_waiter(std::string_view name, std::uint32_t number, std::int64_t now_us) {
  const std::int64_t now_ms = now_us / 1'000;
  const auto of_line = [&](const std::string& key, Keyspace::Value none) -> Keyspace::Value& {
    auto* entry = keys.find(key, now_ms, false);
    if (entry == nullptr) entry = &keys.put(key, std::move(none));
    entry->ends_ms = now_ms + testing::key_lives::of_line({}).count();
    return entry->value;
  };
  const std::string waiter = fmt::format("dead:{}", number);
  auto& line = std::get<SortedSet>(of_line(redlock_layout.line(name), SortedSet()));
  line.set(waiter, static_cast<double>(now_us - 60'000'000 + number));
  auto& records = std::get<Hash>(of_line(redlock_layout.waiters(name), Hash()));
  records.set(waiter, fmt::format("{} w 20", now_ms - 1));
}

void NodeData::lose_fence(std::uint32_t stripe) {
  keys.erase(fence_key(stripe));
}

}  // namespace redlock::simulation
