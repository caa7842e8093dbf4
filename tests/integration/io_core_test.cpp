// SPDX-License-Identifier: MIT
// The core as a whole: its thread, its stop, signals, name look-ups that hang, and the engine
// driven over real nodes.
#include <arpa/inet.h>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <netdb.h>
#include <pthread.h>
#include <set>
#include <signal.h>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <redlock/clock.hpp>

#include "cluster/fleet.hpp"
#include "io/core.hpp"
#include "support/stub_server.hpp"

using namespace redlock::io;
using redlock::BootClock;
using redlock::Cause;
using redlock::cluster::Fleet;
using redlock::testing::StubServer;
using std::chrono::milliseconds;
namespace engine = redlock::engine;

namespace {

// A name server that is dead, and one that knows a name with two addresses. These stand in for the
// C library's look-up in this program.
std::atomic<bool> name_server_hangs = true;
std::atomic<int> look_ups = 0;

template <typename Work>
class FunctionTask final : public Task {
 public:
  explicit FunctionTask(Work work) : work_(std::move(work)) {}
  void run() override { work_(); }

 private:
  Work work_;
};

class Recorder final : public CoreSink {
 public:
  void on_output(engine::Output&& output) override {
    const std::scoped_lock lock(mutex_);
    if (auto* finish = std::get_if<engine::Finish>(&output)) {
      finished_.emplace(finish->request, std::move(*finish));
    }
    happened_.notify_all();
  }
  void on_node_up(engine::NodeIndex node, std::string_view warning) override {
    const std::scoped_lock lock(mutex_);
    up_[node] = warning;
    happened_.notify_all();
  }
  void on_node_down(engine::NodeIndex node, const engine::Unavailable& why) override {
    const std::scoped_lock lock(mutex_);
    down_[node] = why;
    happened_.notify_all();
  }

  engine::Finish await_finish(engine::RequestId request) {
    await([&] { return finished_.contains(request); });
    const std::scoped_lock lock(mutex_);
    return finished_.at(request);
  }
  std::string await_up(engine::NodeIndex node) {
    await([&] { return up_.contains(node); });
    const std::scoped_lock lock(mutex_);
    return up_.at(node);
  }
  engine::Unavailable await_down(engine::NodeIndex node) {
    await([&] { return down_.contains(node); });
    const std::scoped_lock lock(mutex_);
    return down_.at(node);
  }

 private:
  void await(const std::function<bool()>& condition) {
    std::unique_lock lock(mutex_);
    REQUIRE(happened_.wait_for(lock, std::chrono::seconds(30), condition));
  }

  std::mutex mutex_;
  std::condition_variable happened_;
  std::map<engine::RequestId, engine::Finish> finished_;
  std::map<engine::NodeIndex, std::string> up_;
  std::map<engine::NodeIndex, engine::Unavailable> down_;
};

struct Running {
  explicit Running(const std::vector<std::string>& uris) {
    CoreConfig config;
    for (const std::string& uri : uris) config.nodes.push_back(*parse_node_uri(uri));
    config.engine.nodes = static_cast<std::uint32_t>(uris.size());
    config.engine.node_timeout = std::chrono::seconds(10);  // the machine may be busy
    core = std::move(Core::start(std::move(config), sink).value());
  }
  template <typename Work>
  void on_loop(Work work) {
    std::promise<void> done;
    FunctionTask task([&] {
      work();
      done.set_value();
    });
    REQUIRE(core->post(task));
    done.get_future().wait();
  }
  engine::Finish acquire(engine::RequestId request, const std::string& name) {
    on_loop([&] {
      core->engine().acquire(BootClock::now(), request,
                             {.name = std::make_shared<const std::string>(name),
                              .lease = milliseconds(30'000),
                              .max_hold = {}});
    });
    return sink.await_finish(request);
  }
  engine::Finish release(engine::RequestId request, engine::GrantId grant) {
    on_loop([&] { core->engine().release(BootClock::now(), request, grant); });
    return sink.await_finish(request);
  }
  std::future<Answer> ask(engine::NodeIndex node, std::vector<std::string> command,
                          milliseconds timeout = std::chrono::seconds(20)) {
    auto answer = std::make_shared<std::promise<Answer>>();
    on_loop([&] {
      core->ask(node, command, timeout, [answer](Answer what) { answer->set_value(what); });
    });
    return answer->get_future();
  }

  Recorder sink;
  std::unique_ptr<Core> core;
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

engine::AcquireSucceeded granted(const engine::Finish& finish) {
  const auto* granted = std::get_if<engine::AcquireSucceeded>(&finish.result);
  REQUIRE(granted != nullptr);
  return *granted;
}

// The threads of this process by their names.
std::vector<std::string> thread_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(entry.path() / "comm");
    std::string name;
    std::getline(file, name);
    names.push_back(name);
  }
  return names;
}

std::string signal_line(const std::string& thread, const std::string& field) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream comm(entry.path() / "comm");
    std::string name;
    std::getline(comm, name);
    if (name != thread) continue;
    std::ifstream status(entry.path() / "status");
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with(field)) return line.substr(field.size());
    }
  }
  return "";
}

