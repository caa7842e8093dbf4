// SPDX-License-Identifier: MIT
// Durations and times at the ends of their types, from callers and from nodes: they mean what they
// say, and overflow nothing (the address and undefined-behaviour sanitizers run this file, too).
#include <limits>
#include <ratio>

#include "integration/api_fixture.hpp"
#include "support/stub_server.hpp"

namespace redlock::testing {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

/// Whether an attempt on a lock that somebody else holds ended by itself; it must not wait.
template <typename Duration>
bool refused_at_once(const Fleet& fleet, Duration wait) {
  const auto client = start_client(fleet);
  auto holder = must(client.lock("a").acquire());
  std::promise<bool> answer;
  auto got = answer.get_future();
  std::thread caller([&] { answer.set_value(client.lock("a").try_lock_for(wait)); });
  const bool ended = got.wait_for(patience) == std::future_status::ready;
  static_cast<void>(holder.release());
  caller.join();
  return ended && !got.get();
}

/// Says when the first attempt has failed.
class FirstFailure : public Observer {
 public:
  void on_attempt(std::string_view /*name*/, const Errc* code,
                  const std::vector<NodeVote>& /*votes*/,
                  std::chrono::nanoseconds /*elapsed*/) override {
    if (code != nullptr && !told_.exchange(true)) failed_.set_value();
  }
  [[nodiscard]] std::future<void> failed() { return failed_.get_future(); }

