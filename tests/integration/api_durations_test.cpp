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
using Seconds = std::chrono::duration<double>;
using Thirds = std::chrono::duration<std::int64_t, std::ratio<1, 3>>;

/// Calls for a lock that another client has.
struct Refused {
  Client client = start_client(three_nodes());
  Client other = start_client(three_nodes());

  /// Whether the call, which must not wait, ended by itself.
  template <typename Call>
  bool ends_at_once(const Call& call) {
    const Lease held = must(other.lock("a").acquire({.wait = patience}));
    return !get_soon(begin(call));
  }
  /// Whether it waits until it gets the lock.
  template <typename Call>
  bool waits(const Call& call) {
    Lease held = must(other.lock("a").acquire({.wait = patience}));
    auto got = begin(call);
    REQUIRE(soon_waited_for(three_nodes(), "a", 1));
    held = Lease();
    return get_soon(got);
  }

 private:
  template <typename Call>
  std::future<bool> begin(const Call& call) {
    return std::async(std::launch::async, [&] { return call(client.lock("a")); });
  }
};

TEST_CASE("a time that is over is one attempt, one too long for its type waiting for ever") {
  Refused refused;
  const auto at_once = [&](auto wait) {
    return refused.ends_at_once([&](RedLock lock) { return lock.try_lock_for(wait); });
  };
  CHECK(at_once(-1ns));
  CHECK(at_once(hours::min()));
  CHECK(at_once(hours(-2'562'047'788'016)));  // as milliseconds it is positive
  CHECK(at_once(milliseconds::min()));
  CHECK(at_once(std::chrono::nanoseconds::min()));
  CHECK(at_once(std::chrono::years::min()));
  CHECK(at_once(Seconds(-1e300)));
  CHECK(at_once(std::chrono::duration<unsigned>(0)));
  CHECK(at_once(Seconds(std::numeric_limits<double>::quiet_NaN())));
  CHECK(at_once(Seconds(-std::numeric_limits<double>::infinity())));
  CHECK(at_once(Thirds::min()));

  const auto waits = [&](auto wait) {
    return refused.waits([&](RedLock lock) { return lock.try_lock_for(wait); });
  };
  CHECK(waits(hours::max()));
  CHECK(waits(hours(2'562'047'788'016)));
  CHECK(waits(forever));
  CHECK(waits(std::chrono::duration<std::uint64_t>::max()));
  CHECK(waits(Seconds(std::numeric_limits<double>::infinity())));
  CHECK(waits(Thirds::max()));

  const auto until = [](auto when) {
    return [when](RedLock lock) { return lock.try_lock_until(when); };
  };
  using Clock = std::chrono::system_clock;
  CHECK(refused.waits(until(Clock::time_point::max())));
  CHECK(refused.waits(until(std::chrono::time_point<Clock, hours>::max())));
  CHECK(refused.waits(until(BootClock::time_point::max())));
  CHECK(refused.ends_at_once(until(Clock::time_point::min())));
  CHECK(refused.ends_at_once(until(std::chrono::time_point<Clock, hours>::min())));
  CHECK(refused.ends_at_once(until(BootClock::time_point::min())));
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
  const auto until = lease.valid_until();
  for (const auto refused : {milliseconds::min(), 0ms, 60'001ms, milliseconds::max()}) {
    CHECK(code_of(lease.extend(refused)) == Errc::invalid_argument);
  }
  CHECK(lease.valid_until() == until);
  CHECK(lease.valid());
  CHECK(lease.extend(10s).has_value());
  const Admin admin(client);
  CHECK(must(admin.inspect("a", milliseconds::max())).verdict == Verdict::held);
  CHECK(must(admin.inspect("a", milliseconds::min())).nodes.size() == 3);

  for (const auto end : {milliseconds::min(), milliseconds::max()}) {
    CHECK(start_client(three_nodes()).close(end).has_value());
  }
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

TEST_CASE("absurd clocks, uptimes and times of a node overflow nothing, and are examined") {
  const auto healthy = damaged_node("1790000000");
  for (const auto* number :
       {"999999999999", "9223372036854775807", "18446744073709551615", "-9223372036854775808"}) {
    CAPTURE(number);
    const auto damaged = damaged_node(number);
    auto options = options_for({damaged.uri(), healthy.uri()});
    options.quarantine = Quarantine::on;
    const auto client = start_client(options);
    const Admin admin(client);
    const auto examination = must(admin.examine());
    CHECK(examination.nodes[0].uptime.value_or(0s) >= 0s);
    CHECK(must(admin.inspect("a")).nodes.size() == 2);
    CHECK(admin.list().has_value());
    CHECK_FALSE(client.lock("a").acquire({.wait = 100ms}).has_value());
    if (number != std::string_view("999999999999")) continue;

    const auto& offset = examination.nodes[0].clock_offset;
    REQUIRE(offset.has_value());
    CHECK(*offset > hours(24 * 365 * 30'000));
    CHECK(examination.nodes[0].uptime.value_or(0s) > 0s);
    const auto found = std::ranges::find_if(examination.problems, [](const Problem& problem) {
      return contains(problem.what, "ms apart");
    });
    REQUIRE(found != examination.problems.end());
    CHECK(found->severity == Severity::warning);
    CHECK_MESSAGE(contains(found->what, "are 99"), found->what);
  }
}

}  // namespace
}  // namespace redlock::testing
