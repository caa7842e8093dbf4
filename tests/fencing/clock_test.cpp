// SPDX-License-Identifier: MIT
// Nodes whose clocks jump under a client that runs. The servers are real, with a wall clock that
// the test can set. (Of one node whose clock jumps: tests/monitoring.)
#include "fencing/clock_shim.hpp"
#include "integration/api_fixture.hpp"

namespace redlock::testing {
namespace {

/// Which clocks moved, and whether a node did not vote for that.
class RecordingObserver final : public Observer {
 public:
  void on_clock_moved(std::string_view node, std::chrono::nanoseconds by, bool ours) override {
    const std::scoped_lock lock(mutex_);
    moved_[std::string(node)] = by;
    ours_ = ours_ || ours;
    changed_.notify_all();
  }
  void on_attempt(std::string_view, const Errc*, const std::vector<NodeVote>& votes,
                  std::chrono::nanoseconds) override {
    const std::scoped_lock lock(mutex_);
    blames_ = std::ranges::count(votes, Cause::clock_moved, &NodeVote::cause) > 0;
  }

  template <typename Ready>
  [[nodiscard]] bool await(Ready ready) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, patience, [&] { return ready(moved_, ours_); });
  }
  /// In the latest attempt.
  [[nodiscard]] bool blames_a_node() {
    const std::scoped_lock lock(mutex_);
    return blames_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::chrono::nanoseconds> moved_;
  bool ours_ = false;
  bool blames_ = false;
};

TEST_CASE("if all nodes go ahead of us it is our clock that stood still, and leases are lost") {
  // One clock for all nodes: a client that read two of them between two steps would not know what
  // to think.
  const TemporaryDirectory place;
  const Fleet nodes = fleet_with_clocks(place, {.nodes = 3}, place.path().string());
  const auto observer = std::make_shared<RecordingObserver>();
  ClientOptions options = options_for(nodes.uris());
  options.lease = options.max_lease = 3s;
  options.observer = observer;
  const Client client = start_client(std::move(options));
  RedLock lock = client.lock("a");
  warm_up(client, nodes);  // a node's clock is read when it is connected
  const auto lease = lock.acquire({.renewal = Renewal::always, .wait = patience});
  REQUIRE(lease.has_value());
  set_clock_ahead(place.path(), 1h);
  CHECK(observer->await([](const auto& moved, bool ours) {
    return moved.size() == 3 && ours && std::ranges::all_of(moved, [](const auto& entry) {
             return entry.second > 59min && entry.second < 61min;
           });
  }));
  // Told behind the clocks, on the client's thread.
  CHECK(eventually([&] { return lease->lost().stop_requested(); }));
  CHECK_FALSE(lease->valid());
  // Nobody is to blame.
  REQUIRE(lock.acquire({.wait = patience}).has_value());
  CHECK_FALSE(observer->blames_a_node());
}

}  // namespace
}  // namespace redlock::testing
