// SPDX-License-Identifier: MIT
// How long a fault keeps those who wait: the first waiter is killed, stopped or cut off right
// before the lock is given back, or the holder is killed. Each is repeated, as what a fault hits
// differs.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <fmt/format.h>
#include <memory>
#include <mutex>
#include <optional>
#include <signal.h>
#include <spawn.h>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <redlock/redlock.hpp>

#include "cluster/fleet.hpp"
#include "samples.hpp"
#include "support/processes.hpp"
#include "support/proxy.hpp"

extern char** environ;

namespace bench {

inline redlock::Client connect_to(std::vector<std::string> uris) {
  redlock::ClientOptions options;
  options.nodes = std::move(uris);
  options.quarantine = redlock::Quarantine::off;  // the nodes are new
  auto client = redlock::Client::create(std::move(options));
  if (!client) throw std::runtime_error(client.error().message);
  return std::move(*client);
}

inline redlock::Lease take_or_throw(const redlock::Client& client, const std::string& name,
                                    const redlock::AcquireOptions& options) {
  auto lease = client.lock(name).acquire(options);
  if (!lease) throw std::runtime_error(lease.error().message);
  return std::move(*lease);
}

/// This program again, with arguments of its own; killed with the object.
class Process {
 public:
  explicit Process(std::vector<std::string> arguments) {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) throw std::runtime_error("no pipe");
    arguments.insert(arguments.begin(), "bench_contention");
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    const int failed =
        ::posix_spawn(&pid_, "/proc/self/exe", &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    if (failed != 0) throw std::runtime_error("cannot start a process");
    output_ = ::fdopen(ends[0], "r");
  }
  Process(Process&& other) noexcept
      : pid_(std::exchange(other.pid_, 0)), output_(std::exchange(other.output_, nullptr)) {}
  Process& operator=(Process&&) = delete;
  ~Process() {
    if (pid_ > 0) kill();
    if (output_ != nullptr) std::fclose(output_);
  }

  [[nodiscard]] std::FILE* output() const { return output_; }
  void kill() {
    ::kill(pid_, SIGKILL);
    static_cast<void>(wait());
  }
  /// Returns when it stands still.
  void stop() const {
    ::kill(pid_, SIGSTOP);
    int status = 0;
    ::waitpid(pid_, &status, WUNTRACED);
  }
  /// How it ended.
  int wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = 0;
    return status;
  }

 private:
  pid_t pid_ = 0;
  std::FILE* output_ = nullptr;
};

/// --take NAME LEASE URI...: waits for the lock, and says so when it has it. Ends by being killed.
inline int take_and_keep(int argc, char** argv) {
  const redlock::Client client = connect_to({argv + 4, argv + argc});
  const auto lease = take_or_throw(client, argv[2],
                                   {.lease = std::chrono::milliseconds(std::stoi(argv[3])),
                                    .renewal = redlock::Renewal::never,
                                    .wait = redlock::forever});
  ::write(STDOUT_FILENO, "\n", 1) == 1 ? ::pause() : 0;
  return 0;
}

class WaitingFaults {
 public:
  using Clock = redlock::BootClock;
  enum class Fault { none, killed, stopped, cut_off };
  static constexpr std::array names{"none", "killed", "stopped", "cut off"};

  WaitingFaults() {
    for (int i = 0; i < 8; ++i) clients_.push_back(connect_to(fleet_.uris()));
    for (std::size_t node = 0; node < fleet_.size(); ++node) {
      proxies_.push_back(std::make_unique<redlock::testing::Proxy>(fleet_.port(node)));
    }
  }

