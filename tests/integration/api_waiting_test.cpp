// SPDX-License-Identifier: MIT
// Waiting for a lock that somebody else holds: until it is given, until the time is over, until the
// caller changes its mind.
#include "integration/api_fixture.hpp"
#include "support/proxy.hpp"

namespace redlock::testing {
namespace {

/// Counts the attempts that were decided, so that a test knows when somebody is waiting.
class Attempts : public Observer {
 public:
  void on_attempt(std::string_view name, const Errc* code, const std::vector<NodeVote>& votes,
                  std::chrono::nanoseconds elapsed) override {
    CHECK(name == "seat");
    CHECK(votes.size() == 3);
    CHECK(elapsed >= 0ns);
    (code == nullptr ? granted : failed).fetch_add(1);
  }
  std::atomic<int> granted{0};
  std::atomic<int> failed{0};
};

struct Pair {
  Client holder = start_client(three_nodes());
  std::shared_ptr<Attempts> attempts = std::make_shared<Attempts>();
  Client waiter = start_client([this] {
    ClientOptions options = options_for(three_nodes().uris());
    options.observer = attempts;
    return options;
  }());
  RedLock lock = waiter.lock("seat");

  [[nodiscard]] bool somebody_waits() const {
    return eventually([&] { return attempts->failed > 0; });
  }
};

TEST_CASE("who waits gets the lock when it is released") {
  Pair pair;
  Lease held = must(pair.holder.lock("seat").acquire());
  auto waiting = pair.lock.async_acquire({.wait = forever}).as_future();
  REQUIRE(pair.somebody_waits());
  const std::uint64_t token = held.token();
  must(held.release());
  CHECK(must(get_soon(waiting)).token() > token);
  CHECK(pair.attempts->granted == 1);
}

TEST_CASE("a waiting time that ends is timed_out, with the votes of the last attempt") {
  Pair pair;
  const Lease held = must(pair.holder.lock("seat").acquire());
  auto wait = 1s;
  auto result = pair.lock.acquire({.wait = wait});
  // As long as a slow machine needs for the nodes' answers.
  while (!contains(result.error().message, "refused") && wait < patience) {
    wait *= 2;
    result = pair.lock.acquire({.wait = wait});
  }
  CHECK(code_of(result) == Errc::timed_out);
  CHECK(result.error().votes.size() == 3);
  CHECK_MESSAGE(contains(result.error().message, "refused"), result.error().message);
  CHECK(held.valid());
}

TEST_CASE("a stop request ends every form, and one after the end does nothing") {
  Pair pair;
  std::stop_source stop;
  {
    const Lease held = must(pair.holder.lock("seat").acquire());
    auto waiting = pair.lock.async_acquire({.wait = forever}, stop.get_token()).as_future();
    REQUIRE(pair.somebody_waits());
    stop.request_stop();
    CHECK(code_of(get_soon(waiting)) == Errc::cancelled);
  }
  std::stop_source late;
  const Lease lease = must(pair.lock.acquire({.wait = 30s}, late.get_token()));
  late.request_stop();
  CHECK(must(pair.holder.lock("another").acquire()).valid());
  CHECK(lease.valid());
}

TEST_CASE("a stop request from the loop thread itself ends the call") {
  Pair pair;
  const Lease held = must(pair.holder.lock("seat").acquire());
  std::stop_source stop;
  auto waiting = pair.lock.async_acquire({.wait = forever}, stop.get_token()).as_future();
  pair.waiter.lock("seat").async_acquire().start([&](const auto&) { stop.request_stop(); });
  CHECK(code_of(get_soon(waiting)) == Errc::cancelled);
}

TEST_CASE("an attempt that is cancelled in the middle is released on every node") {
  const Fleet& fleet = three_nodes();
  const Proxies proxies = proxies_of(fleet);
  const Client client = start_client(options_for(uris_of(proxies)));
  warm_up(client, fleet);

  for (const auto& proxy : proxies) proxy->hold_replies();
  std::stop_source stop;
  auto acquiring = client.lock("given up").async_acquire({}, stop.get_token()).as_future();
  REQUIRE(eventually([&] { return nodes_with_lock(fleet, "given up") == 3; }));
  stop.request_stop();
  CHECK(code_of(get_soon(acquiring)) == Errc::cancelled);
  CHECK(soon_free_everywhere(fleet, "given up"));  // although no answer has arrived yet
  for (const auto& proxy : proxies) proxy->pass();
}

TEST_CASE("a grant that comes too late for the validity asked for is given back") {
  const Fleet& fleet = three_nodes();
  const Proxies proxies = proxies_of(fleet);
  const Client client = start_client(options_for(uris_of(proxies)));
  warm_up(client, fleet);
  for (const auto& proxy : proxies) proxy->delay(60ms);
  // 120 ms of 1 s are gone when the answers come; 988 ms less that are less than 900 ms. Whether
  // the attempt waits for answers that are of no use any more is its own affair.
  const Errc code = code_of(client.lock("late").acquire({.lease = 1s, .min_validity = 900ms}));
  CHECK((code == Errc::too_late || code == Errc::no_quorum));
  CHECK(soon_free_everywhere(fleet, "late"));
}

}  // namespace
}  // namespace redlock::testing
