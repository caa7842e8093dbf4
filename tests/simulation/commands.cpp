// SPDX-License-Identifier: MIT
#include "simulation/commands.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <string>

namespace redlock::simulation {
namespace {

using Entry = Keyspace::Entry;

constexpr std::string_view wrong_type =
    "WRONGTYPE Operation against a key holding the wrong kind of value";

Entry* entry_of(CommandCall& call, std::string_view key) {
  return call.keys.find(key, call.now_ms(), call.deletes_expired);
}

/// The value of the key in `entry`; null if it is of another type, which is replied.
template <typename Kind>
Kind* value_in(CommandCall& call, Entry& entry) {
  auto* const value = std::get_if<Kind>(&entry.value);
  if (value == nullptr) call.reply.error(wrong_type);
  return value;
}

/// That of the command's key, and an empty one if there is none: to be read, or to be changed.
template <typename Kind>
const Kind* read_value(CommandCall& call) {
  static const Kind none{};
  Entry* const entry = entry_of(call, call.words[1]);
  return entry == nullptr ? &none : value_in<Kind>(call, *entry);
}
template <typename Kind>
Kind* value_or_new(CommandCall& call) {
  Entry* const entry = entry_of(call, call.words[1]);
  return value_in<Kind>(call, entry == nullptr ? call.keys.put(call.words[1], Kind{}) : *entry);
}

void bulk_or_null(Reply& reply, const std::string* text) {
  text != nullptr ? reply.bulk(*text) : reply.null();
}

bool read_score(std::string_view text, double& score) {
  const std::string copy(text);
  char* end = nullptr;
  score = std::strtod(copy.c_str(), &end);
  const bool is_number = score == score;
  return !copy.empty() && end == copy.c_str() + copy.size() && is_number;
}

void wrong_count(CommandCall& call, std::string_view name) {
  call.reply.error("ERR wrong number of arguments for '" + std::string(name) + "' command");
}

// --- any key

void run_exists(CommandCall& call) {
  std::int64_t count = 0;
  std::string_view last;  // which acquire.lua names several times
  bool there = false;
  for (const auto key : call.words.subspan(1)) {
    if (key != last || key.empty()) there = entry_of(call, last = key) != nullptr;
    count += there ? 1 : 0;
  }
  call.reply.integer(count);
}

void run_del(CommandCall& call) {
  std::int64_t count = 0;
  for (const auto key : call.words.subspan(1)) {
    if (entry_of(call, key) == nullptr) continue;
    call.keys.erase(key);
    ++count;
  }
  call.reply.integer(count);
}

void run_type(CommandCall& call) {
  static constexpr std::array<std::string_view, std::variant_size_v<Keyspace::Value>> names{
      "string", "hash", "zset"};
  const Entry* const entry = entry_of(call, call.words[1]);
  call.reply.status(entry == nullptr ? "none" : names[entry->value.index()]);
}

void run_pttl(CommandCall& call) {
  const Entry* const entry = entry_of(call, call.words[1]);
  if (entry == nullptr) return call.reply.integer(-2);
  call.reply.integer(entry->ends_ms ? *entry->ends_ms - call.now_ms() : -1);
}

void run_pexpire(CommandCall& call) {
  std::int64_t lasts = 0;
  if (!read_integer(call.words[2], lasts)) return call.reply.error(not_an_integer);
  if (lasts > std::numeric_limits<std::int64_t>::max() - call.now_ms()) {
    return call.reply.error("ERR invalid expire time in 'pexpire' command");
  }
  Entry* const entry = entry_of(call, call.words[1]);
  if (entry == nullptr) return call.reply.integer(0);
  if (lasts > 0) {
    entry->ends_ms = call.now_ms() + lasts;
  } else {
    call.keys.erase(call.words[1]);
  }
  call.reply.integer(1);
}

// --- strings

/// Whether the key has a text, or nothing.
bool reply_text(CommandCall& call) {
  Entry* const entry = entry_of(call, call.words[1]);
  if (entry == nullptr) return call.reply.null(), true;
  const auto* const text = value_in<std::string>(call, *entry);
  if (text != nullptr) call.reply.bulk(*text);
  return text != nullptr;
}

void run_get(CommandCall& call) {
  static_cast<void>(reply_text(call));
}

struct SetOptions {
  bool get = false;
  bool only_old = false;
  std::optional<std::int64_t> lasts_ms;
};

std::optional<SetOptions> read_set_options(CommandCall& call) {
  SetOptions options;
  const Words words = call.words.subspan(3);
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (is_word(words[i], "GET")) {
      options.get = true;
    } else if (is_word(words[i], "XX")) {
      options.only_old = true;
    } else if (is_word(words[i], "PX") && i + 1 < words.size()) {
      std::int64_t lasts = 0;
      if (!read_integer(words[++i], lasts)) return call.reply.error(not_an_integer), std::nullopt;
      options.lasts_ms = lasts;
    } else {
      return call.reply.error(syntax_error), std::nullopt;
    }
  }
  if (options.lasts_ms && *options.lasts_ms <= 0) {
    return call.reply.error("ERR invalid expire time in 'set' command"), std::nullopt;
  }
  return options;
}

void run_set(CommandCall& call) {
  const auto options = read_set_options(call);
  if (!options) return;
  Entry* const old = entry_of(call, call.words[1]);
  const bool sets = old != nullptr || !options->only_old;
  if (options->get) {
    if (!reply_text(call)) return;
  } else if (sets) {
    call.reply.status("OK");
  } else {
    call.reply.null();
  }
  if (!sets) return;
  Entry& entry = old != nullptr ? *old : call.keys.put(call.words[1], {});
  if (auto* const text = std::get_if<std::string>(&entry.value)) {
    *text = call.words[2];
  } else {
    entry.value = std::string(call.words[2]);
  }
  entry.ends_ms.reset();
  if (options->lasts_ms) entry.ends_ms = call.now_ms() + *options->lasts_ms;
}

void run_incr(CommandCall& call) {
  if (entry_of(call, call.words[1]) == nullptr) call.keys.put(call.words[1], std::string("0"));
  auto* const text = value_or_new<std::string>(call);
  std::int64_t number = 0;
  if (text == nullptr) return;
  if (!read_integer(*text, number)) return call.reply.error(not_an_integer);
  if (number == std::numeric_limits<std::int64_t>::max()) {
    return call.reply.error("ERR increment or decrement would overflow");
  }
  *text = std::to_string(++number);
  call.reply.integer(number);
}

// --- hashes

void run_hget(CommandCall& call) {
  const auto* const hash = read_value<Hash>(call);
  if (hash != nullptr) bulk_or_null(call.reply, hash->find(call.words[2]));
}

void run_hmget(CommandCall& call) {
  const auto* const hash = read_value<Hash>(call);
  if (hash == nullptr) return;
  const Words fields = call.words.subspan(2);
  call.reply.array(fields.size());
  for (const auto field : fields) bulk_or_null(call.reply, hash->find(field));
}

void run_hgetall(CommandCall& call) {
  const auto* const hash = read_value<Hash>(call);
  if (hash == nullptr) return;
  call.reply.map(hash->fields().size());
  for (const auto& [field, value] : hash->fields()) {
    call.reply.bulk(field);
    call.reply.bulk(value);
  }
}

void run_hexists(CommandCall& call) {
  const auto* const hash = read_value<Hash>(call);
  if (hash == nullptr) return;
  call.reply.integer(hash->find(call.words[2]) != nullptr ? 1 : 0);
}

void run_hset(CommandCall& call) {
  if (call.words.size() % 2 != 0) return wrong_count(call, "hset");
  auto* const hash = value_or_new<Hash>(call);
  if (hash == nullptr) return;
  std::int64_t added = 0;
  for (std::size_t i = 2; i < call.words.size(); i += 2) {
    added += hash->set(call.words[i], call.words[i + 1]) ? 1 : 0;
  }
  call.reply.integer(added);
}

void run_hdel(CommandCall& call) {
  auto* const hash = value_or_new<Hash>(call);
  if (hash == nullptr) return;
  std::int64_t deleted = 0;
  for (const auto field : call.words.subspan(2)) deleted += hash->erase(field) ? 1 : 0;
  if (hash->fields().empty()) call.keys.erase(call.words[1]);
  call.reply.integer(deleted);
}

// --- sorted sets

void run_zadd(CommandCall& call) {
  const bool only_less = is_word(call.words[2], "LT");
  const Words pairs = call.words.subspan(only_less ? 3 : 2);
  if (pairs.empty() || pairs.size() % 2 != 0) return call.reply.error(syntax_error);
  std::vector<double> scores(pairs.size() / 2);
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (!read_score(pairs[2 * i], scores[i])) {
      return call.reply.error("ERR value is not a valid float");
    }
  }
  auto* const set = value_or_new<SortedSet>(call);
  if (set == nullptr) return;
  std::int64_t added = 0;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const auto name = pairs[2 * i + 1];
    const double* const old = set->score(name);
    added += old == nullptr ? 1 : 0;
    const bool sets = old == nullptr || (only_less ? scores[i] < *old : scores[i] != *old);
    if (sets) set->set(name, scores[i]);
  }
  call.reply.integer(added);
}

