// SPDX-License-Identifier: MIT
// One process holds many leases over five real nodes, some of which stop answering: with a quorum
// alive none may be lost; without one every loss must be told before the validity ends. Prints what
// that costs the process in time and memory.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <fmt/format.h>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <redlock/redlock.hpp>

#include "cluster/fleet.hpp"
#include "soak/stalls.hpp"
#include "soak/verdict.hpp"
#include "support/own_use.hpp"

namespace {

using namespace redlock;
using cluster::Fleet;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::heap_in_use;
using testing::processor_time;

struct Plan {
  std::size_t leases = 100'000;
  int lease = 30;
  int length = 300;
  std::size_t stopped = 0;
  int running = 0;         // ms of each tenth of a second in which the nodes run; 0: always
  double most_cpu = 0;     // per cent of one core; 0: not judged
  double most_memory = 0;  // bytes a lease; 0: not judged
};

std::string name_of(std::size_t index) {
  return fmt::format("soak:{:06}", index);
}

/// Nodes that have a small part of a processor: they are stopped but for so long in each tenth of a
/// second.
class Starvation {
 public:
  Starvation(Fleet& fleet, int running)
      : fleet_(fleet), thread_([this, running](const std::stop_token& stop) {
          while (running > 0 && !stop.stop_requested()) turn(milliseconds(running));
        }) {}

 private:
  void turn(milliseconds running) {
    each([this](std::size_t node) { fleet_.pause(node); });
    std::this_thread::sleep_for(milliseconds(100) - running);
    each([this](std::size_t node) { fleet_.resume(node); });
    std::this_thread::sleep_for(running);
  }
  template <typename Function>
  void each(Function function) {
    for (std::size_t node = 0; node < fleet_.size(); ++node) function(node);
  }

  Fleet& fleet_;
  std::jthread thread_;
};

class Leases final : public Observer {
 public:
  explicit Leases(std::size_t count) : leases_(count), margins_(count, milliseconds::max()) {}

  void on_renewal(std::string_view, bool ok, std::chrono::nanoseconds) override {
    ++(ok ? renewals : failed_renewals);
  }
  void on_node_down(std::string_view, Cause, std::string_view detail) override {
    fmt::print(stderr, "node down: {}\n", detail);
  }
  void on_lost(std::string_view name, std::uint64_t, LossReason) override {
    const auto index = std::stoul(std::string(name.substr(name.rfind(':') + 1)));
    margins_[index] = std::chrono::duration_cast<milliseconds>(leases_[index].remaining());
    ++lost;
  }

  /// All of them, some at a time.
  void acquire(const Client& client, milliseconds lease) {
    constexpr std::size_t at_once = 200;
    for (std::size_t i = 0; i < leases_.size(); ++i) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return under_way_ < at_once; });
      ++under_way_;
      lock.unlock();
      client.lock(name_of(i))
          .async_acquire({.lease = lease, .renewal = Renewal::always, .wait = seconds(30)})
          .start([this, i](Result<Lease> granted) { take(i, std::move(granted)); });
    }
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return under_way_ == 0; });
  }

  void give_back() { leases_.clear(); }

  /// How long before the end of its validity each loss was told: a line for each tenth of the
  /// largest.
  void print_margins() const {
    std::vector<milliseconds> margins = margins_;
    std::ranges::sort(margins);
    const auto width = margins.back().count() / 10 + 1;
    fmt::print("told before the validity ended: from {} ms to {} ms\n", margins.front().count(),
               margins.back().count());
    for (int part = 0; part < 10; ++part) {
      const auto in_part = std::ranges::count_if(
          margins, [&](milliseconds margin) { return margin.count() / width == part; });
      fmt::print("  {:>6} to {:>6} ms {:>8}\n", part * width, (part + 1) * width, in_part);
    }
  }
  [[nodiscard]] milliseconds least_margin() const { return *std::ranges::min_element(margins_); }

  std::atomic<std::size_t> renewals{0};
  std::atomic<std::size_t> failed_renewals{0};
  std::atomic<std::size_t> lost{0};
  std::atomic<std::size_t> refused{0};

 private:
  void take(std::size_t index, Result<Lease> granted) {
    if (granted) {
      leases_[index] = std::move(*granted);
    } else if (++refused == 1) {
      fmt::print(stderr, "{}\n", granted.error().message);
    }
    const std::scoped_lock lock(mutex_);
    --under_way_;
    changed_.notify_one();
  }

  std::vector<Lease> leases_;
  std::vector<milliseconds> margins_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t under_way_ = 0;
};

class Run {
 public:
  explicit Run(const Plan& plan) : plan_(plan), leases_(std::make_shared<Leases>(plan.leases)) {}

