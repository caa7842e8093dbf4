// SPDX-License-Identifier: MIT
// The commands of Redis that work on keys, as Redis 7 has them, as far as scripts and clients of
// the library need them. conformance_test.cpp compares them with real servers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "simulation/keyspace.hpp"
#include "simulation/reply.hpp"

namespace redlock::simulation {

/// The connections that are subscribed to channels of the node.
class Publisher {
 public:
  /// How many it has reached.
  virtual std::size_t publish(std::string_view channel, std::string_view text) = 0;

 protected:
  ~Publisher() = default;
};

/// A command's name and its arguments.
using Words = std::span<const std::string_view>;

/// One command, and what it works on.
struct CommandCall {
  Words words;
  Keyspace& keys;
  std::int64_t now_us = 0;
  bool deletes_expired = true;  ///< a replica leaves that to its master
  Publisher& publisher;
  Reply& reply;

  [[nodiscard]] std::int64_t now_ms() const { return now_us / 1'000; }
};

struct CommandRow {
  std::string_view name;
  int arity = 0;  ///< with the name; negative: at least so many
  bool writes = false;
  bool may_grow = false;       ///< refused at maxmemory
  bool while_loading = false;  ///< runs while the node reads its data
  void (*run)(CommandCall& call) = nullptr;

  [[nodiscard]] bool takes(std::size_t words) const {
    return arity < 0 ? words >= static_cast<std::size_t>(-arity)
                     : words == static_cast<std::size_t>(arity);
  }
};

/// Null if there is none of that name, whose letters may be of either case.
[[nodiscard]] const CommandRow* find_command(std::string_view name);

/// As Redis reads an integer: no sign but a minus, no zeros in front, nothing around it.
[[nodiscard]] bool read_integer(std::string_view text, std::int64_t& number);
/// Whether both are the same word, letters of either case being the same.
[[nodiscard]] bool is_word(std::string_view text, std::string_view upper);

inline constexpr std::string_view not_an_integer = "ERR value is not an integer or out of range";
inline constexpr std::string_view syntax_error = "ERR syntax error";

}  // namespace redlock::simulation