void run_zrem(CommandCall& call) {
  auto* const set = value_or_new<SortedSet>(call);
  if (set == nullptr) return;
  std::int64_t removed = 0;
  for (const auto name : call.words.subspan(2)) removed += set->erase(name) ? 1 : 0;
  if (set->members().empty()) call.keys.erase(call.words[1]);
  call.reply.integer(removed);
}

void run_zrange(CommandCall& call) {
  std::int64_t first = 0;
  std::int64_t last = 0;
  if (!read_integer(call.words[2], first) || !read_integer(call.words[3], last)) {
    return call.reply.error(not_an_integer);
  }
  const auto* const set = read_value<SortedSet>(call);
  if (set == nullptr) return;
  const auto size = static_cast<std::int64_t>(set->members().size());
  first = std::max<std::int64_t>(first < 0 ? first + size : first, 0);
  last = std::min(last < 0 ? last + size : last, size - 1);
  if (first > last) return call.reply.array(0);
  call.reply.array(static_cast<std::size_t>(last - first + 1));
  for (; first <= last; ++first) {
    call.reply.bulk(set->members()[static_cast<std::size_t>(first)].name);
  }
}

void run_zrank(CommandCall& call) {
  const auto* const set = read_value<SortedSet>(call);
  if (set == nullptr) return;
  const auto rank = set->rank(call.words[2]);
  rank ? call.reply.integer(static_cast<std::int64_t>(*rank)) : call.reply.null();
}