  bool run() {
    ClientOptions options;
    options.nodes = fleet_.uris();
    options.observer = leases_;
    options.quarantine = Quarantine::off;  // the nodes are new
    options.node_timeout = seconds(1);
    options.max_lease = std::max<milliseconds>(options.max_lease, seconds(plan_.lease));
    auto client = Client::create(std::move(options));
    if (!client) throw std::runtime_error(client.error().message);
    acquire(*client);
    for (std::size_t node = 0; node < plan_.stopped; ++node) fleet_.pause(node);
    {
      const Starvation starvation(fleet_, plan_.running);
      hold();
    }
    const bool well = plan_.stopped > 2 ? judge_losses() : judge_holding();
    for (std::size_t node = 0; node < plan_.stopped; ++node) fleet_.resume(node);
    leases_->give_back();
    return well && leases_->refused == 0;
  }

 private:
  void acquire(const Client& client) {
    // What grows once for all: buffers, tables of the library.
    { auto first = client.lock("soak:warm").acquire(); }
    const std::size_t before = heap_in_use();
    const auto start = BootClock::now();
    leases_->acquire(client, seconds(plan_.lease));
    const auto took = std::chrono::duration<double>(BootClock::now() - start).count();
    memory_ = static_cast<double>(heap_in_use() - before);
    memory_ /= static_cast<double>(plan_.leases);
    fmt::print("{} leases of {} s acquired in {:.1f} s; {:.0f} bytes of heap each\n", plan_.leases,
               plan_.lease, took, memory_);
    std::fflush(stdout);
  }

  void hold() {
    const auto start = BootClock::now();
    const auto cpu_before = processor_time();
    const auto steps = std::max(1, plan_.length / 10);
    for (int i = 0; i < steps; ++i) {
      std::this_thread::sleep_for(seconds(plan_.length) / steps);
      const auto wall = BootClock::now() - start;
      cpu_ = 100 * std::chrono::duration<double>(processor_time() - cpu_before) / wall;
      fmt::print(
          "after {:3.0f} s: {} renewals, {} of them not in time; {} lost; {:.1f} % of a core\n",
          std::chrono::duration<double>(wall).count(), leases_->renewals.load(),
          leases_->failed_renewals.load(), leases_->lost.load(), cpu_);
      std::fflush(stdout);
    }
  }

  /// A quorum is alive.
  [[nodiscard]] bool judge_holding() const {
    bool well = leases_->lost == 0;
    const auto bar = [&](const char* what, double is, double most) {
      if (most == 0) return;
      fmt::print("{}: {:.1f}, at most {:.1f} wanted\n", what, is, most);
      well = well && is <= most;
    };
    bar("processor, % of a core", cpu_, plan_.most_cpu);
    bar("memory, bytes a lease", memory_, plan_.most_memory);
    return well;
  }

  [[nodiscard]] bool judge_losses() const {
    const soak::Stalls stalls;  // a machine that stands still leaves nobody the time to tell
    const auto limit = BootClock::now() + seconds(2 * plan_.lease);
    while (leases_->lost < plan_.leases && BootClock::now() < limit) {
      std::this_thread::sleep_for(milliseconds(100));
    }
    if (leases_->lost < plan_.leases) {
      fmt::print("of {} leases only {} were told lost\n", plan_.leases, leases_->lost.load());
      return false;
    }
    leases_->print_margins();
    if (leases_->least_margin() > milliseconds::zero()) return true;
    fmt::print("this process stood still for {} ms of that time; the margin is {} ms\n",
               stalls.sum().count(), 100 * plan_.lease);
    return stalls.sum() >= seconds(plan_.lease) / 10 / 2;
  }

  Plan plan_;
  Fleet fleet_{{.nodes = 5, .settings = {"maxmemory 1gb"}}};  // a million take 240 MB
  std::shared_ptr<Leases> leases_;
  double memory_ = 0;
  double cpu_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  Plan plan;
  CLI::App app{
      "Holds many leases over five nodes, and says what that costs. Fails if one is lost while a\n"
      "quorum of the nodes answers, or told late where none does. Needs the machine for itself.\n\n"
      "100,000 leases, judged (five minutes):\n"
      "  soak_holding --most-cpu 5 --most-memory 400\n"
      "a million (seven minutes; 2 GB of memory for the nodes):\n"
      "  soak_holding --leases 1000000 --lease 120 --most-cpu 100\n"
      "nodes with too little of a processor, of which none may lose a lease:\n"
      "  soak_holding --leases 20000 --lease 6 --for 15 --running 8"};
  app.add_option("--leases", plan.leases, "how many; default 100000")
      ->check(CLI::Range(1, 1000000));
  app.add_option("--lease", plan.lease, "seconds; default 30")->check(CLI::Range(1, 600));
  app.add_option("--for", plan.length, "seconds to hold them; default 300")
      ->check(CLI::Range(1, 86400));
  app.add_option("--stopped", plan.stopped, "so many of the nodes are stopped")
      ->check(CLI::Range(0, 5));
  app.add_option("--running", plan.running,
                 "ms of each 100 in which the nodes run: they have too little of a processor")
      ->check(CLI::Range(1, 100));
  app.add_option("--most-cpu", plan.most_cpu, "fail above this many per cent of a core");
  app.add_option("--most-memory", plan.most_memory, "fail above this many bytes a lease");
  CLI11_PARSE(app, argc, argv);
  return redlock::soak::verdict_of("soak_holding", [&] { return Run(plan).run(); });
}
