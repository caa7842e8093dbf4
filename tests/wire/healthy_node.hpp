// SPDX-License-Identifier: MIT
// What a healthy node of a set of one answers, adopted.
#pragma once

#include <string>

#include "support/stub_replies.hpp"

namespace redlock::wire {

inline std::string healthy(const testing::RedisCommand& command) {
  using namespace testing;
  if (is(command, "HGETALL")) {
    return array({bulk("id"), bulk("x"), bulk("layout"), bulk("redlock-2"), bulk("nodes"),
                  bulk("1"), bulk("max_lease_ms"), bulk("60000")});
  }
  if (is(command, "EVALSHA") || is(command, "EVAL")) return array({integer(1), integer(7)});
  return like_redis(command);
}

}  // namespace redlock::wire
