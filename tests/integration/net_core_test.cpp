// SPDX-License-Identifier: MIT
// The core as a whole: its thread, its stop, signals, descriptors, and the engine driven over real
// nodes.
#include <fcntl.h>
#include <filesystem>
#include <signal.h>
#include <unistd.h>

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
          engine::OwnerId{{1, i}}, milliseconds(30'000));
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

TEST_CASE("the loop thread has a name and takes no signals, and no write raises SIGPIPE") {
  struct sigaction before {};
  struct sigaction fatal {};
  fatal.sa_handler = SIG_DFL;
  sigaction(SIGPIPE, &fatal, &before);
  {
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
  sigaction(SIGPIPE, &before, nullptr);
}