std::set<int> open_descriptors() {
  std::set<int> descriptors;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    descriptors.insert(std::stoi(entry.path().filename()));
  }
  return descriptors;
}

}  // namespace

extern "C" int getaddrinfo(const char* host, const char* service, const addrinfo* hints,
                           addrinfo** result) {
  ++look_ups;
  const std::string name = host;
  if (name == "hangs.example") {
    name_server_hangs.wait(true);
    return EAI_AGAIN;
  }
  if (name != "two.example") return EAI_NONAME;
  // The first of the two is one where nobody listens.
  *result = nullptr;
  for (const char* address : {"127.0.0.1", "127.0.0.77"}) {
    auto* entry = new addrinfo{};
    auto* where = new sockaddr_in{};
    where->sin_family = AF_INET;
    where->sin_port = htons(static_cast<std::uint16_t>(std::stoi(service)));
    inet_pton(AF_INET, address, &where->sin_addr);
    entry->ai_family = AF_INET;
    entry->ai_socktype = hints->ai_socktype;
    entry->ai_addr = reinterpret_cast<sockaddr*>(where);
    entry->ai_addrlen = sizeof *where;
    entry->ai_next = *result;
    *result = entry;
  }
  return 0;
}

extern "C" void freeaddrinfo(addrinfo* list) {
  while (list != nullptr) {
    addrinfo* const next = list->ai_next;
    delete reinterpret_cast<sockaddr_in*>(list->ai_addr);
    delete list;
    list = next;
  }
}

TEST_CASE("a lock is acquired and released over five real nodes") {
  Fleet fleet({.nodes = 5});
  Running client(fleet.uris());
  const auto grant = granted(client.acquire(1, "n"));
  CHECK(grant.token > 0);
  const auto contended = client.acquire(2, "n");
  CHECK(std::get<engine::Failed>(contended.result).code == redlock::Errc::contended);
  const auto released = client.release(3, grant.grant);
  CHECK(std::get<engine::ReleaseDone>(released.result).outcome == redlock::Released::released);
  CHECK(granted(client.acquire(4, "n")).token > grant.token);
}

TEST_CASE("two nodes of the list that are one server do not both vote") {
  Fleet fleet({.nodes = 2, .unix_sockets = true});
  Running client({fleet.uri(0), fleet.unix_uri(0), fleet.uri(1)});
  client.sink.await_up(2);
  // Whichever of the two came second is refused.
  std::string sentence;
  for (int i = 0; i < 3'000 && sentence.empty(); ++i) {
    client.on_loop([] {});
    for (engine::NodeIndex node : {0U, 1U}) {
      const auto answer = client.ask(node, {"PING"}).get();
      if (!answer) sentence = answer.error().detail;
    }
  }
  CHECK(contains(sentence, "it is the same server as"));
  const auto grant = granted(client.acquire(1, "n"));
  CHECK(grant.token > 0);
  fleet.kill(1);
  const auto alone = client.acquire(2, "m");
  CHECK(std::get<engine::Failed>(alone.result).code == redlock::Errc::no_quorum);
}

TEST_CASE("twins stay refused over a restart, until both have shown that they differ") {
  Fleet fleet({.nodes = 1, .unix_sockets = true});
  Running client({fleet.uri(0), fleet.unix_uri(0)});
  for (int round = 0; round < 3; ++round) {
    fleet.restart(0);
    // One of the two answers, never both.
    for (;;) {
      const bool first = client.ask(0, {"PING"}).get().has_value();
      const bool second = client.ask(1, {"PING"}).get().has_value();
      REQUIRE_FALSE((first && second));
      if (first || second) break;
    }
  }
}

