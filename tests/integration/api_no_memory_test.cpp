// SPDX-License-Identifier: MIT
// What a program gets that has no memory for a moment: its life with a client is repeated, and each
// time another allocation fails, of whichever thread. Every call must return. Then the client
// either goes on, or has ended as a whole: every call says so, and every lease is lost.
#include <cstdlib>
#include <uv.h>

#include <redlock/redlock.h>

#include "integration/api_fixture.hpp"
#include "support/failing_new.hpp"

namespace redlock::testing {
namespace {

/// Ends the program if one step takes for ever, and says which.
class Watchdog {
 public:
  Watchdog() : watch_([this](const std::stop_token& over) { run(over); }) {}

  /// Before the allocation of this number fails.
  void next_round(std::size_t number, std::size_t failures) {
    number_ = number;
    failures_ = failures;
    step("begin");
  }
  void step(const char* name) {
    step_ = name;
    ++steps_;
  }

 private:
  void run(const std::stop_token& over) const {
    auto seen = steps_.load();
    auto since = std::chrono::steady_clock::now();
    while (!over.stop_requested()) {
      std::this_thread::sleep_for(20ms);
      const auto now = std::chrono::steady_clock::now();
      if (steps_ != seen) {
        seen = steps_;
        since = now;
      } else if (now - since > patience) {
        std::fprintf(stderr, "allocation %zu, and %zu in all, failed: \"%s\" does not return\n",
                     number_.load(), failures_.load(), step_.load());
        std::abort();
      }
    }
  }

  std::atomic<std::size_t> number_{0};
  std::atomic<std::size_t> failures_{0};
  std::atomic<const char*> step_{"begin"};
  std::atomic<std::size_t> steps_{0};
  std::jthread watch_;  // the last member: it begins when the others are there
};

Watchdog& watchdog() {
  static Watchdog only;
  return only;
}

/// The result; nothing if the call was left by an exception, as documented.
template <typename Call>
auto attempt(const char* step, const Call& call) -> std::optional<decltype(call())> {
  watchdog().step(step);
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return std::nullopt;
  } catch (const std::system_error&) {  // of lock()
    return std::nullopt;
  }
}

template <typename T>
bool succeeded(const std::optional<Result<T>>& result) {
  return result && result->has_value();
}

/// The nodes, and names that no earlier round has used: what one left ends with its lease.
struct Nodes {
  std::vector<std::string> next_names(std::size_t count) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < count; ++i) names.push_back("walk-" + std::to_string(++used_));
    return names;
  }
  [[nodiscard]] bool soon_all_free() const {
    watchdog().step("the end of the leases that were left");
    const std::string count = "return #redis.call('KEYS', 'redlock:lock:{walk-*}')";
    return eventually([&] {
      for (std::size_t node = 0; node < fleet.size(); ++node) {
        if (fleet.run(node, {"EVAL", count, "0"}) != "0") return false;
      }
      return true;
    });
  }

  const Fleet fleet{{.nodes = 3}};
  ClientOptions options = [this] {
    ClientOptions short_lived = options_for(fleet.uris());
    short_lived.lease = 2s;
    short_lived.warn_on_stderr = false;
    return short_lived;
  }();

 private:
  std::size_t used_ = 0;
};

/// After the failures.
void check_ended_whole(const Error& error) {
  CHECK(error.code == Errc::closed);
  CHECK_MESSAGE(contains(error.message, "out of memory"), error.message);
}

void check_goes_on_or_ended(Client& client, const std::string& name, const Lease& held) {
  watchdog().step("acquire after the failure");
  const Result<Lease> lease = client.lock(name).acquire();
  if (lease) return;
  check_ended_whole(lease.error());
  if (held) {
    CHECK(held.lost().stop_requested());
    CHECK(held.loss_reason().has_value());
    CHECK_FALSE(held.valid());
  }
  watchdog().step("close after the failure");
  const auto closed = client.close();
  REQUIRE_FALSE(closed.has_value());
  check_ended_whole(closed.error());
}

