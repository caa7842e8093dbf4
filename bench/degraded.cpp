// SPDX-License-Identifier: MIT
// What an acquire costs while two of five nodes are killed, stopped or resetting, beside five
// healthy ones, in turns; and how long it takes to learn that three are gone. The figures are
// ratios of medians within one run: on one machine fewer nodes also mean less work for it. --rounds
// N takes more samples.
#include <benchmark/benchmark.h>
#include <cstdlib>
#include <fmt/format.h>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <redlock/redlock.hpp>

#include "cluster/fleet.hpp"
#include "node_watch.hpp"
#include "resetting_server.hpp"
#include "rounds.hpp"
#include "samples.hpp"

namespace {

using namespace std::chrono_literals;
using redlock::cluster::Fleet;

std::vector<std::string> summary;

/// Five nodes of which some are gone, and a client that has known them since before.
struct Set {
  std::string what;
  Fleet fleet{{.nodes = 5}};
  std::vector<std::unique_ptr<bench::ResettingServer>> stubs{};
  std::shared_ptr<bench::NodeWatch> nodes = std::make_shared<bench::NodeWatch>();
  std::unique_ptr<redlock::Client> client{};
  bench::Samples samples{};

  explicit Set(std::string name) : what(std::move(name)) {}

  void connect(std::vector<std::string> uris) {
    redlock::ClientOptions options;
    options.nodes = std::move(uris);
    options.quarantine = redlock::Quarantine::off;  // the nodes are new
    options.observer = nodes;
    auto made = redlock::Client::create(std::move(options));
    if (!made) throw std::runtime_error(made.error().message);
    client = std::make_unique<redlock::Client>(std::move(*made));
    for (int turn = 0; turn < 20; ++turn) cycle();
    samples = {};
  }

  void cycle() {
    redlock::RedLock lock = client->lock("bench");
    redlock::Lease lease;
    samples.time([&] {
      auto granted = lock.acquire({.wait = 10s});
      if (!granted) throw std::runtime_error(granted.error().message);
      lease = std::move(*granted);
    });
    static_cast<void>(lease.release());
  }
};

std::vector<std::unique_ptr<Set>> all_sets() {
  std::vector<std::unique_ptr<Set>> sets;
  for (const char* what : {"healthy", "two killed", "two stopped", "two resetting"}) {
    sets.push_back(std::make_unique<Set>(what));
  }
  auto uris = sets[3]->fleet.uris();
  for (const std::size_t node : {1U, 3U}) {
    sets[3]->stubs.push_back(std::make_unique<bench::ResettingServer>());
    uris[node] = sets[3]->stubs.back()->uri();
  }
  for (std::size_t i = 0; i < 3; ++i) sets[i]->connect(sets[i]->fleet.uris());
  for (const std::size_t node : {1U, 3U}) {
    sets[1]->fleet.kill(node);
    sets[2]->fleet.pause(node);
  }
  sets[3]->connect(uris);
  return sets;
}

void two_gone(benchmark::State& state) {
  const auto sets = all_sets();
  for ([[maybe_unused]] auto _ : state) {
    for (const auto& set : sets) set->cycle();
  }
  const double healthy = sets[0]->samples.median();
  for (const auto& set : sets) {
    const double ratio = set->samples.median() / healthy;
    state.counters[set->what] = ratio;
    summary.push_back(fmt::format("{:<16} {:>9.1f} {:>9.1f} {:>7.2f}", set->what,
                                  set->samples.median(), set->samples.quantile(0.99), ratio));
  }
}

enum class End { stopped, killed };

/// The first call after three nodes went, which their connections do not yet know.
void three_gone(benchmark::State& state, End end, const char* what) {
  Set set(what);
  set.connect(set.fleet.uris());
  set.samples = {};
  for ([[maybe_unused]] auto _ : state) {
    set.nodes->await_up(5);
    for (const std::size_t node : {0U, 2U, 4U}) {
      end == End::stopped ? set.fleet.pause(node) : set.fleet.kill(node);
    }
    set.samples.time([&] {
      const auto result = set.client->lock("bench").acquire();
      if (result || result.error().code != redlock::Errc::no_quorum) {
        throw std::runtime_error("there should be no quorum");
      }
    });
    for (const std::size_t node : {0U, 2U, 4U}) {
      end == End::stopped ? set.fleet.resume(node) : set.fleet.restart(node);
    }
  }
  const std::chrono::duration<double, std::micro> timeout = set.client->options().node_timeout;
  const double ratio = set.samples.median() / timeout.count();
  state.counters["no_quorum_per_node_timeout"] = ratio;
  summary.push_back(fmt::format("{:<16} {:>9.1f} {:>9.1f} {:>7.3f} of the node timeout", what,
                                set.samples.median(), set.samples.quantile(0.99), ratio));
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = bench::take_rounds(argc, argv, 2000);
  benchmark::Initialize(&argc, argv);
  benchmark::RegisterBenchmark("two_of_five_gone", two_gone)
      ->Iterations(rounds)
      ->Unit(benchmark::kMicrosecond);
  benchmark::RegisterBenchmark("three_of_five_stopped", three_gone, End::stopped, "three stopped")
      ->Iterations(10)
      ->Unit(benchmark::kMicrosecond);
  benchmark::RegisterBenchmark("three_of_five_killed", three_gone, End::killed, "three killed")
      ->Iterations(10)
      ->Unit(benchmark::kMicrosecond);
  benchmark::RunSpecifiedBenchmarks();

  fmt::print("\nAcquire in us, in turns {:>2} {:>9} {:>7}\n", "median", "99%", "ratio");
  for (const std::string& line : summary) fmt::print("{}\n", line);
  return EXIT_SUCCESS;
}