  /// The first of nine that wait has this fault when the lock is given back.
  void head(Fault fault, Samples& first, Samples& all) {
    const std::string name = fmt::format("head {}", turn_++);
    auto held = take_or_throw(holder_, name, {.lease = std::chrono::seconds(60)});
    std::optional<Process> process;
    std::optional<redlock::Client> cut_off;
    if (fault == Fault::cut_off) {
      std::vector<std::string> uris;
      for (const auto& proxy : proxies_) uris.push_back(proxy->uri());
      cut_off = connect_to(uris);
      wait(*cut_off, name);
    } else if (fault != Fault::none) {
      std::vector<std::string> arguments{"--take", name, "60000"};
      for (const std::string& uri : fleet_.uris()) arguments.push_back(uri);
      process.emplace(std::move(arguments));
    }
    const std::size_t before = fault == Fault::none ? 0 : 1;
    await_entries(name, before);
    // By more than a new client may err about the nodes' clocks: it is the first.
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const std::size_t start_of_row = served_.size();
    for (const auto& client : clients_) wait(client, name);
    await_entries(name, clients_.size() + before);
    if (fault == Fault::killed) process->kill();
    if (fault == Fault::stopped) process->stop();
    if (fault == Fault::cut_off) {
      for (const auto& proxy : proxies_) proxy->hold();
    }
    const auto released = Clock::now();
    if (!held.release()) throw std::runtime_error("the lock was lost");
    const auto times = await(start_of_row + clients_.size());
    first.add(times[start_of_row] - released);
    all.add(times.back() - released);
    for (const auto& proxy : proxies_) proxy->pass();
    process.reset();
    if (cut_off) await(start_of_row + clients_.size() + 1);
  }

  /// 32 wait, four in each of eight clients, for what a holder has that ends well, or is killed.
  void holder(Fault fault, Samples& first, Samples& all) {
    const std::string name = fmt::format("holder {}", turn_++);
    std::vector<std::string> arguments{"--take", name, "1500"};
    for (const std::string& uri : fleet_.uris()) arguments.push_back(uri);
    std::optional<Process> process;
    std::optional<redlock::Lease> held;
    if (fault == Fault::killed) {
      process.emplace(std::move(arguments));
      if (std::fgetc(process->output()) != '\n') throw std::runtime_error("nobody holds it");
    } else {
      held = take_or_throw(holder_, name, {.lease = std::chrono::seconds(60)});
    }
    const std::size_t start_of_row = served_.size();
    constexpr std::size_t waiters = 32;
    for (std::size_t i = 0; i < waiters; ++i) wait(clients_[i % clients_.size()], name);
    await_entries(name, clients_.size());
    auto end = Clock::now();
    if (fault == Fault::killed) {
      process->kill();
      end = end_of_lease(name);
    } else if (!held->release()) {
      throw std::runtime_error("the lock was lost");
    }
    const auto times = await(start_of_row + waiters);
    first.add(times[start_of_row] - end);
    all.add(times.back() - times[start_of_row]);
  }

 private:
  void wait(const redlock::Client& client, const std::string& name) {
    client.lock(name)
        .async_acquire({.wait = redlock::forever})
        .start([this](const redlock::Result<redlock::Lease>& lease) {
          if (!lease) fmt::print(stderr, "{}\n", lease.error().message);
          if (!lease) return;
          const std::scoped_lock lock(mutex_);
          served_.push_back(Clock::now());
          changed_.notify_all();
        });
  }

  std::vector<Clock::time_point> await(std::size_t count) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::minutes(1),
                           [&] { return served_.size() >= count; })) {
      throw std::runtime_error(fmt::format("{} of {} were served", served_.size(), count));
    }
    return served_;
  }

  /// Until so many clients stand in the line of every node.
  void await_entries(const std::string& name, std::size_t count) const {
    const std::string line = "redlock:line:{" + name + "}";
    for (std::size_t node = 0; node < fleet_.size(); ++node) {
      std::string there;
      const auto are_in_line = [&] {
        there = fleet_.run(node, {"ZCARD", line});
        return there == std::to_string(count);
      };
      if (redlock::testing::eventually(are_in_line)) continue;
      throw std::runtime_error(fmt::format("{} of {} clients are in line", there, count));
    }
  }

  /// When the lock is free by itself on a quorum of nodes.
  [[nodiscard]] Clock::time_point end_of_lease(const std::string& name) const {
    std::vector<Clock::time_point> ends;
    for (std::size_t node = 0; node < fleet_.size(); ++node) {
      const auto left = std::stol(fleet_.run(node, {"PTTL", "redlock:lock:{" + name + "}"}));
      ends.push_back(Clock::now() + std::chrono::milliseconds(left));
    }
    std::ranges::sort(ends);
    return ends[fleet_.size() / 2];
  }

  redlock::cluster::Fleet fleet_{{.nodes = 5}};
  std::vector<std::unique_ptr<redlock::testing::Proxy>> proxies_;  // one for each node
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Clock::time_point> served_;
  std::size_t turn_ = 0;
  redlock::Client holder_ = connect_to(fleet_.uris());
  std::vector<redlock::Client> clients_;
};

}  // namespace bench