 private:
  std::atomic<bool> told_ = false;
  std::promise<void> failed_;
};

/// Whether a call that began while somebody else held the lock went on after its first attempt.
template <typename Try>
bool waited_for(const Fleet& fleet, Try attempt) {
  const auto observer = std::make_shared<FirstFailure>();
  auto options = options_for(fleet.uris());
  options.observer = observer;
  const auto client = start_client(options);
  const auto other = start_client(fleet);
  auto holder = must(other.lock("a").acquire());
  auto got = std::async(std::launch::async, [&] { return attempt(client.lock("a")); });
  auto failed = observer->failed();
  REQUIRE(failed.wait_for(patience) == std::future_status::ready);
  static_cast<void>(holder.release());
  return get_soon(got);
}

TEST_CASE("a negative time is one attempt, however long it is") {
  const auto& fleet = three_nodes();
  CHECK(refused_at_once(fleet, -1ns));
  CHECK(refused_at_once(fleet, hours::min()));
  CHECK(refused_at_once(fleet, hours(-2'562'047'788'016)));  // as milliseconds it is positive
  CHECK(refused_at_once(fleet, milliseconds::min()));
  CHECK(refused_at_once(fleet, std::chrono::nanoseconds::min()));
  CHECK(refused_at_once(fleet, std::chrono::years::min()));
  CHECK(refused_at_once(fleet, std::chrono::duration<double>(-1e300)));
  CHECK(refused_at_once(fleet, std::chrono::duration<unsigned>(0)));
  using Seconds = std::chrono::duration<double>;
  CHECK(refused_at_once(fleet, Seconds(std::numeric_limits<double>::quiet_NaN())));
  CHECK(refused_at_once(fleet, Seconds(-std::numeric_limits<double>::infinity())));
  using Thirds = std::chrono::duration<std::int64_t, std::ratio<1, 3>>;
  CHECK(refused_at_once(fleet, Thirds::min()));
}

TEST_CASE("a time too long for milliseconds is waiting for ever") {
  const auto& fleet = three_nodes();
  const auto waits = [&](auto wait) {
    return waited_for(fleet, [wait](RedLock lock) { return lock.try_lock_for(wait); });
  };
  CHECK(waits(hours::max()));
  CHECK(waits(hours(2'562'047'788'016)));
  CHECK(waits(forever));
  CHECK(waits(std::chrono::duration<std::uint64_t>::max()));
  CHECK(waits(std::chrono::duration<double>(std::numeric_limits<double>::infinity())));
  using Thirds = std::chrono::duration<std::int64_t, std::ratio<1, 3>>;
  CHECK(waits(Thirds::max()));
}

TEST_CASE("a moment at the end of its clock's type is reached never, one at its start was") {
  const auto& fleet = three_nodes();
  const auto waits = [&](auto when) {
    return waited_for(fleet, [when](RedLock lock) { return lock.try_lock_until(when); });
  };
  using Clock = std::chrono::system_clock;
  CHECK(waits(Clock::time_point::max()));
  CHECK(waits(std::chrono::time_point<Clock, hours>::max()));
  CHECK(waits(BootClock::time_point::max()));
  const auto client = start_client(fleet);
  const auto holder = must(client.lock("a").acquire());
  CHECK_FALSE(client.lock("a").try_lock_until(Clock::time_point::min()));
  CHECK_FALSE(client.lock("a").try_lock_until(std::chrono::time_point<Clock, hours>::min()));
  CHECK_FALSE(client.lock("a").try_lock_until(BootClock::time_point::min()));
}

TEST_CASE("the ends of every duration of a call are refused or mean what they say") {
  const auto client = start_client(three_nodes());
  auto lock = client.lock("a");
  for (const auto end : {milliseconds::min(), milliseconds::max()}) {
    CHECK(code_of(lock.acquire({.lease = end})) == Errc::invalid_argument);
    CHECK(code_of(lock.acquire({.min_validity = end})) == Errc::invalid_argument);
    CHECK(code_of(lock.acquire({.max_hold = end})) == Errc::invalid_argument);
    CHECK_THROWS(lock.lock(end));
  }
  CHECK(code_of(lock.acquire({.wait = milliseconds::min()})) == Errc::invalid_argument);
  const auto past = BootClock::time_point::min();
  CHECK(code_of(lock.acquire({.wait = forever, .deadline = past})) == Errc::timed_out);

  const auto never = BootClock::time_point::max();
  auto lease = must(lock.acquire({.wait = forever, .deadline = never}));
  CHECK(code_of(lease.extend(milliseconds::max())) == Errc::invalid_argument);
  CHECK(code_of(lease.extend(milliseconds::min())) == Errc::invalid_argument);
  CHECK(lease.extend(10s).has_value());
  const Admin admin(client);
  CHECK(must(admin.inspect("a", milliseconds::max())).verdict == Verdict::held);
  CHECK(must(admin.inspect("a", milliseconds::min())).nodes.size() == 3);

  auto ended = start_client(three_nodes());
  CHECK(ended.close(milliseconds::min()).has_value());
  ended = start_client(three_nodes());
  CHECK(ended.close(milliseconds::max()).has_value());
}

TEST_CASE("the ends of every duration of a client are refused") {
  using Member = milliseconds ClientOptions::*;
  for (const Member member :
       {&ClientOptions::lease, &ClientOptions::max_lease, &ClientOptions::node_timeout,
        &ClientOptions::min_validity, &ClientOptions::retry_min, &ClientOptions::retry_max,
        &ClientOptions::retry_cap, &ClientOptions::resolve_timeout,
        &ClientOptions::connect_timeout}) {
    for (const auto end : {milliseconds::min(), milliseconds::max()}) {
      auto options = options_for({"redis://127.0.0.1:1"});
      options.*member = end;
      CHECK(code_of(Client::create(options)) == Errc::invalid_argument);
    }
  }
}

/// A node whose numbers are as large as a damaged one may say.
StubServer damaged_node(const std::string& number) {
  return StubServer([number](const RedisCommand& command) -> StubReply {
    if (is(command, "TIME")) return array({bulk(number), bulk("0")});
    if (is(command, "PTTL")) return ":" + number + "\r\n";
    if (is(command, "HGETALL") && contains(command.back(), "redlock:lock:")) {
      return array({bulk("owner"), bulk(number)});
    }
    if (is(command, "HGETALL")) return array({});
    if (is(command, "INFO")) {
      return bulk("redis_version:7.0.15\r\nrun_id:" + std::string(40, 'a') +
                  "\r\nrole:master\r\naof_enabled:1\r\nmaxmemory_policy:noeviction\r\n"
                  "uptime_in_seconds:" +
                  number + "\r\n");
    }
    return like_redis(command);
  });
}

TEST_CASE("a node whose clock and uptime are absurd is examined like any other") {
  const auto healthy = damaged_node("1790000000");
  const auto damaged = damaged_node("999999999999");
  auto options = options_for({healthy.uri(), damaged.uri()});
  options.quarantine = Quarantine::on;
  const auto client = start_client(options);
  const auto examination = must(Admin(client).examine());
  const auto& node = examination.nodes[1];
  REQUIRE(node.clock_offset.has_value());
  CHECK(*node.clock_offset > hours(24 * 365 * 30'000));
  CHECK(node.uptime.value_or(0s) > 0s);
  const auto apart = [](const Problem& problem) { return contains(problem.what, "ms apart"); };
  const auto found = std::find_if(examination.problems.begin(), examination.problems.end(), apart);
  REQUIRE(found != examination.problems.end());
  CHECK_MESSAGE(contains(found->what, "are 99"), found->what);
}

TEST_CASE("the largest numbers of a node overflow nothing") {
  for (const auto* number :
       {"9223372036854775807", "18446744073709551615", "-9223372036854775808"}) {
    CAPTURE(number);
    const auto damaged = damaged_node(number);
    auto options = options_for({damaged.uri()});
    options.quarantine = Quarantine::on;
    const auto client = start_client(options);
    const Admin admin(client);
    const auto examination = must(admin.examine());
    CHECK(examination.nodes[0].uptime.value_or(0s) >= 0s);
    CHECK(must(admin.inspect("a")).nodes.size() == 1);
    CHECK(admin.list().has_value());
    CHECK_FALSE(client.lock("a").acquire({.wait = 100ms}).has_value());
  }
}

}  // namespace
}  // namespace redlock::testing
