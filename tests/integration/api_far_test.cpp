// SPDX-License-Identifier: MIT
// A caller far away from the nodes, beside others that are near: it is served as often as they are.
// Its connections go through relays that deliver each byte half a round trip later.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <thread>

#include "integration/api_fixture.hpp"
#include "support/proxy.hpp"

namespace redlock::testing {
namespace {

/// Callers that take one lock in turns, as soon as each can, until the far one was granted it often
/// enough, or a near one far more often than that.
class FarAndNear {
 public:
  static constexpr std::size_t near_callers = 3;
  static constexpr std::size_t far_caller = near_callers;
  static constexpr int enough = 20;
  static constexpr int times_as_often = 3;

  /// With one client for each caller, the far one last.
  void run(const std::array<Client, near_callers + 1>& clients) {
    std::vector<std::thread> callers;
    for (std::size_t caller = 0; caller < clients.size(); ++caller) {
      callers.emplace_back([&, caller] { call(clients[caller], caller); });
    }
    for (std::thread& caller : callers) caller.join();
  }

  [[nodiscard]] int grants(std::size_t caller) const { return grants_[caller]; }
  [[nodiscard]] int failures() const { return failures_; }
  [[nodiscard]] int beside_another() const { return beside_another_; }
  [[nodiscard]] int tokens_not_higher() const { return tokens_not_higher_; }

 private:
  /// A lease that is destroyed is released, and the next call is sent right behind that. A caller
  /// that awaited the answer would be in no line meanwhile.
  void call(const Client& client, std::size_t caller) {
    RedLock lock = client.lock("far and near");
    while (!over_) {
      auto lease = lock.acquire({.wait = forever});
      if (!lease) {
        ++failures_;
        over_ = true;
        return;
      }
      hold(*lease, caller);
    }
  }
  void hold(const Lease& lease, std::size_t caller) {
    if (holders_++ != 0) ++beside_another_;
    if (last_token_.exchange(lease.token()) >= lease.token()) ++tokens_not_higher_;
    const int grants = ++grants_[caller];
    if (grants >= (caller == far_caller ? enough : times_as_often * enough + 1)) over_ = true;
    --holders_;
  }

  std::atomic<bool> over_ = false;
  std::atomic<int> holders_ = 0;
  std::atomic<std::uint64_t> last_token_ = 0;
  std::array<std::atomic<int>, near_callers + 1> grants_{};
  std::atomic<int> failures_ = 0;
  std::atomic<int> beside_another_ = 0;
  std::atomic<int> tokens_not_higher_ = 0;
};

TEST_CASE("a caller 60 ms away from five nodes has the lock as often as three that are near") {
  const Fleet fleet({.nodes = 5});
  const Proxies proxies = proxies_of(fleet);
  for (const auto& proxy : proxies) proxy->delay(30ms);
  const std::array clients{start_client(fleet), start_client(fleet), start_client(fleet),
                           start_client(options_for(uris_of(proxies)))};
  // Nobody waits for the connections of another.
  for (const Client& client : clients) warm_up(client, fleet);
  FarAndNear callers;
  callers.run(clients);
  for (std::size_t near = 0; near < FarAndNear::near_callers; ++near) {
    CAPTURE(near);
    CHECK(callers.grants(near) <=
          FarAndNear::times_as_often * callers.grants(FarAndNear::far_caller));
  }
  CHECK(callers.grants(FarAndNear::far_caller) >= FarAndNear::enough);
  CHECK(callers.failures() == 0);
  CHECK(callers.beside_another() == 0);
  CHECK(callers.tokens_not_higher() == 0);
}

}  // namespace
}  // namespace redlock::testing