/// Every way to take and leave a lock, one after the other. Whether an allocation failed meanwhile.
bool live(Nodes& nodes, std::size_t number, std::size_t failures) {
  const auto names = nodes.next_names(4);
  std::optional<Result<Client>> created;
  std::stop_source stop;
  Lease held;
  bool some_failed = false;
  {
    const FailingAllocations failing(number, failures);
    created = attempt("create", [&] { return Client::create(nodes.options); });
    if (!succeeded(created)) return failing.some_failed();
    Client& client = **created;
    auto lease = attempt("acquire", [&] { return client.lock(names[0]).acquire(); });
    auto waiting = attempt("wait", [&] {
      return client.lock(names[0]).async_acquire({.wait = patience}, stop.get_token()).as_future();
    });
    auto cancelled = attempt("wait to be cancelled", [&] {
      return client.lock(names[0]).async_acquire({.wait = patience}, stop.get_token()).as_future();
    });
    if (succeeded(lease)) {
      attempt("extend", [&] { return (*lease)->extend(3s); });
      attempt("confirm", [&] { return (*lease)->confirm(); });
      attempt("lost", [&] { return (*lease)->lost().stop_requested(); });
      attempt("release", [&] { return (*lease)->release(); });
    }
    attempt("cancel", [&] { return stop.request_stop(); });
    for (auto* future : {&waiting, &cancelled}) {
      if (*future) attempt("the answer to who waits", [&] { return (*future)->get().has_value(); });
    }
    attempt("lock and unlock, twice", [&] {
      RedLock lock = client.lock(names[1]);
      lock.lock();
      watchdog().step("the second lock");
      lock.lock();
      watchdog().step("unlock");
      lock.unlock();
      watchdog().step("the second unlock");
      lock.unlock();
      return true;
    });
    auto kept = attempt("acquire again", [&] { return client.lock(names[2]).acquire(); });
    if (succeeded(kept)) held = std::move(**kept);
    some_failed = failing.some_failed();
  }
  check_goes_on_or_ended(**created, names[3], held);
  watchdog().step("destroy");
  return some_failed;
}

/// The end of a client that has leases and callers.
bool end(Nodes& nodes, std::size_t number, std::size_t failures) {
  const auto names = nodes.next_names(2);
  Client client = start_client(nodes.options);
  Lease held = must(client.lock(names[0]).acquire());
  const auto lost = held.lost();
  auto waiting = client.lock(names[0]).async_acquire({.wait = patience}).as_future();
  bool some_failed = false;
  {
    const FailingAllocations failing(number, failures);
    const auto report = attempt("close", [&] { return client.close(); });
    attempt("the answer to who waits", [&] { return waiting.get().has_value(); });
    some_failed = failing.some_failed();
  }
  CHECK(lost.stop_requested());
  watchdog().step("acquire after the end");
  CHECK(code_of(client.lock(names[1]).acquire()) == Errc::closed);
  watchdog().step("destroy");
  return some_failed;
}

/// Between two renewals. Nothing if the machine stood still for a lease, so that none was made.
std::optional<bool> renew(Nodes& nodes, std::size_t number, std::size_t failures) {
  const auto names = nodes.next_names(2);
  Client client = start_client(nodes.options);
  Lease held = must(client.lock(names[0]).acquire(
      {.lease = 300ms, .renewal = Renewal::always, .wait = patience}));
  const auto lost = held.lost();
  bool some_failed = false;
  {
    const FailingAllocations failing(number, failures);
    const auto until = held.valid_until();
    watchdog().step("renew");
    while (!lost.stop_requested() && held.valid_until() == until) std::this_thread::sleep_for(1ms);
    some_failed = failing.some_failed();
  }
  if (lost.stop_requested() && !some_failed) return std::nullopt;
  if (!lost.stop_requested()) CHECK(held.valid());
  check_goes_on_or_ended(client, names[1], held);
  watchdog().step("destroy");
  return some_failed;
}

bool hold(Nodes& nodes, std::size_t number, std::size_t failures) {
  std::optional<bool> some_failed;
  within_a_lease([&] {
    some_failed = renew(nodes, number, failures);
    return some_failed.has_value();
  });
  return *some_failed;
}

/// On a loop of the program's own, which this thread runs.
class OwnLoop {
 public:
  OwnLoop() { uv_loop_init(&uv); }
  ~OwnLoop() {
    watchdog().step("run the loop to its end");
    uv_run(&uv, UV_RUN_DEFAULT);
    CHECK(uv_loop_close(&uv) == 0);
  }
  OwnLoop(const OwnLoop&) = delete;
  OwnLoop& operator=(const OwnLoop&) = delete;

  /// Runs the loop until the operation has its result, or could not be started.
  template <typename Start>
  auto await(const char* step, const Start& start) {
    using Answer = decltype(start().as_future().get());
    std::optional<Answer> answer;
    const auto started = attempt(step, [&] {
      start().start([this, &answer](Answer result) {
        answer.emplace(std::move(result));
        uv_stop(&uv);
      });
      return true;
    });
    while (started && !answer) uv_run(&uv, UV_RUN_DEFAULT);
    return answer;
  }

