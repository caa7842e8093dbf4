// SPDX-License-Identifier: MIT
// The data of one node: keys with strings, hashes and sorted sets, each with an expiry by the
// node's clock, which the caller shows. What commands make of them is in commands.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace redlock::simulation {

/// In the order in which the fields came, as Redis has a small one.
class Hash {
 public:
  using Field = std::pair<std::string, std::string>;

  [[nodiscard]] const std::string* find(std::string_view field) const;
  /// Whether the field is new.
  bool set(std::string_view field, std::string_view value);
  bool erase(std::string_view field);
  [[nodiscard]] const std::vector<Field>& fields() const { return fields_; }
  bool operator==(const Hash&) const = default;

 private:
  std::vector<Field> fields_;
};

/// By score, and those of one score by their bytes.
class SortedSet {
 public:
  struct Member {
    double score = 0;
    std::string name;
    bool operator==(const Member&) const = default;
  };

  /// Null: it has no such member.
  [[nodiscard]] const double* score(std::string_view name) const;
  [[nodiscard]] std::optional<std::size_t> rank(std::string_view name) const;
  /// The member has this score now, whatever it had.
  void set(std::string_view name, double score);
  bool erase(std::string_view name);
  [[nodiscard]] const std::vector<Member>& members() const { return members_; }
  bool operator==(const SortedSet&) const = default;

 private:
  std::vector<Member> members_;
};

class Keyspace {
 public:
  using Value = std::variant<std::string, Hash, SortedSet>;
  struct Entry {
    Value value;
    std::optional<std::int64_t> ends_ms = std::nullopt;  ///< none: it never expires
    bool operator==(const Entry&) const = default;
  };

  /// Null if nobody has the key, or it is over by then.
  [[nodiscard]] const Entry* find(std::string_view key, std::int64_t now_ms) const;
  /// The same, and deletes the key if it is over and `deletes`: it does not come back when the
  /// clock is set back.
  [[nodiscard]] Entry* find(std::string_view key, std::int64_t now_ms, bool deletes);
  Entry& put(std::string_view key, Value value);
  bool erase(std::string_view key);
  void clear() { entries_.clear(); }
  /// In the order of keys, some of them perhaps over.
  [[nodiscard]] const std::map<std::string, Entry, std::less<>>& entries() const {
    return entries_;
  }

 private:
  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace redlock::simulation
