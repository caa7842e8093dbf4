// SPDX-License-Identifier: MIT
// Waiting in order on nodes that are well: who has the lock next, what those learn who wait, and
// what a call that ends leaves behind.
#include <algorithm>
#include <array>
#include <atomic>
#include <optional>
#include <stop_token>
#include <thread>

#include <redlock/admin.hpp>

#include "integration/api_queue_fixture.hpp"

namespace redlock::testing {
namespace {

TEST_CASE("those who wait have the lock in the order in which they came, of whichever client") {
  const Fleet& fleet = three_nodes();
  const Client holder = start_client(fleet);
  CHECK(served_in_order([&] {
    Lease held = must(holder.lock("in order").acquire({.wait = forever}));
    SixWaiters waiters(fleet, "in order", options_for(fleet.uris()));
    must(held.release());
    auto order = waiters.order();
    CHECK(eventually([&] { return queue_keys(fleet, "in order") == 0; }));
    return order;
  }));
}

/// Keeps what an observer is told, as words.
class WaitDiary final : public Observer {
 public:
  void on_attempt(std::string_view, const Errc* code, const std::vector<NodeVote>&,
                  std::chrono::nanoseconds) override {
    note(code == nullptr ? "granted" : to_string(*code));
  }
  void on_waiting(std::string_view, std::size_t place) override {
    note("place " + std::to_string(place));
  }
  void on_acquired(std::string_view, std::uint64_t token,
                   std::chrono::nanoseconds waited) override {
    CHECK(waited >= 0ns);
    note("acquired " + std::to_string(token));
  }
  void on_released(std::string_view, std::uint64_t token, std::chrono::nanoseconds held) override {
    CHECK(held >= 0ns);
    note("released " + std::to_string(token));
  }
  [[nodiscard]] std::vector<std::string> words() const {
    const std::scoped_lock lock(mutex_);
    return words_;
  }
  [[nodiscard]] bool has(const std::string& what) const {
    return eventually([&] { return std::ranges::count(words(), what) > 0; });
  }