// --- no key

void run_time(CommandCall& call) {
  call.reply.array(2);
  call.reply.bulk(std::to_string(call.now_us / 1'000'000));
  call.reply.bulk(std::to_string(call.now_us % 1'000'000));
}

void run_publish(CommandCall& call) {
  call.reply.integer(
      static_cast<std::int64_t>(call.publisher.publish(call.words[1], call.words[2])));
}

// In the order of their names.
constexpr auto rows = std::to_array<CommandRow>({
    {"DEL", -2, true, false, false, run_del},
    {"EXISTS", -2, false, false, false, run_exists},
    {"GET", 2, false, false, false, run_get},
    {"HDEL", -3, true, false, false, run_hdel},
    {"HEXISTS", 3, false, false, false, run_hexists},
    {"HGET", 3, false, false, false, run_hget},
    {"HGETALL", 2, false, false, false, run_hgetall},
    {"HMGET", -3, false, false, false, run_hmget},
    {"HSET", -4, true, true, false, run_hset},
    {"INCR", 2, true, true, false, run_incr},
    {"PEXPIRE", 3, true, false, false, run_pexpire},
    {"PTTL", 2, false, false, false, run_pttl},
    {"PUBLISH", 3, false, false, true, run_publish},
    {"SET", -3, true, true, false, run_set},
    {"TIME", 1, false, false, true, run_time},
    {"TYPE", 2, false, false, false, run_type},
    {"ZADD", -4, true, true, false, run_zadd},
    {"ZRANGE", 4, false, false, false, run_zrange},
    {"ZRANK", 3, false, false, false, run_zrank},
    {"ZREM", -3, true, false, false, run_zrem},
});
static_assert(std::ranges::is_sorted(rows, {}, &CommandRow::name));

constexpr char upper_case(char letter) {
  return letter >= 'a' && letter <= 'z' ? static_cast<char>(letter - 'a' + 'A') : letter;
}

}  // namespace

bool is_word(std::string_view text, std::string_view upper) {
  return std::ranges::equal(text, upper, {}, upper_case);
}

const CommandRow* find_command(std::string_view name) {
  const auto* const exact = std::ranges::lower_bound(rows, name, {}, &CommandRow::name);
  if (exact != rows.end() && exact->name == name) return exact;
  const auto before = [](std::string_view left, std::string_view right) {
    return std::ranges::lexicographical_compare(left, right, {}, upper_case, upper_case);
  };
  const auto* const found = std::ranges::lower_bound(rows, name, before, &CommandRow::name);
  return found != rows.end() && is_word(name, found->name) ? found : nullptr;
}

bool read_integer(std::string_view text, std::int64_t& number) {
  const char* const end = text.data() + text.size();
  const auto [rest, problem] = std::from_chars(text.data(), end, number);
  if (text.empty() || problem != std::errc() || rest != end) return false;
  const std::string_view digits = text.substr(text.front() == '-' ? 1 : 0);
  return digits.front() != '0' || text == "0";
}

}  // namespace redlock::simulation
