// SPDX-License-Identifier: MIT
// Nodes whose clocks jump under a client that runs. The servers are real, with a wall clock that
// the test can set.
#include "fencing/clock_shim.hpp"
#include "integration/api_fixture.hpp"

namespace redlock::testing {
namespace {

/// Which clocks moved, and the latest vote of each node.
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
    votes_ = votes;
  }

  template <typename Ready>
  [[nodiscard]] bool await(Ready ready) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, patience, [&] { return ready(moved_, ours_); });
  }
  [[nodiscard]] NodeVote vote_of(const std::string& node) {
    const std::scoped_lock lock(mutex_);
    const auto found = std::ranges::find(votes_, node, &NodeVote::node);
    return found == votes_.end() ? NodeVote{} : *found;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::chrono::nanoseconds> moved_;
  bool ours_ = false;
  std::vector<NodeVote> votes_;
};

/// Three nodes with clocks that can be set, and a client that reads them often.
class Clocks {
 public:
  enum class Each : std::uint8_t { its_own, the_same };

  explicit Clocks(Each clock = Each::its_own) {
    nodes_.emplace(fleet_with_clocks(place_, {.nodes = 3},
                                     clock == Each::its_own ? "" : place_.path().string()));
    ClientOptions options = options_for(nodes_->uris());
    options.lease = options.max_lease = 3s;
    options.observer = observer;
    client.emplace(start_client(std::move(options)));
  }

  void set_ahead(std::size_t node, std::chrono::seconds by) const {
    set_clock_ahead(nodes_->directory(node), by);
  }
  /// At one stroke: a client that read two of them meanwhile would not know what to think.
  void set_all_ahead(std::chrono::seconds by) const { set_clock_ahead(place_.path(), by); }
  /// Until every node has voted.
  void await_votes(RedLock& lock) const {
    std::set<std::size_t> voted;
    const auto limit = std::chrono::steady_clock::now() + patience;
    while (voted.size() < 3 && std::chrono::steady_clock::now() < limit) {
      REQUIRE(lock.acquire({.wait = patience}).has_value());
      for (std::size_t node = 0; node < 3; ++node) {
        if (observer->vote_of(name(node)).vote == Vote::granted) voted.insert(node);
      }
    }
    REQUIRE(voted.size() == 3);
  }
  /// As the client calls it.
  [[nodiscard]] std::string name(std::size_t node) const { return nodes_->uris().at(node); }

  const std::shared_ptr<RecordingObserver> observer = std::make_shared<RecordingObserver>();
  std::optional<Client> client;

 private:
  TemporaryDirectory place_;
  std::optional<Fleet> nodes_;
};

TEST_CASE("a node whose clock jumps is told of, does not vote, and votes when it has kept time") {
  Clocks clocks;
  RedLock lock = clocks.client->lock("a");
  // Its clock is read when it is connected.
  clocks.await_votes(lock);
  clocks.set_ahead(1, 1h);
  REQUIRE(clocks.observer->await([](const auto& moved, bool) { return !moved.empty(); }));
  const auto limit = std::chrono::steady_clock::now() + patience;
  bool kept_out = false;
  bool back = false;
  while (!back && std::chrono::steady_clock::now() < limit) {
    REQUIRE(lock.acquire({.wait = patience}).has_value());
    const NodeVote vote = clocks.observer->vote_of(clocks.name(1));
    kept_out = kept_out || vote.cause == Cause::clock_moved;
    back = kept_out && vote.vote == Vote::granted;
  }
  CHECK(kept_out);
  CHECK(back);
  CHECK(clocks.observer->await([&](const auto& moved, bool ours) {
    return !ours && moved.size() == 1 && moved.begin()->first == clocks.name(1) &&
           moved.begin()->second > 59min && moved.begin()->second < 61min;
  }));
}

TEST_CASE("if all nodes go ahead of us it is our clock that stood still, and leases are lost") {
  Clocks clocks(Clocks::Each::the_same);
  RedLock lock = clocks.client->lock("a");
  clocks.await_votes(lock);
  const auto lease = lock.acquire({.renewal = Renewal::always, .wait = patience});
  REQUIRE(lease.has_value());
  clocks.set_all_ahead(1h);
  CHECK(clocks.observer->await(
      [](const auto& moved, bool ours) { return moved.size() == 3 && ours; }));
  // Told behind the clocks, on the client's thread.
  CHECK(eventually([&] { return lease->lost().stop_requested(); }));
  CHECK_FALSE(lease->valid());
  // Nobody is to blame.
  REQUIRE(lock.acquire({.wait = patience}).has_value());
  CHECK(clocks.observer->vote_of(clocks.name(0)).cause != Cause::clock_moved);
}

}  // namespace
}  // namespace redlock::testing
