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

  explicit Listening(const Fleet& fleet)
      : client(start_client(fleet, [&](ClientOptions& options) {
          options.observer = journal;
          // For leases that must not be lost: a busy machine may stand still for seconds.
          options.lease = 6s;
          options.node_timeout = 3s;
        })) {}

  [[nodiscard]] Lease acquire(const std::string& name, AcquireOptions options = {}) const {
    options.wait = patience;
    return must(client.lock(name).acquire(options));
  }
};

void await_loss(const Lease& lease) {
  std::promise<void> lost;
  const std::stop_callback callback(lease.lost(), [&] { lost.set_value(); });
  get_soon(lost);
}

TEST_CASE("a lease is renewed again and again, if it is not to end by itself") {
  std::optional<Listening> listening(std::in_place, three_nodes());
  const auto journal = listening->journal;
  Lease renewed = listening->acquire("renewed");
  const auto first = renewed.valid_until();
  const Lease always = listening->acquire("always", {.lease = 6s, .renewal = Renewal::always});
  const Lease never = listening->acquire("never", {.lease = 3s, .renewal = Renewal::never});
  const Lease bounded = listening->acquire("bounded", {.max_hold = 5s});
  const Lease brief = listening->acquire("brief", {.lease = 2s});
  const auto reason = brief.loss_reason();
  if (brief.valid()) CHECK_FALSE(reason.has_value());

  await_loss(brief);
  CHECK(brief.loss_reason() == LossReason::expired);
  const std::string lost_brief = "lost brief " + std::to_string(brief.token());
  CHECK(journal->records(lost_brief + " expired"));
  CHECK(journal->count("renewed brief") == 0);
  CHECK(soon_free_everywhere(three_nodes(), "brief"));
  await_loss(never);
  CHECK(journal->count("renewed never") == 0);
  await_loss(bounded);  // two or more renewals later, or one where the machine stood still
  CHECK(bounded.loss_reason() == LossReason::expired);
  CHECK(journal->count("renewed bounded") > 0);

  CHECK(journal->records("renewed always", 4));
  REQUIRE(journal->records("renewed renewed", 4));  // longer than the lease
  CHECK(always.valid());
  CHECK(renewed.valid());
  CHECK(renewed.valid_until() > first);
  CHECK_FALSE(renewed.lost().stop_requested());
  CHECK(must(renewed.release()) == Released::released);

  listening.reset();
  CHECK(always.loss_reason() == LossReason::closed);
  CHECK(brief.loss_reason() == LossReason::expired);
  CHECK(journal->count(lost_brief + " expired") == 1);
  CHECK(journal->count(lost_brief + " closed") == 0);
}

TEST_CASE("a lease over nodes that restart empty one at a time is held through, and all is told") {
  Fleet fleet({.nodes = 3, .password = "open-sesame"});
  std::optional<Listening> listening(std::in_place, fleet);
  const auto journal = listening->journal;
  const Lease lease = listening->acquire("held through");
  for (std::size_t node = 0; node < 3; ++node) {
    const std::string uri = "redis://127.0.0.1:" + std::to_string(fleet.port(node));
    CHECK(journal->records("up " + uri));
    fleet.restart(node, cluster::Data::empty);
    REQUIRE(eventually([&] { return is_locked_on(fleet, node, "held through"); }));
    CHECK(eventually([&] {
      return journal->count("down " + uri + " connection_lost") > 0 ||
             journal->count("down " + uri + " connection_failed") > 0;
    }));
    CHECK(journal->records("up " + uri, 2));
    // It counts once a later round has found it held.
    const std::size_t renewals = journal->count("renewed held through");
    REQUIRE(journal->records("renewed held through", renewals + 2));
  }
  CHECK(lease.valid());

  listening.reset();
  CHECK(lease.loss_reason() == LossReason::closed);
  CHECK(lease.remaining() == 0ns);
  CHECK(journal->count("lost held through " + std::to_string(lease.token()) + " closed") == 1);
}

}  // namespace
}  // namespace redlock::testing
