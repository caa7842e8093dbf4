// SPDX-License-Identifier: MIT
// A user of a node that may touch no key but those that a call names, as Redis has it for each
// script: a key that a script only assembles is refused to it.
#pragma once

#include "cluster/fleet.hpp"
#include "support/lock_keys.hpp"

namespace redlock::testing {

class NarrowUser {
 public:
  explicit NarrowUser(cluster::Fleet& fleet) : fleet_(fleet), client_(fleet.port(0)) {
    fleet_.run(0, {"ACL", "SETUSER", "narrow", "reset", "on", "nopass", "allchannels", "+@all"});
    client_.command({"AUTH", "narrow", "any"});
  }

  std::string eval(const std::string& source, const Words& keys, const Words& arguments) {
    Words user{"ACL", "SETUSER", "narrow", "resetkeys"};
    for (const std::string& key : keys) user.push_back("~" + key);
    fleet_.run(0, user);
    return client_.command(testing::eval(source, keys, arguments));
  }

 private:
  cluster::Fleet& fleet_;
  cluster::NodeClient client_;
};

}  // namespace redlock::testing
