// SPDX-License-Identifier: MIT
//
// cluster/redis.conf, word for word, as part of the program: a fleet needs no file of the source
// tree.
#pragma once

namespace redlock::cluster {

extern const char* const kRedisConf;

}  // namespace redlock::cluster
