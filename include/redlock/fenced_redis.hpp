// SPDX-License-Identifier: MIT
// Resources in Redis (any Redis, not only the nodes of the lock), protected by fencing tokens. Here
// are the scripts, their arguments and the meaning of their replies, for whatever Redis client the
// program has; fenced_redis_hiredis.hpp runs them with hiredis.
//
// Beside each resource key stands its stamp, the largest token that has touched it. A script that
// comes with a smaller token is turned away; any other script stamps and does its work, in one
// step.
#pragma once

#include <redlock/cpp20.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <redlock/export.hpp>

namespace redlock {

/// What became of a fenced command.
struct FencedResult {
  /// The two outcomes of a fenced command.
  enum class Kind : std::uint8_t {
    applied,  ///< the command was done, and smaller tokens are refused from now on
    stale,    ///< nothing was done: a larger token was there, and the lease behind this token is
              ///< over
  };

  Kind kind = Kind::applied;  ///< which of the two
  /// If stale: the largest token that the resource has seen.
  std::uint64_t seen = 0;

  /// The command was done.
  [[nodiscard]] bool applied() const noexcept { return kind == Kind::applied; }
};

/// A command for Redis, in the parts that a client's eval function wants.
struct FencedCommand {
  std::string script;                  ///< in Lua
  std::vector<std::string> keys;       ///< KEYS, the stamp among them
  std::vector<std::string> arguments;  ///< ARGV, the token among them

  /// The whole command: EVAL, the script, the number of keys, keys and arguments.
  [[nodiscard]] REDLOCK_EXPORT std::vector<std::string> words() const;
};

/// Sets `key` to `value`, as SET does. The same command with the same token may be sent again when
/// its answer was lost. But only the same command: the lost one may still be on its way, on the old
/// connection, and the stamp does not tell two writes of one token apart. To write another value
/// then, take the lock again, for a new token.
[[nodiscard]] REDLOCK_EXPORT FencedCommand fenced_write(std::string_view key,
                                                        std::string_view value,
                                                        std::uint64_t token);

/// Reads `key`, as GET does, but stamps it before: no older holder can change the value any more.
/// Use this to read what you are going to change.
[[nodiscard]] REDLOCK_EXPORT FencedCommand fenced_read(std::string_view key, std::uint64_t token);

/// Runs `lua` (the body of a function, without a #! line), which sees `keys` as KEYS, `arguments`
/// as ARGV, and may write to any of `keys`. The stamp is that of the first key, so there must be
/// one; all programs that share that resource have to name its key first as well. If `lua` fails,
/// or returns an error (as redis.pcall does), that error is the reply; what `lua` wrote stays, as
/// in any script of Redis, and so does the stamp. A command that is repeated because its answer was
/// lost may run twice.
[[nodiscard]] REDLOCK_EXPORT FencedCommand fenced_eval(std::string_view lua,
                                                       std::vector<std::string> keys,
                                                       std::vector<std::string> arguments,
                                                       std::uint64_t token);

/// What the reply means. Every reply to these commands is an array of two elements: an integer,
/// which this function takes; and the command's own answer (SET's OK, GET's value, what `lua`
/// returned), nil if the token was stale. An error reply (a damaged stamp, a token that is 0 or not
/// below 2^53, an error of the command itself) is neither of the two results.
[[nodiscard]] REDLOCK_EXPORT FencedResult fenced_result(std::int64_t first) noexcept;

/// The key of the stamp beside `key`: "redlock:stamp:{key}", or "redlock:stamp:of:key" where `key`
/// has a hash tag of its own, or a }. It is in the hash slot of `key`, so that the commands work on
/// Redis Cluster as well (not where `key` has a } but no hash tag of its own). The stamp never
/// expires. Deleting it, or letting a server evict it, lets old holders in.
[[nodiscard]] REDLOCK_EXPORT std::string stamp_key(std::string_view key);

}  // namespace redlock
