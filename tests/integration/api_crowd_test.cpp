// SPDX-License-Identifier: MIT
// Many calls: ten thousand of one client at once, to nodes that are well, which take their time,
// and none is refused; and a caller far away from the nodes, whose connections go through relays
// that deliver each byte half a round trip later, beside near ones.
#include "integration/api_fixture.hpp"
#include "support/proxy.hpp"

namespace redlock::testing {
namespace {

constexpr std::size_t crowd = 10'000;

struct Listener final : Observer {
  void on_lost(std::string_view, std::uint64_t, LossReason reason) override {
    if (reason != LossReason::closed) ++lost;
  }
  void on_closed(const CloseReport& what) override { report = what; }

  std::atomic<int> lost{0};
  std::optional<CloseReport> report;
};

ClientOptions hurried(const Fleet& fleet, std::shared_ptr<Observer> observer = {}) {
  ClientOptions options = options_for(fleet.uris());
  options.node_timeout = 1s;
  options.observer = std::move(observer);
  return options;
}

/// A busy machine has to release all within a few node timeouts.
ClientOptions unhurried(const Fleet& fleet, std::shared_ptr<Observer> observer = {}) {
  ClientOptions options = hurried(fleet, std::move(observer));
  options.node_timeout = 4s;
  return options;
}

/// All at once, and all that they were given, however long they take.
template <typename T>
std::vector<T> await_all(std::vector<std::future<Result<T>>> crowd_of_calls) {
  std::vector<T> results;
  for (auto& call : crowd_of_calls) results.push_back(must(call.get()));
  return results;
}

std::vector<Lease> acquire_crowd(const Client& client, std::size_t size,
                                 AcquireOptions options = {}) {
  std::vector<std::future<Result<Lease>>> calls;
  for (std::size_t i = 0; i < size; ++i) {
    calls.push_back(client.lock("lock " + std::to_string(i)).async_acquire(options).as_future());
  }
  return await_all(std::move(calls));
}

/// What a crowd would take here and now if all of it were sent at once is a multiple of this.
std::chrono::milliseconds part_of_its_time(const Fleet& fleet) {
  const Client client = start_client(fleet);
  const auto start = BootClock::now();
  acquire_crowd(client, crowd / 10);
  const auto tenth = std::chrono::ceil<std::chrono::milliseconds>(BootClock::now() - start);
  return std::max<std::chrono::milliseconds>(5 * tenth, 1s);
}

std::size_t locks_on(const Fleet& fleet, std::size_t node) {
  return std::stoul(
      fleet.run(node, {"EVAL", "return #redis.call('KEYS', 'redlock:lock:*')", "0"}, 30s));
}

TEST_CASE("a crowd is granted, extended and released in full, beside leases that are renewed") {
  const Fleet fleet({.nodes = 5});
  const auto listener = std::make_shared<Listener>();
  ClientOptions scaled = hurried(fleet, listener);
  scaled.node_timeout = part_of_its_time(fleet);
  scaled.max_lease = 30min;
  scaled.lease = 5min;  // nothing ends by itself while a busy machine is at it
  Client client = start_client(std::move(scaled));
  std::vector<Lease> renewed;
  for (int i = 0; i < 50; ++i) {
    // Longer than this machine needs to give all of them back.
    const auto lease = std::min(8 * client.options().node_timeout, client.options().max_lease);
    renewed.push_back(
        must(client.lock("renewed " + std::to_string(i))
                 .acquire({.lease = lease, .renewal = Renewal::always, .wait = patience})));
  }
  std::vector<Lease> leases = acquire_crowd(client, crowd);
  std::vector<std::future<Result<BootClock::time_point>>> extended;
  for (Lease& lease : leases) extended.push_back(lease.async_extend(6min).as_future());
  CHECK(await_all(std::move(extended)).size() == crowd);
  CHECK(listener->lost == 0);
  const CloseReport report = must(client.close());
  CHECK(report.released == crowd + renewed.size());
  CHECK(report.already_gone == 0);
  CHECK(report.unconfirmed == 0);
  for (std::size_t node = 0; node < fleet.size(); ++node) {
    CHECK(eventually([&] { return locks_on(fleet, node) == 0; }));
  }
  REQUIRE(listener->report);
  CHECK(listener->report->released == report.released);
}

TEST_CASE("a client that is destroyed beside a hung minority releases all its leases") {
  Fleet fleet({.nodes = 5});
  const auto listener = std::make_shared<Listener>();
  std::vector<Lease> leases;  // outlive the client
  {
    const Client client = start_client(unhurried(fleet, listener));
    leases = acquire_crowd(client, crowd / 2, {.wait = patience});
    fleet.pause(0);
    fleet.pause(3);
  }
  CHECK(listener->report->released == crowd / 2);
  for (const std::size_t node : {1U, 2U, 4U}) CHECK(locks_on(fleet, node) == 0);
}

TEST_CASE("leases that the program dropped just before are released; without a quorum in vain") {
  Fleet fleet({.nodes = 3});
  {
    const Client client = start_client(hurried(fleet));
    acquire_crowd(client, crowd / 2, {.wait = patience});
  }
  for (std::size_t node = 0; node < fleet.size(); ++node) {
    CHECK(eventually([&] { return locks_on(fleet, node) == 0; }));
  }

  Client client = start_client(unhurried(fleet));
  const auto leases = acquire_crowd(client, 2'000, {.wait = patience});
  fleet.pause(0);
  fleet.pause(1);
  const CloseReport report = must(client.close());
  CHECK(report.unconfirmed == 2'000);
  CHECK(report.released == 0);
  // What could be sent was sent.
  CHECK(eventually([&] { return locks_on(fleet, 2) == 0; }));
}

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
