// SPDX-License-Identifier: MIT
// Ten thousand requests of one client at once, to nodes that are well: they take their time, and
// none is refused. Then the client ends, and its leases with it.
#include "api_fixture.hpp"

using namespace redlock;
using namespace redlock::testing;

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

}  // namespace

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
    ClientOptions unhurried = hurried(fleet, listener);
    unhurried.node_timeout = 4s;  // a busy machine has to release all within a few of these
    const Client client = start_client(std::move(unhurried));
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

  Client client = start_client(hurried(fleet));
  const auto leases = acquire_crowd(client, 2'000, {.wait = patience});
  fleet.pause(0);
  fleet.pause(1);
  const CloseReport report = must(client.close());
  CHECK(report.unconfirmed == 2'000);
  CHECK(report.released == 0);
  // What could be sent was sent.
  CHECK(eventually([&] { return locks_on(fleet, 2) == 0; }));
}
