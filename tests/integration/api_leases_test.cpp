// SPDX-License-Identifier: MIT
// The life of a lease: renewed until released, ending by itself, bounded, lost; and what an
// observer is told of it.
#include "integration/api_fixture.hpp"

namespace redlock::testing {
namespace {

/// What was reported, as words.
class Journal : public Observer {
 public:
  void on_node_up(std::string_view node, std::string_view) override {
    note("up " + std::string(node));
  }
  void on_node_down(std::string_view node, Cause cause, std::string_view) override {
    note("down " + std::string(node) + ' ' + to_string(cause));
  }
  void on_renewal(std::string_view name, bool ok, std::chrono::nanoseconds) override {
    note((ok ? "renewed " : "not renewed ") + std::string(name));
  }
  void on_lost(std::string_view name, std::uint64_t token, LossReason reason) override {
    note("lost " + std::string(name) + ' ' + std::to_string(token) + ' ' + to_string(reason));
  }

  [[nodiscard]] std::size_t count(const std::string& what) const {
    const std::scoped_lock lock(mutex_);
    return static_cast<std::size_t>(std::count(notes_.begin(), notes_.end(), what));
  }
  [[nodiscard]] bool records(const std::string& what, std::size_t times = 1) const {
    return eventually([&] { return count(what) >= times; });
  }

 private:
  void note(std::string what) {
    const std::scoped_lock lock(mutex_);
    notes_.push_back(std::move(what));
  }
  mutable std::mutex mutex_;
  std::vector<std::string> notes_;
};

struct Listening {
  std::shared_ptr<Journal> journal = std::make_shared<Journal>();
  Client client;

  explicit Listening(const Fleet& fleet, ClientOptions options = options_for({}))
      : client(start_client([&] {
          options.nodes = fleet.uris();
          options.observer = journal;
          return options;
        }())) {}
};

/// Becomes ready when the lease is lost.
class Loss {
 public:
  explicit Loss(const Lease& lease) : callback_(lease.lost(), [this] { lost_.set_value(); }) {}
  void await() {
    auto future = lost_.get_future();
    get_soon(future);
  }

