// SPDX-License-Identifier: MIT
// The calls of this client that wait for the same name, in the order in which they came, but for
// those that gave way: the client's line for it. Those that wait in order and those that barge have
// different lines. Only the first calls of a line take part at the nodes, so a crowd in one program
// costs the nodes no more than these.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/types.hpp"

namespace redlock::engine {

class Lines {
 public:
  /// How many calls of a line take part at the nodes.
  explicit Lines(std::size_t taking_part) : taking_part_(taking_part) {}

  /// A lock that is given back goes to the next call of this client that barges, unless a multiple
  /// of this fell into the time for which it was held: others, which ask after random pauses, are
  /// to find it free.
  static constexpr Duration passing_on = std::chrono::milliseconds(100);
  /// Whether the lock goes on, after it was held since then.
  static bool passes_on(Instant since, Instant now) {
    return now.time_since_epoch() / passing_on == since.time_since_epoch() / passing_on;
  }

  /// Whether the call takes part at the nodes at once.
  bool join(const Name& name, RequestId request) {
    auto& line = lines_[*name];
    if (line.calls.empty()) {
      line.number = request;  // no other line has had it
      names_[request] = name;
    }
    line.calls.push_back(request);
    return line.calls.size() <= taking_part_;
  }
  /// The call has ended. Returns the one that takes part from now on in its place, if it did and
  /// there is one.
  std::optional<RequestId> leave(const Name& name, RequestId request) {
    const auto found = lines_.find(*name);
    auto& calls = found->second.calls;
    const auto place = std::ranges::find(calls, request);
    const bool took_part = static_cast<std::size_t>(place - calls.begin()) < taking_part_;
    calls.erase(place);
    if (took_part && calls.size() >= taking_part_) return calls[taking_part_ - 1];
    if (calls.empty()) {
      names_.erase(found->second.number);
      lines_.erase(found);
    }
    return {};
  }
  /// The call is the first one from now on; those that were before it go behind the others.
  void bring_forward(const Name& name, RequestId request) {
    auto& calls = lines_.find(*name)->second.calls;
    std::rotate(calls.begin(), std::ranges::find(calls, request), calls.end());
  }
  /// The first call of this name, if there is one; or one behind it.
  [[nodiscard]] std::optional<RequestId> first(const Name& name, std::size_t behind = 0) const {
    if (lines_.empty()) return {};
    const auto found = lines_.find(*name);
    if (found == lines_.end() || found->second.calls.size() <= behind) return {};
    return found->second.calls[behind];
  }
  /// The number that nodes know a line by, which must exist; and the first call of such a line.
  [[nodiscard]] std::uint64_t number(const Name& name) const {
    return lines_.find(*name)->second.number;
  }
  [[nodiscard]] std::optional<RequestId> first_of(std::uint64_t number) const {
    const auto found = names_.find(number);
    return found == names_.end() ? std::nullopt : first(found->second);
  }
  /// A call of this line, which exists, has got the lock while others of it wait.
  void granted(const Name& name, GrantId grant) { lines_.find(*name)->second.newest = grant; }
  /// The newest of these grants, of a line that exists; 0 if there was none.
  [[nodiscard]] GrantId newest_grant(std::uint64_t number) const {
    return lines_.find(*names_.find(number)->second)->second.newest;
  }

 private:
  struct Line {
    std::uint64_t number = 0;
    std::vector<RequestId> calls;
    GrantId newest = 0;
  };

  std::size_t taking_part_;
  std::unordered_map<std::string, Line> lines_;
  std::unordered_map<std::uint64_t, Name> names_;  // by their lines' numbers
};

}  // namespace redlock::engine
