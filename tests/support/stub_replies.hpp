// SPDX-License-Identifier: MIT
//
// What a stub server may say: RESP2 texts by kind, and the answers of a healthy Redis to everything
// that a client asks before and beside its own business.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::testing {

/// One command as the client sent it: name and arguments.
using RedisCommand = std::vector<std::string>;

std::string simple(std::string_view text);
std::string error(std::string_view text);  // "LOADING Redis is loading the dataset in memory"
std::string integer(std::int64_t value);
std::string bulk(std::string_view bytes);
std::string nil();
std::string array(const std::vector<std::string>& replies);  // of replies made by these functions

/// True if the command has this name, in any case: is(command, "CLIENT"), is(command, "CLIENT ID").
bool is(const RedisCommand& command, std::string_view name);

/// By which it knows a script that was loaded: no two have the same.
std::string stub_digest(std::string_view script);

/// The answer of a healthy, durable, adopted Redis 7 master to the commands of a connection's start
/// and of inspection; an error for every other command, as Redis gives for an unknown one.
std::string like_redis(const RedisCommand& command);

}  // namespace redlock::testing