 private:
  void note(std::string what) {
    const std::scoped_lock lock(mutex_);
    words_.push_back(std::move(what));
  }
  mutable std::mutex mutex_;
  std::vector<std::string> words_;
};

TEST_CASE("an observer is told of the place, once of the attempt that waits, and of the lock") {
  const Fleet& fleet = three_nodes();
  Grants grants;
  const Client holder = start_client(fleet);
  const Client first = start_client(fleet);
  const auto diary = std::make_shared<WaitDiary>();
  const Client second = start_client([&] {
    ClientOptions options = options_for(fleet.uris());
    options.observer = diary;
    return options;
  }());
  Lease held = must(holder.lock("told").acquire());
  wait_as(1, first, grants, "told");
  REQUIRE(queue_becomes(fleet, "told", 1));
  auto waiting = second.lock("told").async_acquire({.wait = forever}).as_future();
  REQUIRE(eventually([&] { return !diary->words().empty(); }));
  must(held.release());
  Lease lease = must(get_soon(waiting));
  const auto token = std::to_string(lease.token());
  must(lease.release());
  CHECK(diary->has("released " + token));
  const auto words = diary->words();
  CHECK(words[0] == "place 1");
  CHECK(std::ranges::count(words, "contended") >= 1);  // of each attempt that waits
  CHECK(std::ranges::count(words, "granted") == 1);
  CHECK(std::ranges::count(words, "acquired " + token) == 1);
  CHECK(std::ranges::count(words, "released " + token) == 1);
}

TEST_CASE("a call that does not wait overtakes nobody who does") {
  const Fleet& fleet = three_nodes();
  Grants grants;
  const Client holder = start_client(fleet);
  const Client waiter = start_client(fleet);
  // A waiter that is kept from running for as long as a turn lasts loses it: so not in every round.
  // A call that heeded no line would overtake it in all of them.
  const auto served_first = [&](int round) {
    Lease held = must(holder.lock("try").acquire({.wait = forever}));
    wait_as(round, waiter, grants, "try");
    REQUIRE(queue_becomes(fleet, "try", 1));
    // The attempt stands right behind the release on each connection.
    auto releasing = held.async_release().as_future();
    const auto tried = holder.lock("try").acquire();
    const bool overtaken = tried && grants.count() == static_cast<std::size_t>(round);
    must(get_soon(releasing));
    if (!overtaken) grants.await(static_cast<std::size_t>(round) + 1);
    // Otherwise it is given back here, and the waiter is next.
    return !overtaken;
  };
  constexpr int enough = 6;
  constexpr int most_rounds = 200;
  int rounds = 0;
  int in_order = 0;
  for (; in_order < enough && rounds < most_rounds; ++rounds) {
    in_order += served_first(rounds) ? 1 : 0;
  }
  CHECK(grants.await(static_cast<std::size_t>(rounds)).size() == static_cast<std::size_t>(rounds));
  CHECK(in_order == enough);
}

TEST_CASE("beside those who wait in order, one who barges has it too") {
  const Fleet& fleet = three_nodes();
  Grants grants;
  const Client holder = start_client(fleet);
  const Client orderly = start_client(fleet);
  const Client barging = start_client(fleet);
  Lease held = must(holder.lock("mixed").acquire());
  for (int i = 0; i < 4; ++i) wait_as(i, orderly, grants, "mixed");
  REQUIRE(queue_becomes(fleet, "mixed", 1));
  const AcquireOptions out_of_turn{.wait = forever, .ordering = Ordering::barging};
  wait_as(10, barging, grants, "mixed", out_of_turn);
  wait_as(11, barging, grants, "mixed", out_of_turn);
  must(held.release());
  auto all = grants.await(6);
  std::ranges::sort(all);
  CHECK(in_words(all) == "0 1 2 3 10 11");
}

/// How often scripts have been run on a node.
double script_calls(const Fleet& fleet, std::size_t node) {
  const std::string field = "cmdstat_evalsha:calls=";
  const std::string text = fleet.run(node, {"INFO", "commandstats"});
  const auto at = text.find(field);
  return at == std::string::npos ? 0 : std::stod(text.substr(at + field.size()));
}

TEST_CASE("fifty calls of one client that barge ask as often as two, and are all served") {
  const Fleet& fleet = three_nodes();
  Grants grants;
  const Client holder = start_client(fleet);
  ClientOptions options = options_for(fleet.uris());
  options.ordering = Ordering::barging;
  options.retry_min = 20ms;
  options.retry_max = options.retry_cap = 60ms;
  const Client client = start_client(options);
  Lease held = must(holder.lock("barging crowd").acquire({.renewal = Renewal::never}));
  const double before = script_calls(fleet, 0);
  const auto start = BootClock::now();
  for (int i = 0; i < 50; ++i) wait_as(i, client, grants, "barging crowd");
  // Slowness makes them fewer, and the time longer.
  constexpr int polls = 20;
  REQUIRE(eventually([&] { return script_calls(fleet, 0) - before >= polls; }));
  const double asked = script_calls(fleet, 0) - before;
  const auto passed = BootClock::now() - start;
  CHECK(asked <= 2 * (passed / 20ms + 1) + 2);
  must(held.release());
  CHECK(grants.await(50).size() == 50);
  CHECK(soon_free_everywhere(fleet, "barging crowd"));
}

TEST_CASE("two hundred calls of one client are all served, by one entry at a node") {
  const Fleet& fleet = three_nodes();
  Grants grants;
  const Client holder = start_client(fleet);
  const Client client = start_client(fleet);
  Lease held = must(holder.lock("many").acquire());
  constexpr std::size_t many = 200;
  for (std::size_t i = 0; i < many; ++i) wait_as(static_cast<int>(i), client, grants, "many");
  REQUIRE(queue_becomes(fleet, "many", 1));
  must(held.release());
  std::size_t most = 0;
  while (grants.count() < many) {
    for (std::size_t node = 0; node < fleet.size(); ++node) {
      most = std::max(most, entries_on(fleet, node, "many"));
    }
  }
  CHECK(most == 1);
  // A few may have been late for their turn; in no order it would be every second one.
  const auto order = grants.await(many);
  std::size_t out_of_turn = 0;
  for (std::size_t i = 1; i < many; ++i) out_of_turn += order[i] < order[i - 1] ? 1 : 0;
  CHECK(out_of_turn < many / 10);
  CHECK(soon_free_everywhere(fleet, "many"));
  CHECK(eventually([&] { return queue_keys(fleet, "many") == 0; }));
}

TEST_CASE("a call that waited and ends leaves no entry behind") {
  const Fleet& fleet = three_nodes();
  const Client holder = start_client(fleet);
  const Client waiter = start_client(fleet);
  const Lease held = must(holder.lock("left").acquire());
  std::stop_source stop;
  AcquireOptions options{.wait = forever};
  Errc expected = Errc::timed_out;
  SUBCASE("by the end of its waiting time") {
    options.wait = 500ms;
  }
  SUBCASE("by its deadline") {
    options.deadline = BootClock::now() + 500ms;
  }
  SUBCASE("by a stop request") {
    expected = Errc::cancelled;
  }
  auto waiting = waiter.lock("left").async_acquire(options, stop.get_token()).as_future();
  if (expected == Errc::cancelled) {
    REQUIRE(queue_becomes(fleet, "left", 1));
    stop.request_stop();
  }
  CHECK(code_of(get_soon(waiting)) == expected);
  // Each node answers this behind what it was sent before.
  REQUIRE(Admin(waiter).inspect("left").has_value());
  CHECK(queue_keys(fleet, "left") == 0);
  CHECK(held.valid());
}

TEST_CASE("a client that ends leaves no entry of its calls behind") {
  const Fleet& fleet = three_nodes();
  const Client holder = start_client(fleet);
  std::optional<Client> waiter = start_client(fleet);
  const Lease held = must(holder.lock("ends").acquire());
  auto waiting = waiter->lock("ends").async_acquire({.wait = forever}).as_future();
  REQUIRE(queue_becomes(fleet, "ends", 1));
  let_queue_stay(fleet, "ends");
  waiter.reset();
  CHECK(code_of(get_soon(waiting)) == Errc::closed);
  CHECK(eventually([&] { return queue_keys(fleet, "ends") == 0; }));
  CHECK(held.valid());
}

}  // namespace
}  // namespace redlock::testing