  uv_loop_t uv{};
};

bool live_on_a_loop(Nodes& nodes, std::size_t number, std::size_t failures) {
  const auto names = nodes.next_names(2);
  OwnLoop loop;
  std::optional<Result<Client>> created;
  std::optional<Result<Lease>> kept;
  std::optional<Result<CloseReport>> closed;
  bool some_failed = false;
  {
    const FailingAllocations failing(number, failures);
    created = attempt("create", [&] { return Client::create(nodes.options, &loop.uv); });
    if (!succeeded(created)) return failing.some_failed();
    Client& client = **created;
    auto lease = loop.await("acquire", [&] { return client.lock(names[0]).async_acquire(); });
    if (succeeded(lease)) {
      loop.await("extend", [&] { return (*lease)->async_extend(3s); });
      loop.await("release", [&] { return (*lease)->async_release(); });
    }
    kept = loop.await("acquire again", [&] { return client.lock(names[1]).async_acquire(); });
    closed = loop.await("close", [&] { return client.async_close(); });
    some_failed = failing.some_failed();
  }
  if (closed && succeeded(kept)) CHECK((*kept)->loss_reason().has_value());
  if (closed && !*closed) CHECK(closed->error().code == Errc::closed);
  return some_failed;
}

bool live_in_c(Nodes& nodes, std::size_t number, std::size_t failures) {
  const auto names = nodes.next_names(1);
  std::string uris;
  for (const std::string& uri : nodes.options.nodes) uris += uri + ' ';
  redlock_client_options options = REDLOCK_CLIENT_OPTIONS_INIT;
  options.nodes = uris.c_str();
  options.without_quarantine = options.without_warnings = 1;
  options.node_timeout_ms = options.connect_timeout_ms = 10'000;
  options.lease_ms = 2'000;
  const FailingAllocations failing(number, failures);
  redlock_client* client = nullptr;
  watchdog().step("redlock_client_create");
  const redlock_status created = redlock_client_create(&options, &client);
  CHECK((created == REDLOCK_OK) == (client != nullptr));
  if (client == nullptr) return failing.some_failed();
  redlock_lease* lease = nullptr;
  watchdog().step("redlock_acquire");
  const redlock_status acquired = redlock_acquire(client, names[0].c_str(), nullptr, &lease);
  CHECK((acquired == REDLOCK_OK) == (lease != nullptr));
  watchdog().step("redlock_lease_lost_fd");
  static_cast<void>(redlock_lease_lost_fd(lease));
  watchdog().step("redlock_lease_confirm");
  static_cast<void>(redlock_lease_confirm(lease));
  watchdog().step("redlock_lease_release");
  static_cast<void>(redlock_lease_release(lease, nullptr));
  redlock_lease_destroy(lease);
  watchdog().step("redlock_client_destroy");
  redlock_client_destroy(client);
  return failing.some_failed();
}

/// For each allocation of a life, until one goes by without so many.
void walk(bool (&life)(Nodes&, std::size_t, std::size_t),
          const std::shared_ptr<Observer>& observer = {}) {
  Nodes nodes;
  nodes.options.observer = observer;
  for (const std::size_t failures : {std::size_t{1}, std::size_t{30}}) {
    std::size_t number = 0;
    bool some_failed = true;
    while (some_failed) {
      watchdog().next_round(++number, failures);
      CAPTURE(number);
      CAPTURE(failures);
      some_failed = life(nodes, number, failures);
    }
    MESSAGE(number << " rounds of " << failures << " failures");
    CHECK(number > 10);
  }
  CHECK(nodes.soon_all_free());
}

}  // namespace

TEST_CASE("no call waits for ever when an allocation fails, and the client goes on or ends whole") {
  walk(live);
}

TEST_CASE("the same where the client's own thread does all the work") {
  walk(live, std::make_shared<Observer>());
}

TEST_CASE("a client ends, and every caller of it has an answer, when an allocation fails") {
  walk(end);
}

TEST_CASE("a lease is renewed or lost when an allocation fails") {
  walk(hold);
}

TEST_CASE("a loop of the program's own goes on, and is given back, when an allocation fails") {
  walk(live_on_a_loop);
}

TEST_CASE("every function of C returns when an allocation fails") {
  walk(live_in_c);
}

}  // namespace redlock::testing
