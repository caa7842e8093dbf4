// SPDX-License-Identifier: MIT
// A caller far away from the nodes, beside others that are near: it is served as often as they are.
// Its connections go through relays that deliver each byte half a round trip later.
#include "integration/api_fixture.hpp"
#include "support/proxy.hpp"

namespace redlock::testing {
namespace {

constexpr std::size_t far_caller = 3;
constexpr int enough_grants = 20;
constexpr int times_as_often = 3;

/// Callers that take one lock in turns, as soon as each can, until the far one was granted it often
/// enough, or a near one far more often than that.
struct FarAndNear {
  std::array<std::atomic<int>, far_caller + 1> grants{};
  std::atomic<int> failures = 0;

  /// A lease that is destroyed is released, and the next call is sent right behind that. A caller
  /// that awaited the answer would be in no line meanwhile.
  void call(const Client& client, std::size_t caller) {
    RedLock lock = client.lock("far and near");
    while (!over_) {
      const auto lease = lock.acquire({.wait = forever});
      if (!lease) {
        ++failures;
        over_ = true;
        return;
      }
      if (++grants[caller] >=
          (caller == far_caller ? enough_grants : times_as_often * enough_grants + 1)) {
        over_ = true;
      }
    }
  }

 private:
  std::atomic<bool> over_ = false;
};

TEST_CASE("a caller 60 ms away from five nodes has the lock as often as three that are near") {
  const Fleet fleet({.nodes = 5});
  const Proxies proxies = proxies_of(fleet);
  for (const auto& proxy : proxies) proxy->delay(30ms);
  const std::array clients{start_client(fleet), start_client(fleet), start_client(fleet),
                           start_client(options_for(uris_of(proxies)))};
  // Nobody waits for the connections of another.
  for (const Client& client : clients) warm_up(client, fleet);
  FarAndNear all;
  {
    std::vector<std::jthread> callers;
    for (std::size_t caller = 0; caller < clients.size(); ++caller) {
      callers.emplace_back([&, caller] { all.call(clients[caller], caller); });
    }
  }
  for (std::size_t near = 0; near < far_caller; ++near) {
    CAPTURE(near);
    CHECK(all.grants[near] <= times_as_often * all.grants[far_caller]);
  }
  CHECK(all.grants[far_caller] >= enough_grants);
  CHECK(all.failures == 0);
}

}  // namespace
}  // namespace redlock::testing