 private:
  std::promise<void> lost_;
  std::stop_callback<std::function<void()>> callback_;
};

/// For leases that must not be lost: a busy machine may stand still for seconds.
ClientOptions steady_lease() {
  ClientOptions options = options_for({});
  options.lease = 6s;
  options.node_timeout = 3s;
  return options;
}

TEST_CASE("a lease of default length is renewed again and again until it is released") {
  const Fleet fleet({.nodes = 3});
  const Listening listening(fleet, steady_lease());
  Lease lease = must(listening.client.lock("renewed").acquire({.wait = patience}));
  const auto first = lease.valid_until();
  REQUIRE(listening.journal->records("renewed renewed", 4));  // longer than the lease
  CHECK(lease.valid());
  CHECK(lease.valid_until() > first);
  CHECK_FALSE(lease.lost().stop_requested());
  CHECK(must(lease.release()) == Released::released);
}

TEST_CASE("a lease of explicit length ends by itself, and says why") {
  const Fleet fleet({.nodes = 3});
  const Listening listening(fleet);
  const Lease lease = must(listening.client.lock("short").acquire({.lease = 2s, .wait = patience}));
  const auto reason = lease.loss_reason();
  if (lease.valid()) CHECK_FALSE(reason.has_value());
  Loss(lease).await();
  CHECK(lease.loss_reason() == LossReason::expired);
  CHECK(listening.journal->records("lost short " + std::to_string(lease.token()) + " expired"));
  CHECK(listening.journal->count("renewed short") == 0);
  CHECK(soon_free_everywhere(fleet, "short"));
}

TEST_CASE("renewal can be asked for and forbidden") {
  const Fleet fleet({.nodes = 3});
  const Listening listening(fleet, steady_lease());
  const Lease always = must(listening.client.lock("always").acquire(
      {.lease = 6s, .renewal = Renewal::always, .wait = patience}));
  const Lease never = must(listening.client.lock("never").acquire(
      {.lease = 3s, .renewal = Renewal::never, .wait = patience}));
  Loss(never).await();
  CHECK(listening.journal->records("renewed always", 4));
  CHECK(listening.journal->count("renewed never") == 0);
  CHECK(always.valid());
}

TEST_CASE("max_hold bounds a holder that never lets go") {
  const Fleet fleet({.nodes = 3});
  const Listening listening(fleet, steady_lease());
  const Lease lease =
      must(listening.client.lock("bounded").acquire({.wait = patience, .max_hold = 5s}));
  Loss(lease).await();  // two or more renewals later, or one where the machine stood still
  CHECK(lease.loss_reason() == LossReason::expired);
  CHECK(listening.journal->count("renewed bounded") > 0);
}

TEST_CASE("a holder learns from its own clock that three of five nodes hang") {
  Fleet fleet({.nodes = 5});
  ClientOptions options = steady_lease();
  options.node_timeout = 500ms;  // a renewal ends in vain long before the lease does
  const Listening listening(fleet, options);
  Lease lease = must(listening.client.lock("seat").acquire({.wait = patience}));
  Loss loss(lease);
  for (const std::size_t node : {0U, 1U, 2U}) fleet.pause(node);
  loss.await();
  CHECK(lease.loss_reason() == LossReason::nodes_unavailable);
  CHECK(listening.journal->count("not renewed seat") > 0);
  CHECK(code_of(lease.extend(5s)) == Errc::lost);
  for (const std::size_t node : {0U, 1U, 2U}) fleet.resume(node);
  CHECK(code_of(lease.extend(5s)) == Errc::lost);  // once lost it is not revived
  static_cast<void>(lease.release());
  CHECK(soon_free_everywhere(fleet, "seat"));
}

TEST_CASE("a holder learns that others took the lock away from it on a quorum of nodes") {
  const Fleet fleet({.nodes = 3});
  const Listening listening(fleet, steady_lease());
  const Lease lease = must(listening.client.lock("robbed").acquire({.wait = patience}));
  Loss loss(lease);
  for (const std::size_t node : {0U, 1U}) {
    // In one step, or a renewal in between heals the node.
    fleet.run(node, {"EVAL", "redis.call('DEL', KEYS[1]) redis.call('HSET', KEYS[1], 'x', '1')",
                     "1", "redlock:lock:{robbed}"});
  }
  loss.await();
  CHECK(lease.loss_reason() == LossReason::taken);
  CHECK_FALSE(lease.valid());
  CHECK(lease.remaining() == 0s);
}

TEST_CASE("a node that lost a lock in the hands of a quorum is healed by a renewal") {
  const Fleet fleet({.nodes = 3});
  const Listening listening(fleet, steady_lease());
  const Lease lease = must(listening.client.lock("healed").acquire({.wait = patience}));
  REQUIRE(eventually([&] { return nodes_with_lock(fleet, "healed") == 3; }));
  fleet.run(1, {"DEL", "redlock:lock:{healed}"});
  CHECK(eventually([&] { return is_locked_on(fleet, 1, "healed"); }));
  CHECK(lease.valid());
}

TEST_CASE("a lease that was won beside a rival outlives the first of its nodes") {
  Fleet fleet({.nodes = 3});
  const Listening listening(fleet, steady_lease());
  fleet.run(2, {"HSET", "redlock:lock:{bare}", "rival", "1"});
  const Lease lease = must(listening.client.lock("bare").acquire({.wait = patience}));
  fleet.run(2, {"DEL", "redlock:lock:{bare}"});
  fleet.kill(0);
  CHECK(eventually([&] { return is_locked_on(fleet, 2, "bare"); }));
  CHECK(listening.journal->records("renewed bare", 3));
  CHECK(lease.valid());
}

TEST_CASE("an observer is told of nodes that come and go, without their passwords") {
  Fleet fleet({.nodes = 3, .password = "open-sesame"});
  const Listening listening(fleet);
  const std::string node = "redis://127.0.0.1:" + std::to_string(fleet.port(1));
  CHECK(listening.journal->records("up " + node));
  fleet.kill(1);
  CHECK(eventually([&] {
    return listening.journal->count("down " + node + " connection_lost") > 0 ||
           listening.journal->count("down " + node + " connection_failed") > 0;
  }));
  fleet.restart(1);
  CHECK(listening.journal->records("up " + node, 2));
}

TEST_CASE("a lease over nodes that restart empty one at a time is held through") {
  Fleet fleet({.nodes = 3});
  const Listening listening(fleet, steady_lease());
  const Lease lease = must(listening.client.lock("held through").acquire({.wait = patience}));
  for (std::size_t node = 0; node < 3; ++node) {
    fleet.restart(node, cluster::Data::empty);
    REQUIRE(eventually([&] { return is_locked_on(fleet, node, "held through"); }));
    // It counts once a later round has found it held.
    const std::size_t renewals = listening.journal->count("renewed held through");
    REQUIRE(listening.journal->records("renewed held through", renewals + 2));
  }
  CHECK(lease.valid());
}

TEST_CASE("an observer is told that a lease ended with its client") {
  const Fleet fleet({.nodes = 3});
  std::optional<Listening> listening(std::in_place, fleet);
  const auto journal = listening->journal;
  const Lease lease = must(listening->client.lock("outlived").acquire());
  listening.reset();
  CHECK(lease.loss_reason() == LossReason::closed);
  CHECK(lease.remaining() == 0ns);
  CHECK(journal->count("lost outlived " + std::to_string(lease.token()) + " closed") == 1);
}

}  // namespace
}  // namespace redlock::testing
