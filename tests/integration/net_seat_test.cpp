// SPDX-License-Identifier: MIT
// A caller that runs the loop itself, over real sockets. In which orders the threads may meet is in
// tests/net.
#include <csignal>

#include "net/one_shot_event.hpp"
#include "net_core_fixture.hpp"

using namespace redlock::net;

namespace {

CoreConfig with_seat(const std::vector<std::string>& uris) {
  CoreConfig config = Running::config_for(uris);
  config.callers_may_drive = [] { return true; };
  return config;
}

/// Takes the seat and asks the node from there: the answer, and on which thread it came.
std::pair<Answer, std::thread::id> ask_from_seat(Core& core, const std::function<void()>& before) {
  REQUIRE(eventually([&] { return core.take_seat(); }));
  OneShotEvent event;
  std::optional<Answer> answer;
  std::thread::id where;
  FunctionTask task([&] {
    before();
    core.ask(0, {"PING"}, std::chrono::seconds(20), [&](engine::Instant, Answer what) {
      answer.emplace(std::move(what));
      where = std::this_thread::get_id();
      event.give();
    });
  });
  bool meanwhile = false;
  core.drive(task, event, meanwhile);
  event.await();
  CHECK_FALSE(meanwhile);
  return {std::move(*answer), where};
}

TEST_CASE("a caller in the seat sends and receives on its own thread, again and again") {
  const Fleet fleet({.nodes = 1});
  Running client(with_seat(fleet.uris()));
  client.sink.await_up(0);
  bool here = false;
  for (int i = 0; i < 200; ++i) {
    const auto [answer, where] = ask_from_seat(*client.core, [] {});
    REQUIRE(answer.has_value());
    here = here || where == std::this_thread::get_id();
  }
  CHECK(here);  // unless there was always something for the loop thread to do
}

TEST_CASE("a caller in the seat leaves it to the task of somebody else, and runs none") {
  Running client(with_seat({"redis://127.0.0.1:1"}));
  Core& core = *client.core;
  REQUIRE(eventually([&] { return core.take_seat(); }));
  std::promise<void> begun;
  FunctionTask own([&] { begun.set_value(); });
  std::promise<std::thread::id> ran;
  FunctionTask other([&] { ran.set_value(std::this_thread::get_id()); });
  std::thread poster([&] {
    begun.get_future().wait();
    CHECK_FALSE(core.take_seat());
    CHECK(core.post(other));
  });
  const OneShotEvent never;
  bool meanwhile = false;
  core.drive(own, never, meanwhile);
  poster.join();
  const auto where = ran.get_future().get();
  CHECK(where != std::this_thread::get_id());
}

TEST_CASE("the loop thread keeps the seat if callers may not drive") {
  CoreConfig config = Running::config_for({"redis://127.0.0.1:1"});
  SUBCASE("ever") {}
  SUBCASE("now") {
    config.callers_may_drive = [] { return false; };
  }
  Running client(std::move(config));
  for (int i = 0; i < 100; ++i) {
    CHECK_FALSE(client.core->take_seat());
    client.on_loop([] {});
  }
}

TEST_CASE("a caller in the seat that writes to a node that is gone gets an error, not SIGPIPE") {
  struct sigaction before {};
  struct sigaction fatal {};
  fatal.sa_handler = SIG_DFL;
  sigaction(SIGPIPE, &fatal, &before);
  Fleet fleet({.nodes = 1, .unix_sockets = true});
  Running client(with_seat({fleet.unix_uri(0)}));
  client.sink.await_up(0);
  const auto [answer, where] = ask_from_seat(*client.core, [&] { fleet.kill(0); });
  REQUIRE_FALSE(answer.has_value());
  CHECK(contains(answer.error().detail, "broken pipe"));
  CHECK(where == std::this_thread::get_id());
  sigaction(SIGPIPE, &before, nullptr);
}

}  // namespace
