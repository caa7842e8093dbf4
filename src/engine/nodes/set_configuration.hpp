// SPDX-License-Identifier: MIT
// What a set is, as the markers of its nodes say: its members and its longest lease, in an epoch
// that grows whenever one of these changes.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::engine {

/// What a client's options allow of any duration. Far beyond any use, and far from where
/// nanoseconds overflow.
inline constexpr std::chrono::milliseconds longest_max_lease = std::chrono::hours(24 * 365);
/// The longest lease of a set, unless its operator says otherwise.
inline constexpr std::chrono::milliseconds usual_max_lease{60'000};

struct Member {
  std::string id;       ///< random; the member keeps it when it loses its data
  std::string address;  ///< at which clients reach it, as the operator who adopted it wrote it
  friend bool operator==(const Member&, const Member&) = default;
};

/// How a member is reached: redis, rediss or unix. Clients follow to no other one: from TLS to none
/// would betray the password, and the other way needs options of its own.
[[nodiscard]] inline std::string_view scheme_of(std::string_view address) {
  const auto end = address.find("://");
  return address.substr(0, end == std::string_view::npos ? 0 : end);
}

struct SetConfiguration {
  std::string set;          ///< random
  std::uint64_t epoch = 1;  ///< of two configurations of one set the later one has the larger
  std::vector<Member> members;
  std::chrono::milliseconds max_lease{};  ///< no client may take a longer lease; zero: not read
  std::chrono::milliseconds announced{};  ///< a longer one that is not in force yet; zero: none

  /// The longest that there may be as long as this is the latest configuration, and in the next one
  /// before everybody knows that.
  [[nodiscard]] std::chrono::milliseconds longest_lease() const {
    return std::max(max_lease, announced);
  }
  [[nodiscard]] bool has_leases_of(const SetConfiguration& other) const {
    return max_lease == other.max_lease && announced == other.announced;
  }
  [[nodiscard]] const Member* at(const std::string& address) const {
    const auto found = std::ranges::find(members, address, &Member::address);
    return found == members.end() ? nullptr : &*found;
  }
  [[nodiscard]] bool has(const std::string& id) const {
    return std::ranges::find(members, id, &Member::id) != members.end();
  }
  [[nodiscard]] std::vector<std::string> addresses() const {
    std::vector<std::string> all;
    for (const Member& member : members) all.push_back(member.address);
    return all;
  }
  /// As a message names it: a node grants nothing that names another one.
  [[nodiscard]] std::string name() const { return set + ":" + std::to_string(epoch); }
  /// Whether it is of the same set, and was made after the other.
  [[nodiscard]] bool follows(const SetConfiguration& other) const {
    return set == other.set && epoch > other.epoch;
  }
  friend bool operator==(const SetConfiguration&, const SetConfiguration&) = default;
};

/// What the marker of one node says.
struct Membership {
  std::string id;  ///< the node's own, one of the members'
  SetConfiguration configuration;
};

}  // namespace redlock::engine
