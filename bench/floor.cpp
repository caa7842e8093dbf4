// SPDX-License-Identifier: MIT
// How much the library adds to what the network and the nodes cost anyway: a blocking acquire and
// release beside the same messages sent by nothing but hiredis, in turns, on the same five nodes.
// The figures are ratios of medians within one run. --rounds N takes more samples.
#include <benchmark/benchmark.h>
#include <cstdlib>
#include <fmt/format.h>
#include <string>
#include <vector>

#include <redlock/redlock.hpp>

#include "bare_hiredis.hpp"
#include "cluster/fleet.hpp"
#include "rounds.hpp"
#include "samples.hpp"

namespace {

using redlock::cluster::Fleet;
using redlock::cluster::Persistence;

struct Measured {
  bench::Samples acquire;
  bench::Samples release;
  bench::Samples both;
};

std::vector<std::string> summary;

redlock::Client connect(const Fleet& fleet) {
  redlock::ClientOptions options;
  options.nodes = fleet.uris();
  options.quarantine = redlock::Quarantine::off;  // the nodes are new
  auto client = redlock::Client::create(std::move(options));
  if (!client) throw std::runtime_error(client.error().message);
  return std::move(*client);
}

template <typename Acquire, typename Release>
void measure(Measured& measured, Acquire&& acquire, Release&& release) {
  const auto start = redlock::BootClock::now();
  acquire();
  const auto middle = redlock::BootClock::now();
  release();
  const auto end = redlock::BootClock::now();
  measured.acquire.add(middle - start);
  measured.release.add(end - middle);
  measured.both.add(end - start);
}

void report(benchmark::State& state, const char* what, const bench::Samples& bare,
            const bench::Samples& ours, const char* nodes) {
  const double ratio = ours.median() / bare.median();
  state.counters[std::string(what) + "_ratio"] = ratio;
  summary.push_back(fmt::format("{:<24} {:<16} {:>9.1f} {:>9.1f} {:>7.2f}", nodes, what,
                                bare.median(), ours.median(), ratio));
}

void floor_of(benchmark::State& state, Persistence persistence, const char* nodes) {
  const Fleet fleet({.nodes = 5, .persistence = persistence});
  std::vector<std::uint16_t> ports;
  for (std::size_t node = 0; node < fleet.size(); ++node) ports.push_back(fleet.port(node));
  bench::BareHiredis bare(ports);
  const redlock::Client client = connect(fleet);
  redlock::RedLock lock = client.lock("bench");
  redlock::Lease lease;
  const auto acquire = [&] {
    auto granted = lock.acquire({.wait = std::chrono::seconds(5)});
    if (!granted) throw std::runtime_error(granted.error().message);
    lease = std::move(*granted);
  };
  const auto release = [&] {
    if (lease.release() != redlock::Released::released) throw std::runtime_error("not released");
  };

  acquire();  // connections and scripts are there from here on
  release();
  Measured floor;
  Measured ours;
  for ([[maybe_unused]] auto _ : state) {
    measure(
        floor, [&] { bare.acquire("floor"); }, [&] { bare.release("floor"); });
    measure(ours, acquire, release);
  }
  report(state, "acquire", floor.acquire, ours.acquire, nodes);
  report(state, "release", floor.release, ours.release, nodes);
  report(state, "acquire+release", floor.both, ours.both, nodes);
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = bench::take_rounds(argc, argv, 3000);
  benchmark::Initialize(&argc, argv);
  benchmark::RegisterBenchmark("five_nodes/no_persistence", floor_of, Persistence::none,
                               "no persistence")
      ->Iterations(rounds)
      ->Unit(benchmark::kMicrosecond);
  benchmark::RegisterBenchmark("five_nodes/appendfsync_always", floor_of, Persistence::always,
                               "appendfsync always")
      ->Iterations(rounds / 3)
      ->Unit(benchmark::kMicrosecond);
  benchmark::RunSpecifiedBenchmarks();

  fmt::print("\nMedians in us, in turns:  {:<14} {:>9} {:>9} {:>7}\n", "", "hiredis", "redlock",
             "ratio");
  for (const std::string& line : summary) fmt::print("{}\n", line);
  return EXIT_SUCCESS;
}