TEST_CASE("tasks posted by many threads all run on the loop thread") {
  Running client({"redis://127.0.0.1:1"});
  constexpr int threads = 8;
  constexpr int each = 10'000;
  std::atomic<int> runs = 0;
  std::atomic<int> elsewhere = 0;
  const auto count = [&] {
    if (!client.core->on_loop_thread()) ++elsewhere;
    ++runs;
  };
  using Count = FunctionTask<decltype(count)>;
  std::vector<std::vector<std::unique_ptr<Count>>> tasks(threads);
  {
    std::vector<std::jthread> posters;
    for (auto& mine : tasks) {
      posters.emplace_back([&] {
        for (int i = 0; i < each; ++i) {
          mine.push_back(std::make_unique<Count>(count));
          CHECK(client.core->post(*mine.back()));
        }
      });
    }
  }
  client.on_loop([] {});
  CHECK(runs == threads * each);
  CHECK(elsewhere == 0);
  CHECK_FALSE(client.core->on_loop_thread());
}

TEST_CASE("many acquisitions at once travel together, and each is answered") {
  Fleet fleet({.nodes = 3});
  Running client(fleet.uris());
  for (engine::NodeIndex node = 0; node < 3; ++node) client.sink.await_up(node);
  constexpr engine::RequestId count = 2'000;
  client.on_loop([&] {
    for (engine::RequestId request = 1; request <= count; ++request) {
      client.core->engine().acquire(
          BootClock::now(), request,
          {.name = std::make_shared<const std::string>("n" + std::to_string(request)),
           .lease = milliseconds(30'000),
           .max_hold = {}});
    }
  });
  int grants = 0;
  for (engine::RequestId request = 1; request <= count; ++request) {
    const auto finish = client.sink.await_finish(request);
    if (std::holds_alternative<engine::AcquireSucceeded>(finish.result)) ++grants;
  }
  CHECK(grants == count);
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

TEST_CASE("a task that posts while the core stops is refused, not lost") {
  Running client({"redis://127.0.0.1:1"});
  std::atomic<bool> refused = false;
  Core& core = *client.core;
  std::function<void()> again;
  FunctionTask task([&] { again(); });
  again = [&] {
    if (!core.post(task)) refused = true;
  };
  REQUIRE(core.post(task));
  client.core.reset();
  CHECK(refused);
}

TEST_CASE("the loop thread has a name, takes no signals, and keeps SIGPIPE to itself") {
  struct sigaction before {};
  struct sigaction fatal {};
  fatal.sa_handler = SIG_DFL;
  sigaction(SIGPIPE, &fatal, &before);
  {
    Fleet fleet({.nodes = 1, .unix_sockets = true});
    Running client({fleet.unix_uri(0)});
    client.sink.await_up(0);
    const auto names = thread_names();
    CHECK(std::count(names.begin(), names.end(), "redlock") == 1);
    // All but SIGKILL, SIGSTOP, and the two that the C library keeps for itself.
    CHECK(contains(signal_line("redlock", "SigBlk:"), "fffffffe7ffbfeff"));
    // The loop has not noticed that the node is gone when it writes.
    std::promise<Answer> answer;
    client.on_loop([&] {
      fleet.kill(0);
      client.core->ask(0, {"PING"}, std::chrono::seconds(20),
                       [&](Answer what) { answer.set_value(std::move(what)); });
    });
    const Answer lost = answer.get_future().get();
    REQUIRE_FALSE(lost);
    CHECK(lost.error().cause == Cause::connection_lost);
    CHECK(contains(signal_line("redlock", "SigPnd:"), "0000000000001000"));  // it was raised
  }
  sigaction(SIGPIPE, &before, nullptr);
}

TEST_CASE("a name server that hangs delays neither the other nodes nor the stop") {
  Fleet fleet({.nodes = 2});
  {
    Running client({"redis://hangs.example", fleet.uri(0), fleet.uri(1)});
    CHECK(granted(client.acquire(1, "n")).token > 0);
    CHECK(contains(client.sink.await_down(0).detail, "cannot resolve its name within 2000 ms"));
    // The look-up that hangs is not joined by others.
    const int so_far = look_ups;
    client.ask(0, {"PING"}).get();
    CHECK(look_ups == so_far);
  }
  name_server_hangs = false;
  name_server_hangs.notify_all();
}

TEST_CASE("all addresses of a name are tried in turn") {
  Fleet fleet({.nodes = 1});
  Running client({"redis://two.example:" + std::to_string(fleet.port(0))});
  client.sink.await_up(0);
}
