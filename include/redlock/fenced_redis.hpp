// SPDX-License-Identifier: MIT
// Resources in Redis (any Redis, not only the nodes of the lock), protected by fencing tokens. Here
// are the scripts, their arguments and the meaning of their replies, for whatever Redis client the
// program has; fenced_redis_hiredis.hpp runs them with hiredis.
//
// Beside each resource key stands its stamp, the largest token that has touched it. A script that
// comes with a smaller one is turned away; any other stamps and does its work, in one step.
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
  /// The two things that can become of it.
  enum class Kind : std::uint8_t {
    applied,  ///< it was done, and smaller tokens are refused from now on
    stale,    ///< nothing was done: a larger token was there, the lease behind this one is over
  };

  Kind kind = Kind::applied;  ///< which of the two
  /// Of a stale one: the largest token that the resource has seen.
  std::uint64_t seen = 0;

  /// It was done.
  [[nodiscard]] bool applied() const noexcept { return kind == Kind::applied; }
};

/// A command for Redis, in the parts that a client's eval function wants.
struct FencedCommand {
  std::string script;                  ///< in Lua
  std::vector<std::string> keys;       ///< KEYS, the stamp among them
  std::vector<std::string> arguments;  ///< ARGV, the token among them

  /// All of it: EVAL, the script, the number of keys, keys and arguments.
  [[nodiscard]] REDLOCK_EXPORT std::vector<std::string> words() const;
};

/// Sets `key` to `value`, as SET does. Sent again with the same token it does the same again, so it
/// may be repeated when the answer was lost. But only that: the lost one may still be on its way,
/// on the old connection, and the stamp does not tell two writes of one token apart. Who wants to
/// write another value then takes the lock again, for a new token.
[[nodiscard]] REDLOCK_EXPORT FencedCommand fenced_write(std::string_view key,
                                                        std::string_view value,
                                                        std::uint64_t token);

/// Reads `key`, as GET does, but stamps it before: what it answers cannot be changed by an older
/// holder any more. Read so what you are going to change.
[[nodiscard]] REDLOCK_EXPORT FencedCommand fenced_read(std::string_view key, std::uint64_t token);

/// Runs `lua` (the body of a function, without a #! line), which sees `keys` as KEYS, `arguments`
/// as ARGV, and may write to any of `keys`. The stamp is that of the first key, which there must
/// be; whoever shares that resource has to name it first as well. If `lua` fails, or returns an
/// error (as redis.pcall does), that is the reply; what it wrote stays, as in any script of Redis,
/// and so does the stamp. Who repeats it because the answer was lost may have it done twice.
[[nodiscard]] REDLOCK_EXPORT FencedCommand fenced_eval(std::string_view lua,
                                                       std::vector<std::string> keys,
                                                       std::vector<std::string> arguments,
                                                       std::uint64_t token);

/// What the reply means. Every reply to these commands is an array of two: the first is an integer,
/// to be given to this function; the second is what the command answers (SET's OK, GET's value,
/// what `lua` returned), nil if it was stale. An error reply (a damaged stamp, a token that is 0 or
/// not below 2^53, whatever the command itself runs into) is none of the two results.
[[nodiscard]] REDLOCK_EXPORT FencedResult fenced_result(std::int64_t first) noexcept;

/// The key of the stamp beside `key`: "redlock:stamp:{key}", in the hash slot of `key`, so that the
/// commands work on Redis Cluster as well (not where `key` has a } but no hash tag of its own).
/// It never expires. Who deletes it, or lets a server evict it, lets old holders in.
[[nodiscard]] REDLOCK_EXPORT std::string stamp_key(std::string_view key);

}  // namespace redlock
