// SPDX-License-Identifier: MIT
// How many grants take no second round trip. A token that a quorum of nodes did not give alike has
// to be settled with a `hold` message; nodes count those (no other script calls HGET, and nothing
// is renewed here), so the share of grants without any is at least what is printed: a grant that
// was settled has sent one or more. --rounds N: so many grants of each process over its own names;
// a twentieth as many where the processes fight over the same two.
#include <algorithm>
#include <benchmark/benchmark.h>
#include <chrono>
#include <cstdlib>
#include <fmt/format.h>
#include <functional>
#include <stdexcept>
#include <string>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <redlock/redlock.hpp>

#include "cluster/fleet.hpp"
#include "node_watch.hpp"
#include "rounds.hpp"

namespace {

using namespace std::chrono_literals;
using redlock::cluster::Fleet;

constexpr int processes = 4;
constexpr int fights = 2;

std::vector<std::string> summary;

/// What the processes take, and how.
struct Race {
  const char* what;
  std::function<std::string(int process, int round)> name;
  int rounds;
  double wanted_percent;
  bool fight;
};

void take_all(const Fleet& fleet, const Race& race, int process) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  redlock::ClientOptions options;
  options.nodes = fleet.uris();
  if (race.fight) {
    // Shorter than usual, so that many attempts meet.
    options.retry_min = 1ms;
    options.retry_max = 4ms;
    options.retry_cap = 4ms;
  }
  const auto nodes = std::make_shared<bench::NodeWatch>();
  options.observer = nodes;
  const auto client = redlock::Client::create(std::move(options));
  if (!client) throw std::runtime_error(client.error().message);
  nodes->await_up(fleet.size());
  for (int round = 0; round < race.rounds; ++round) {
    auto lock = client->lock(race.name(process, round));
    auto lease = lock.acquire({.renewal = redlock::Renewal::never, .wait = 1min});
    if (!lease) throw std::runtime_error(lease.error().message);
    static_cast<void>(lease->release());
    // Whoever gave it back would otherwise be the next to ask.
    if (race.fight) std::this_thread::sleep_for(2ms);
  }
}

void run_processes(const Fleet& fleet, const Race& race) {
  std::vector<pid_t> children;
  for (int process = 0; process < processes; ++process) {
    children.push_back(::fork());
    if (children.back() != 0) continue;
    try {
      take_all(fleet, race, process);
      ::_exit(EXIT_SUCCESS);
    } catch (const std::exception& failure) {
      fmt::print(stderr, "{}\n", failure.what());
      ::_exit(EXIT_FAILURE);
    }
  }
  bool all_well = true;
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    all_well = all_well && status == 0;
  }
  if (!all_well) throw std::runtime_error("a process could not take its locks");
}

/// How often all nodes together have run a command.
long calls(const Fleet& fleet, const char* command) {
  const std::string field = fmt::format("cmdstat_{}:calls=", command);
  long sum = 0;
  for (std::size_t node = 0; node < fleet.size(); ++node) {
    const std::string info = fleet.run(node, {"INFO", "commandstats"});
    const auto at = info.find(field);
    if (at != std::string::npos) sum += std::stol(info.substr(at + field.size()));
  }
  return sum;
}

void settling(benchmark::State& state, const Race& race) {
  const Fleet fleet({.nodes = 5});
  for ([[maybe_unused]] auto _ : state) run_processes(fleet, race);
  const auto grants = static_cast<double>(processes * race.rounds);
  const long messages = calls(fleet, "hget");
  // Both scripts ask how long a lock lasts: acquire where it is refused, hold always.
  const long refusals = calls(fleet, "pttl") - messages;
  const double share = 100 * std::max(0.0, 1 - static_cast<double>(messages) / grants);
  state.counters["one_round_trip_percent"] = share;
  summary.push_back(fmt::format("{:<18} {:>8.0f} {:>10} {:>10} {:>11.3f} % {:>8.1f} %", race.what,
                                grants, refusals, messages, share, race.wanted_percent));
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = bench::take_rounds(argc, argv, 25'000);
  benchmark::Initialize(&argc, argv);
  const auto own_name = [](int process, int round) {
    return fmt::format("own-{}-{}", process, round);
  };
  const auto shared_name = [](int /*process*/, int round) {
    return fmt::format("shared-{}", round % fights);
  };
  const Race races[] = {
      {"distinct names", own_name, rounds, 99.9, false},
      {"names fought over", shared_name, std::max(rounds / 20, 1), 90.0, true},
  };
  for (const Race& race : races) {
    benchmark::RegisterBenchmark(race.what, settling, race)
        ->Iterations(1)
        ->Unit(benchmark::kSecond);
  }
  benchmark::RunSpecifiedBenchmarks();

  fmt::print("\n{} processes, 5 nodes {:>6} {:>10} {:>10} {:>13} {:>10}\n", processes, "grants",
             "refusals", "settles", "one trip", "wanted");
  for (const std::string& line : summary) fmt::print("{}\n", line);
  return EXIT_SUCCESS;
}
