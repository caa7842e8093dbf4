// SPDX-License-Identifier: MIT
// The keys on a node as docs/protocol.md lists them ("Keys on a node"): by when each ends, and how
// much it holds. The simulator judges its nodes by this table, and a test real servers.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace redlock::testing {

/// What the lives of some keys depend on.
struct KeyTerms {
  std::chrono::milliseconds max_lease{};
  double drift_factor = 0.01;
};

struct DocumentedKey {
  /// What stands behind the beginning.
  enum class Rest : std::uint8_t { nothing, name, name_and_owner, stripe, random };

  std::string_view begin;
  Rest rest = Rest::nothing;
  std::size_t most = 0;  ///< bytes of a text, fields of a hash; unlimited: one for each waiter
  std::chrono::milliseconds (*longest)(const KeyTerms&) = nullptr;  ///< null: it has no end

  static constexpr std::size_t unlimited = static_cast<std::size_t>(-1);
};

namespace key_lives {

inline std::chrono::milliseconds one_lease(const KeyTerms& terms) {
  return terms.max_lease;
}
/// The longest lease, its drift allowance and a second.
inline std::chrono::milliseconds over_everywhere(const KeyTerms& terms) {
  const double all = static_cast<double>(terms.max_lease.count()) * (1 + terms.drift_factor);
  return std::chrono::milliseconds(static_cast<long>(all) + 3 + 1'000);
}
inline std::chrono::milliseconds of_notes(const KeyTerms& terms) {
  return 4 * terms.max_lease + std::chrono::minutes(1);
}
inline std::chrono::milliseconds of_line(const KeyTerms& /*terms*/) {
  return std::chrono::seconds(3);
}
inline std::chrono::milliseconds a_minute(const KeyTerms& /*terms*/) {
  return std::chrono::minutes(1);
}

}  // namespace key_lives

inline constexpr auto documented_keys = std::to_array<DocumentedKey>({
    {"redlock:lock:", DocumentedKey::Rest::name, 2, key_lives::one_lease},
    {"redlock:line:", DocumentedKey::Rest::name, DocumentedKey::unlimited, key_lives::of_line},
    {"redlock:waiters:", DocumentedKey::Rest::name, DocumentedKey::unlimited, key_lives::of_line},
    {"redlock:forced:", DocumentedKey::Rest::name_and_owner, 0, key_lives::over_everywhere},
    {"redlock:fence:", DocumentedKey::Rest::stripe, 16},
    {"redlock:fence:identity:", DocumentedKey::Rest::random, 32, key_lives::a_minute},
    {"redlock:node", DocumentedKey::Rest::nothing, 9},
    {"redlock:node:notes", DocumentedKey::Rest::nothing, 1, key_lives::of_notes},
    {"redlock:node:change", DocumentedKey::Rest::nothing, 32},
    {"redlock:node:clock", DocumentedKey::Rest::nothing, 5, key_lives::one_lease},
});

/// Whether this may stand behind the beginning.
[[nodiscard]] inline bool is_rest(DocumentedKey::Rest rest, std::string_view text) {
  constexpr std::size_t longest_name = 512;
  const auto all = [](std::string_view digits, std::size_t most, std::string_view alphabet) {
    return !digits.empty() && digits.size() <= most &&
           digits.find_first_not_of(alphabet) == std::string_view::npos;
  };
  const auto is_random = [&](std::string_view digits) {
    return digits.size() == 32 && all(digits, 32, "0123456789abcdef");
  };
  const auto is_name = [](std::string_view braced) {
    return braced.size() > 2 && braced.size() <= longest_name + 2 && braced.front() == '{' &&
           braced.find('}') == braced.size() - 1 && braced.find('{', 1) == std::string_view::npos;
  };
  const std::size_t colon = text.size() > 33 ? text.size() - 33 : 0;
  switch (rest) {
    case DocumentedKey::Rest::nothing:
      return text.empty();
    case DocumentedKey::Rest::name:
      return is_name(text);
    case DocumentedKey::Rest::name_and_owner:
      return colon > 0 && text[colon] == ':' && is_name(text.substr(0, colon)) &&
             is_random(text.substr(colon + 1));
    case DocumentedKey::Rest::stripe:
      return all(text, 5, "0123456789");
    case DocumentedKey::Rest::random:
      return is_random(text);
  }
  return false;
}

/// Null: documents have no such key.
[[nodiscard]] inline const DocumentedKey* documented_key(std::string_view key) {
  const auto* const found = std::ranges::find_if(documented_keys, [&](const DocumentedKey& row) {
    return key.starts_with(row.begin) && is_rest(row.rest, key.substr(row.begin.size()));
  });
  return found == documented_keys.end() ? nullptr : found;
}

}  // namespace redlock::testing
