// SPDX-License-Identifier: MIT
// redis-plus-plus' RedLock as a peer: peer_redis_plus_plus WAY LEASE_MS HOST:PORT... As its README
// shows: a Redis object for each node, all settings as they are, and the variant with scripts,
// which tries three times with pauses of at most 200 ms.
#include <exception>
#include <iostream>
#include <memory>
#include <string>
#include <sw/redis++/patterns/redlock.h>
#include <sw/redis++/redis++.h>
#include <sw/redis++/version.h>
#include <vector>

#include "bench/peers/orders.hpp"

namespace {

using sw::redis::RedLockMutexVessel;

struct LockCaller {
  std::string acquire(const std::string& name) {
    try {
      held = locks->lock(name, sw::redis::RedLockUtils::lock_id(), lease);
    } catch (const std::exception& error) {
      return error.what();
    }
    return held.locked ? "" : "not locked";
  }
  std::string release() const {
    try {
      locks->unlock(held);
    } catch (const std::exception& error) {
      return error.what();
    }
    return "";
  }

  RedLockMutexVessel* locks;
  std::chrono::milliseconds lease;
  RedLockMutexVessel::LockInfo held = {};
};

class RedisPlusPlus {
 public:
  RedisPlusPlus(std::chrono::milliseconds lease, const std::vector<std::string>& nodes)
      : lease_(lease), nodes_(connect(nodes)), locks_(nodes_.begin(), nodes_.end()) {}
  std::vector<peers::Calls> run(const peers::Run& run) {
    return run_on_threads(run, [&] { return LockCaller{&locks_, lease_}; });
  }
  std::string hold(const std::string& name) { return holder_.acquire(name); }
  [[nodiscard]] std::string release() const { return holder_.release(); }

 private:
  static std::vector<std::shared_ptr<sw::redis::Redis>> connect(
      const std::vector<std::string>& nodes) {
    std::vector<std::shared_ptr<sw::redis::Redis>> all;
    for (const std::string& node : nodes) {
      all.push_back(std::make_shared<sw::redis::Redis>("tcp://" + node));
      all.back()->ping();
    }
    return all;
  }

  std::chrono::milliseconds lease_;
  std::vector<std::shared_ptr<sw::redis::Redis>> nodes_;
  RedLockMutexVessel locks_;
  LockCaller holder_{&locks_, lease_};
};

}  // namespace

int main(int argc, char** argv) {
  try {
    RedisPlusPlus peer(std::chrono::milliseconds(std::stoi(argv[2])), {argv + 3, argv + argc});
    using namespace sw::redis;
    peers::serve(peer, "redis-plus-plus " + std::to_string(VERSION_MAJOR) + "." +
                           std::to_string(VERSION_MINOR) + "." + std::to_string(VERSION_PATCH));
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
