// SPDX-License-Identifier: MIT
// Runs the commands of fenced_redis.hpp on a connection of hiredis. The only header here that needs
// a C library: include it yourself, and link hiredis.
#pragma once

#include <redlock/cpp20.hpp>

#include <cstddef>
#include <hiredis/hiredis.h>
#include <memory>
#include <optional>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include <redlock/fenced_redis.hpp>

namespace redlock {

struct FencedReply {
  FencedResult result;
  /// What the command answered, as text; empty for nil, an array, or a stale token.
  std::optional<std::string> value;
};

/// Sends the command and waits for its reply, as redisCommand does: one thread per connection, and
/// the connection's time limit. Fails with the error text of the server or of hiredis; after the
/// latter (`connection.err` is set) it is not known whether the command was done, and the
/// connection cannot be used any more.
[[nodiscard]] inline tl::expected<FencedReply, std::string> run(redisContext& connection,
                                                                const FencedCommand& command) {
  const std::vector<std::string> words = command.words();
  std::vector<const char*> pointers;
  std::vector<std::size_t> sizes;
  for (const std::string& word : words) {
    pointers.push_back(word.data());
    sizes.push_back(word.size());
  }
  const auto free_reply = [](redisReply* reply) { freeReplyObject(reply); };
  const std::unique_ptr<redisReply, decltype(free_reply)> reply(
      static_cast<redisReply*>(redisCommandArgv(&connection, static_cast<int>(words.size()),
                                                pointers.data(), sizes.data())),
      free_reply);
  if (!reply) return tl::make_unexpected(std::string(connection.errstr));
  if (reply->type == REDIS_REPLY_ERROR) {
    return tl::make_unexpected(std::string(reply->str, reply->len));
  }
  if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 ||
      reply->element[0]->type != REDIS_REPLY_INTEGER) {
    return tl::make_unexpected(std::string("the reply is not that of a fenced command"));
  }
  FencedReply answer{fenced_result(reply->element[0]->integer), std::nullopt};
  const redisReply& value = *reply->element[1];
  if (value.type == REDIS_REPLY_INTEGER) {
    answer.value = std::to_string(value.integer);
  } else if (value.type == REDIS_REPLY_STRING || value.type == REDIS_REPLY_STATUS) {
    answer.value.emplace(value.str, value.len);
  }
  return answer;
}

}  // namespace redlock
