// SPDX-License-Identifier: MIT
// What a healthy node answers that is adopted, into a set of one.
#pragma once

#include <string>

#include "support/stub_replies.hpp"

namespace redlock::wire {

/// The marker of a member of the set "own".
inline std::string marker_of(const std::string& nodes, const std::string& members,
                             const std::string& id = "x", const std::string& epoch = "1") {
  using namespace testing;
  return array({bulk("id"), bulk(id), bulk("layout"), bulk("redlock-3"), bulk("nodes"), bulk(nodes),
                bulk("max_lease_ms"), bulk("60000"), bulk("set"), bulk("own"), bulk("epoch"),
                bulk(epoch), bulk("members"), bulk(members)});
}

inline std::string healthy(const testing::RedisCommand& command) {
  using namespace testing;
  if (is(command, "HGETALL")) return marker_of("1", "x=redis://host:6379");
  if (is(command, "EVALSHA") || is(command, "EVAL")) return array({integer(1), integer(7)});
  return like_redis(command);
}

}  // namespace redlock::wire
