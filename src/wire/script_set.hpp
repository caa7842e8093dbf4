// SPDX-License-Identifier: MIT
// The scripts as one node has them: the text that suits its version, and the digests that it gave
// them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "wire/script.hpp"

namespace redlock::wire {

class ScriptSet {
 public:
  /// Servers from Redis 7 on (Valkey, Redict) let a script declare that it may run at maxmemory.
  /// Older ones do not know the line, and do not need it: see hold.lua.
  enum class Flags : std::uint8_t { understood, unknown };

  explicit ScriptSet(Flags flags) : flags_(flags) {}

  [[nodiscard]] std::string_view source(Script script) const {
    std::string_view source = whole_source(script);
    if (flags_ == Flags::unknown && row_of(script).at_maxmemory) {
      source.remove_prefix(maxmemory_flags.size());
    }
    return source;
  }
  [[nodiscard]] const std::string& digest(Script script) const { return digests_[index(script)]; }
  void set_digest(Script script, std::string_view digest) { digests_[index(script)] = digest; }

 private:
  static constexpr std::size_t index(Script script) { return static_cast<std::size_t>(script); }

  Flags flags_;
  std::array<std::string, script_count> digests_;
};

}  // namespace redlock::wire
