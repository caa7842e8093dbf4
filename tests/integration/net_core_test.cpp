// SPDX-License-Identifier: MIT
// The core as a whole: its thread, its stop, signals, descriptors, and the engine driven over real
// nodes. A caller that runs the loop itself (in which orders the threads may meet is in tests/net).
// And two nodes of a list that are one server under two addresses (of nodes that only claim to be
// another: tests/wire).
#include <fcntl.h>
#include <filesystem>
#include <iterator>
#include <signal.h>
#include <sstream>
#include <unistd.h>

#include "net/one_shot_event.hpp"
#include "net_core_fixture.hpp"

using namespace redlock::net;

namespace {

/// The directories in /proc of the threads of this process that have this name.
std::vector<std::filesystem::path> threads_named(const std::string& name) {
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    if (text_in(entry.path() / "comm") == name + "\n") found.push_back(entry.path());
  }
  return found;
}

/// As users.acl says of applications that are not to touch each other's locks.
void permit_application(const Fleet& fleet) {
  const char* const rights =
      "ACL SETUSER app on >word resetkeys resetchannels &redlock:wake:* ~redlock:lock:{app:* "
      "~redlock:node ~redlock:node:* ~redlock:line:{app:* -@all ~redlock:fence:* +client|id "
      "+client|kill +client|setname +config|get +eval +evalsha +exists +get +hgetall +info "
      "+script|load +set +subscribe +time";
  std::istringstream words(rights);
  fleet.run(0, {std::istream_iterator<std::string>(words), {}});
}

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

/// A program that does nothing about SIGPIPE, and would be ended by it.
struct FatalSigpipe {
  FatalSigpipe() {
    struct sigaction fatal {};
    fatal.sa_handler = SIG_DFL;
    sigaction(SIGPIPE, &fatal, &before);
  }
  ~FatalSigpipe() { sigaction(SIGPIPE, &before, nullptr); }
  struct sigaction before {};
};

}  // namespace

