// SPDX-License-Identifier: MIT
// A number in each kind of resource, incremented by reading it, thinking, and writing it back.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace redlock::storm {

/// Where the resources are.
struct Places {
  std::uint16_t redis_port = 0;
  std::string sqlite_file;
  std::string postgres;  // empty: there is none
};

/// Throws std::exception when the resource itself fails.
class Counter {
 public:
  virtual ~Counter() = default;
  [[nodiscard]] virtual const char* name() const = 0;
  /// Stamps and reads; nothing if the token is too old.
  virtual std::optional<std::int64_t> open(std::uint64_t token) = 0;
  /// False if the token is too old.
  virtual bool write(std::int64_t value, std::uint64_t token) = 0;
};

/// Connects to all of them, and makes what is not there.
std::vector<std::unique_ptr<Counter>> connect(const Places& places);

}  // namespace redlock::storm
