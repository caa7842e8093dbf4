// SPDX-License-Identifier: MIT
// The scripts as one node knows them: the text that suits its version, and the digests that
// it gave them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace redlock::wire {

/// Connections load the first three; force, which is rare, always goes in full.
enum class Script : std::uint8_t { acquire, hold, release, force };
inline constexpr std::array all_scripts{Script::acquire, Script::hold, Script::release,
                                        Script::force};

class ScriptSet {
 public:
  /// Servers from Redis 7 on (Valkey, Redict) let a script say that it may run at maxmemory.
  /// Older ones do not know the line, and do not need it: see hold.lua.
  enum class Flags : std::uint8_t { understood, unknown };

  explicit ScriptSet(Flags flags) : flags_(flags) {}

  [[nodiscard]] const std::string& source(Script script) const;
  [[nodiscard]] const std::string& digest(Script script) const { return digests_[index(script)]; }
  void set_digest(Script script, std::string_view digest) { digests_[index(script)] = digest; }

 private:
  static constexpr std::size_t index(Script script) { return static_cast<std::size_t>(script); }

  Flags flags_;
  std::array<std::string, all_scripts.size()> digests_;
};

}  // namespace redlock::wire