TEST_CASE("a burst of any size does not break the connection of a node that reads") {
  const Fleet fleet({.nodes = 1});
  // Under the thread sanitizer and beside other programs the burst alone took minutes.
  Running client(Running::config_for({fleet.uri(0)}), std::chrono::hours(1));
  client.sink.await_up(0);
  constexpr engine::RequestId releases = 10'000;
  client.on_loop([&] {
    for (engine::RequestId i = 1; i <= releases; ++i) {
      client.core->engine().release(
          BootClock::now(), i,
          std::make_shared<const std::string>(std::string(2'000, 'x') + std::to_string(i)),
          engine::OwnerId{{1, i}});
    }
  });
  const auto last = client.sink.await_finish(releases);
  CHECK(std::get<engine::ReleaseDone>(last.result).outcome == redlock::Released::already_gone);
  CHECK(granted(client.acquire(releases + 1, "n")).token > 0);
  CHECK(client.sink.why_down(0).empty());
}

TEST_CASE(
    "destroying the core answers every question, runs every posted task, leaves nothing open") {
  { const Running warm_up({"redis://127.0.0.1:1"}); }  // libuv keeps a pipe of its own for ever
  const auto before = open_descriptors();
  {
    StubServer silent = StubServer::silent();
    Running client({silent.uri(), "redis://127.0.0.1:1"});
    std::vector<std::future<Answer>> answers;
    for (int i = 0; i < 10; ++i) answers.push_back(client.ask(0, {"PING"}));
    bool ran = false;
    FunctionTask last([&] { ran = true; });
    REQUIRE(client.core->post(last));
    client.core.reset();
    CHECK(ran);
    for (auto& answer : answers) CHECK_FALSE(answer.get());
  }
  CHECK(open_descriptors() == before);
}

TEST_CASE("a deadline that was put off is kept") {
  Fleet fleet({.nodes = 1});
  Running client(Running::config_for({fleet.uri(0)}), milliseconds(40));
  client.sink.await_up(0);
  // The first attempt sets the timer, and is over before; the second is to end after that moment.
  for (engine::RequestId request = 1; request < 10; request += 2) {
    client.acquire(request, "n" + std::to_string(request));
    fleet.pause(0);
    const auto failed = client.acquire(request + 1, "m" + std::to_string(request));
    CHECK(std::get<engine::Failed>(failed.result).code == redlock::Errc::no_quorum);
    fleet.resume(0);
    client.ask(0, {"PING"}).get();
  }
}

TEST_CASE("no descriptor of ours is inherited by a program that ours executes") {
  Fleet fleet({.nodes = 2, .unix_sockets = true});
  const auto with_fleet = open_descriptors();
  Running client({fleet.uri(0), fleet.unix_uri(1)});
  client.sink.await_up(0);
  client.sink.await_up(1);
  int ours = 0;
  for (const int descriptor : open_descriptors()) {
    if (with_fleet.contains(descriptor)) continue;
    const int flags = fcntl(descriptor, F_GETFD);
    if (flags < 0) continue;  // the one that listed them
    ++ours;
    CHECK_MESSAGE((flags & FD_CLOEXEC) != 0, descriptor);
  }
  CHECK(ours >= 5);  // epoll, wake-up, timer, two connections
}

TEST_CASE_FIXTURE(FatalSigpipe,
                  "the loop thread has a name, takes no signals and raises no SIGPIPE") {
  Fleet fleet({.nodes = 1, .unix_sockets = true});
  Running client({fleet.unix_uri(0)});
  client.sink.await_up(0);
  const auto threads = threads_named("redlock");
  REQUIRE(threads.size() == 1);
  const auto status = threads.front() / "status";
  // All but SIGKILL, SIGSTOP, and the two that the C library keeps for itself.
  CHECK(contains(text_in(status), "SigBlk:\tfffffffe7ffbfeff\n"));
  // The loop has not noticed that the node is gone when it writes.
  std::promise<Answer> answer;
  client.on_loop([&] {
    fleet.kill(0);
    client.core->ask(0, {"PING"}, std::chrono::seconds(20),
                     [&](engine::Instant, Answer what) { answer.set_value(std::move(what)); });
  });
  const Answer lost = answer.get_future().get();
  REQUIRE_FALSE(lost);
  CHECK(lost.error().cause == Cause::connection_lost);
  CHECK(contains(lost.error().detail, "broken pipe"));  // for which write() would have raised it
  CHECK(contains(text_in(status), "SigPnd:\t0000000000000000\n"));
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

TEST_CASE_FIXTURE(FatalSigpipe,
                  "a caller in the seat that writes to a node that is gone: no SIGPIPE") {
  Fleet fleet({.nodes = 1, .unix_sockets = true});
  Running client(with_seat({fleet.unix_uri(0)}));
  client.sink.await_up(0);
  const auto [answer, where] = ask_from_seat(*client.core, [&] { fleet.kill(0); });
  REQUIRE_FALSE(answer.has_value());
  CHECK(contains(answer.error().detail, "broken pipe"));
  CHECK(where == std::this_thread::get_id());
}

TEST_CASE("two addresses of one server are proved to be one, by a key that ends") {
  const Fleet fleet({.nodes = 2, .unix_sockets = true});
  permit_application(fleet);
  const std::string host = "127.0.0.1:" + std::to_string(fleet.port(0));
  const std::string path = fleet.unix_uri(0).substr(std::string("unix://").size());
  const std::vector<std::vector<std::string>> pairs{
      {fleet.uri(0), fleet.unix_uri(0)}, {"redis://app:word@" + host, "unix://app:word@" + path}};
  for (const auto& uris : pairs) {
    Running client({uris[0], uris[1], fleet.uri(1)});
    const auto proved = [&] {
      return contains(client.sink.why_down(0) + client.sink.why_down(1),
                      "it is the same server as");
    };
    REQUIRE(eventually(proved));
    client.sink.await_up(2);
    const bool first = client.ask(0, {"TIME"}).get().has_value();
    const bool second = client.ask(1, {"TIME"}).get().has_value();
    CHECK(first != second);
  }
  const std::string text = fleet.run(
      0, {"EVAL",
          "local n = 0 for _, key in ipairs(redis.call('KEYS', 'redlock:fence:identity:*')) do "
          "local ends = redis.call('PTTL', key) "
          "if ends <= 0 or ends > 60000 then return -1 end n = n + 1 end return n",
          "0"});
  CHECK(std::stoi(text) >= 2);
}
