// SPDX-License-Identifier: MIT
// Waiting for locks on real nodes: which waiter has the lock next, what waiters learn, and what is
// left of waiters that give up or are killed, and where users may not use the lines. (Of nodes that
// fail meanwhile: tests/simulation.)
#include <csignal>

#include "integration/api_event_log.hpp"
#include "integration/cli_process.hpp"
#include "support/proxy.hpp"

namespace redlock::testing {
namespace {

/// How many of the two keys of the line there are, on all nodes.
std::size_t queue_keys(const Fleet& fleet, const std::string& name) {
  std::size_t count = 0;
  for (std::size_t node = 0; node < fleet.size(); ++node) {
    const auto keys = fleet.run(
        node, {"EXISTS", "redlock:line:{" + name + "}", "redlock:waiters:{" + name + "}"});
    count += std::stoul(keys);
  }
  return count;
}

/// As a failed check prints it.
std::string in_words(const std::vector<int>& order) {
  std::string text;
  for (const int who : order) text += (text.empty() ? "" : " ") + std::to_string(who);
  return text;
}

/// Who has had the lock, in order.
class Grants {
 public:
  void note(int who) {
    const std::scoped_lock lock(mutex_);
    order_.push_back(who);
    changed_.notify_all();
  }
  /// As soon as there are that many: all, as words, whatever their order was.
  std::string await_sorted(std::size_t count) {
    auto all = await(count);
    std::ranges::sort(all);
    return in_words(all);
  }
  /// All of them, as soon as there are that many.
  std::vector<int> await(std::size_t count) {
    std::unique_lock lock(mutex_);
    REQUIRE(changed_.wait_for(lock, 2 * patience, [&] { return order_.size() >= count; }));
    return order_;
  }
  [[nodiscard]] std::size_t count() const {
    const std::scoped_lock lock(mutex_);
    return order_.size();
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int> order_;
};

constexpr int failed_to_wait = -1;

/// Waiters of a lock on nodes that are well, which one client holds first.
struct Waiters {
  const Fleet& fleet = three_nodes();
  Grants grants;
  Client holder = start_client(fleet);
};

/// Waits for the lock, and gives it back as soon as it has it. The client has to end before
/// `grants`.
void wait_as(int who, const Client& client, Grants& grants, const std::string& name) {
  client.lock(name)
      .async_acquire({.wait = forever})
      .start([&grants, who](const Result<Lease>& lease) {
        grants.note(lease ? who : failed_to_wait);
      });
}

/// In which order they have the lock of whom it is kept until all wait: two calls of each of three
/// clients, one after the other. Each client stands on every node for the first of its calls; nodes
/// do not see the other one, so only time lies between those.
std::string order_of_six(const Client& holder, const Fleet& fleet, const std::string& name) {
  Grants grants;
  Lease held = must(holder.lock(name).acquire({.wait = forever}));
  const std::array clients{start_client(fleet), start_client(fleet), start_client(fleet)};
  constexpr std::array<std::size_t, 6> client_of{2, 0, 1, 1, 0, 2};
  for (std::size_t i = 0; i < client_of.size(); ++i) {
    wait_as(static_cast<int>(i), clients[client_of[i]], grants, name);
    REQUIRE(soon_waited_for(fleet, name, std::min(i + 1, clients.size())));
    std::this_thread::sleep_for(5ms);  // more than the delays of messages differ
  }
  must(held.release());
  auto order = in_words(grants.await(6));
  CHECK(eventually([&] { return queue_keys(fleet, name) == 0; }));
  return order;
}

TEST_CASE_FIXTURE(
    Waiters, "those who wait have the lock in the order in which they came, of whichever client") {
  // A turn lasts 20 ms. On a busy machine somebody who was woken may be late for it, and others
  // have the lock first. So the order has to appear in one of a few rounds; by chance it would once
  // in 720. All are served in every round.
  std::string order;
  for (int round = 0; round < 10 && order != "0 1 2 3 4 5"; ++round) {
    order = order_of_six(holder, fleet, "in order");
    auto sorted = order;
    std::ranges::sort(sorted);
    REQUIRE(sorted == "     012345");
  }
  CHECK(order == "0 1 2 3 4 5");
}

TEST_CASE_FIXTURE(
    Waiters, "an observer is told of the place, once of the attempt that waits, and of the lock") {
  const Client first = start_client(fleet);
  const auto log = std::make_shared<EventLog>();
  const Client second = start_observed(fleet, log);
  Lease held = must(holder.lock("told").acquire());
  wait_as(1, first, grants, "told");
  REQUIRE(soon_waited_for(fleet, "told", 1));
  auto waiting = second.lock("told").async_acquire({.wait = forever}).as_future();
  REQUIRE(log->soon_has("waiting told 1"));
  const auto token_before = held.token();
  must(held.release());
  Lease lease = must(get_soon(waiting));
  CHECK(lease.token() > token_before);
  const auto token = std::to_string(lease.token());
  must(lease.release());
  CHECK(log->soon_has("released told " + token));
  const auto lines = log->lines();
  CHECK(std::ranges::count(lines.begin(), std::ranges::find(lines, "waiting told 1"),
                           "attempt told contended") == 0);
  CHECK(log->count("attempt told contended") >= 1);  // of each attempt that waits
  CHECK(log->count("attempt told granted") == 1);
  CHECK(log->count("acquired told " + token) == 1);
  CHECK(log->count("released told " + token) == 1);
}

TEST_CASE_FIXTURE(Waiters, "beside those who wait in order, one who barges has it too") {
  const Client orderly = start_client(fleet);
  const Client barging =
      start_client(fleet, [](ClientOptions& options) { options.ordering = Ordering::barging; });
  Lease held = must(holder.lock("mixed").acquire());
  for (int i = 0; i < 4; ++i) wait_as(i, orderly, grants, "mixed");
  REQUIRE(soon_waited_for(fleet, "mixed", 1));
  const int before = calls_of(fleet, 0, "evalsha");
  wait_as(10, barging, grants, "mixed");
  wait_as(11, barging, grants, "mixed");
  REQUIRE(eventually([&] { return calls_of(fleet, 0, "evalsha") >= before + 4; }));
  CHECK(waiters_on(fleet, 0, "mixed") == 1);  // none of those that barge
  must(held.release());
  CHECK(grants.await_sorted(6) == "0 1 2 3 10 11");
}

TEST_CASE_FIXTURE(Waiters,
                  "two hundred calls of one client are all served, by one entry at a node") {
  const Client client = start_client(fleet);
  Lease held = must(holder.lock("many").acquire());
  constexpr std::size_t many = 200;
  for (std::size_t i = 0; i < many; ++i) wait_as(static_cast<int>(i), client, grants, "many");
  REQUIRE(soon_waited_for(fleet, "many", 1));
  must(held.release());
  std::size_t most = 0;
  while (grants.count() < many) {
    for (std::size_t node = 0; node < fleet.size(); ++node) {
      most = std::max(most, waiters_on(fleet, node, "many"));
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

TEST_CASE_FIXTURE(Waiters, "a stop request ends a wait from the loop thread, and no lease") {
  const Client waiter = start_client(fleet);
  RedLock lock = waiter.lock("stopped");
  std::stop_source stop;
  {
    const Lease held = must(holder.lock("stopped").acquire());
    auto waiting = lock.async_acquire({.wait = forever}, stop.get_token()).as_future();
    waiter.lock("stopped").async_acquire().start([&](const auto&) { stop.request_stop(); });
    CHECK(code_of(get_soon(waiting)) == Errc::cancelled);
  }
  std::stop_source late;
  const Lease lease = must(lock.acquire({.wait = patience}, late.get_token()));
  late.request_stop();
  must(waiter.lock("another").acquire());  // the client was here since
  CHECK(lease.valid());
}

TEST_CASE_FIXTURE(Waiters, "a client that ends leaves no entry of its calls behind") {
  std::optional<Client> waiter = start_client(fleet);
  const Lease held = must(holder.lock("ends").acquire());
  auto waiting = waiter->lock("ends").async_acquire({.wait = forever}).as_future();
  REQUIRE(soon_waited_for(fleet, "ends", 1));
  // From now on what is left behind would stay: by itself a line is gone within seconds.
  for (const char* key : {"redlock:line:{ends}", "redlock:waiters:{ends}"}) {
    run_on_all(fleet, {"PERSIST", key});
  }
  waiter.reset();
  CHECK(code_of(get_soon(waiting)) == Errc::closed);
  CHECK(eventually([&] { return queue_keys(fleet, "ends") == 0; }));
  CHECK(held.valid());
}

/// A process of its own that waits for the lock, and keeps it.
struct OtherProcess {
  OtherProcess(const Fleet& fleet, const std::string& name)
      : command({"exec", name, "--node-timeout", "10s", "--", "sh", "-c", "echo held; read line"},
                nodes_variable(fleet.uris())) {}
  void end() const { command.write("go\n"); }
  /// Returns when it stands still.
  void stop() const {
    command.signal(SIGSTOP);
    int status = 0;
    REQUIRE(::waitpid(command.pid(), &status, WUNTRACED) == command.pid());
    REQUIRE(WIFSTOPPED(status));
  }

  Running command;
};

TEST_CASE_FIXTURE(Waiters, "a waiter that was killed or stands still is passed over at once") {
  for (const bool is_killed : {true, false}) {
    CAPTURE(is_killed);
    const std::string name = is_killed ? "killed" : "stopped";
    Grants grants_of_second;
    const Client second = start_client(fleet);
    Lease held = must(holder.lock(name).acquire());
    OtherProcess first(fleet, name);
    REQUIRE(soon_waited_for(fleet, name, 1));
    wait_as(2, second, grants_of_second, name);
    REQUIRE(soon_waited_for(fleet, name, 2));
    is_killed ? first.command.signal(SIGKILL) : first.stop();
    must(held.release());
    CHECK(in_words(grants_of_second.await(1)) == "2");  // after a moment, not a lease
    if (!is_killed) {
      first.command.signal(SIGCONT);
      CHECK(first.command.await_out("held"));
      first.end();
      CHECK(first.command.wait().status == 0);
    }
    CHECK(eventually([&] { return queue_keys(fleet, name) == 0; }));
  }
}

TEST_CASE("where the rights to subscribe, or to all of the line, are missing, waiters are served") {
  struct Case {
    std::vector<std::string> missing;
    bool polls;  // in the line; otherwise the waiters barge
  };
  for (const Case& lack :
       {Case{{"-subscribe"}, true},
        Case{{"-hello", "-subscribe", "-publish", "-hmget", "-zadd", "-zrange", "-zrank", "-zrem"},
             false}}) {
    CAPTURE(lack.polls);
    const Fleet fleet({.nodes = 3});
    std::vector<std::string> command{"ACL", "SETUSER", "default"};
    std::ranges::copy(lack.missing, std::back_inserter(command));
    run_on_all(fleet, command);
    Grants grants;
    const Client holder = start_client(fleet);
    const Client one = start_client(fleet);
    const Client another = start_client(fleet);
    Lease held = must(holder.lock("seat").acquire());
    for (int i = 0; i < 6; ++i) wait_as(i, i % 2 == 0 ? one : another, grants, "seat");
    // What polls is forgotten soon if it does not ask again.
    if (lack.polls) REQUIRE(eventually([&] { return waiters_on(fleet, 0, "seat") > 0; }));
    must(held.release());
    CHECK(grants.await_sorted(6) == "0 1 2 3 4 5");
    if (!lack.polls) CHECK(queue_keys(fleet, "seat") == 0);
    CHECK(eventually([&] { return queue_keys(fleet, "seat") == 0; }));
  }
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
