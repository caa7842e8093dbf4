// SPDX-License-Identifier: MIT
// ./dev simulate: one seed step by step, or as many on all cores as there is time for.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fmt/format.h>
#include <map>
#include <mutex>
#include <pthread.h>
#include <string>
#include <thread>
#include <vector>

#include "simulation/bugs.hpp"
#include "simulation/run.hpp"

namespace redlock::simulation {
namespace {

using Clock = std::chrono::steady_clock;

struct Arguments {
  std::uint64_t seed = 0;
  std::uint64_t from = 0;
  std::uint64_t hashes = 0;
  int length = 60;  // seconds
  std::string bug = "none";
  bool promises = false;
  bool waiting = false;
  bool clones = false;
  bool changes = false;
  unsigned threads = std::max(1U, std::thread::hardware_concurrency());

  [[nodiscard]] Plan plan(std::uint64_t of_seed) const {
    Plan plan = plan_of(of_seed);
    plan.judges_rules = !promises;
    return plan;
  }
};

int replay(const Plan& plan) {
  fmt::print("{}\n", plan.in_words());
  Coverage coverage;
  const RunResult result =
      run(plan, coverage, [](const std::string& line) { fmt::print("{}\n", line); });
  fmt::print("{} steps, hash {:016x}\n", result.steps, result.hash);
  if (!result.violation) return 0;
  fmt::print("BROKEN: {}\n  {}\n", result.violation->rule, result.violation->what);
  return 1;
}

/// For a comparison between compilers.
int print_hashes(std::uint64_t count) {
  for (std::uint64_t seed = 1; seed <= count; ++seed) {
    Coverage coverage;
    fmt::print("{} {:016x}\n", seed, run(plan_of(seed), coverage).hash);
  }
  return 0;
}

/// Runs one seed after the other until the time is over, a promise is broken or a world does not
/// end; prints progress and, but for the last, figures and coverage.
class Exploration {
 public:
  explicit Exploration(const Arguments& arguments)
      : arguments_(arguments),
        next_seed_(arguments.from != 0 ? arguments.from : by_the_clock() / 1000),
        workers_(arguments.threads) {}

  int run() {
    fmt::print(stderr, "{} threads, seeds from {}\n", arguments_.threads, next_seed_.load());
    const std::chrono::seconds length(arguments_.length);
    std::vector<std::thread> threads;
    for (Worker& worker : workers_) threads.emplace_back([this, &worker] { work(worker); });
    for (int ticks = 1; !std::ranges::all_of(workers_, &Worker::is_done); ++ticks) {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      if (ticks % 50 == 0) print_progress();
      for (std::size_t i = 0; i < threads.size(); ++i) must_end(threads[i], workers_[i]);
      if (Clock::now() - start_ >= length) stop_ = true;
    }
    for (std::thread& thread : threads) thread.join();
    print_figures();
    return print_violation() ? 1 : 0;
  }

 private:
  using ProcessorTime = std::chrono::nanoseconds;
  struct Worker {
    std::atomic<std::uint64_t> seed{0};
    std::atomic<ProcessorTime> began{};  ///< what its thread had taken when it began with the seed
    std::atomic<bool> done{false};
    [[nodiscard]] bool is_done() const { return done; }
  };
  /// Most take a tenth of a second.
  static constexpr ProcessorTime longest_world = std::chrono::minutes(1);

  /// Of one that has ended: nothing.
  static ProcessorTime taken_by(pthread_t thread) {
    clockid_t clock{};
    timespec taken{};
    if (pthread_getcpuclockid(thread, &clock) == 0) clock_gettime(clock, &taken);
    return std::chrono::seconds(taken.tv_sec) + ProcessorTime(taken.tv_nsec);
  }

  /// A world that does not end cannot be stopped either.
  void must_end(std::thread& thread, const Worker& worker) {
    const std::uint64_t seed = worker.seed;
    const ProcessorTime taken = taken_by(thread.native_handle()) - worker.began.load();
    if (taken < longest_world || seed != worker.seed) return;
    if (!print_violation()) {
      fmt::print("BROKEN: a world ends\n  it has taken a minute of a processor\n{}\n",
                 arguments_.plan(seed).in_words());
    }
    std::fflush(stdout);
    std::_Exit(1);
  }

  /// False: no promise is broken.
  bool print_violation() {
    const std::lock_guard lock(mutex_);
    if (!violation_) return false;
    const Planted planted(arguments_.bug);
    fmt::print("{}", report(arguments_.plan(broken_seed_), *violation_));
    return true;
  }

  static std::uint64_t by_the_clock() {
    return static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
  }

  void work(Worker& worker) {
    const Planted planted(arguments_.bug);
    while (!stop_) {
      const std::uint64_t seed = next_seed_++;
      worker.began = taken_by(pthread_self());
      worker.seed = seed;
      Coverage coverage;
      Plan plan = arguments_.plan(seed);
      if (arguments_.waiting && !plan.waits) continue;
      if (arguments_.changes && plan.spares == 0) continue;
      if (arguments_.clones && !plan.judges_clones()) continue;
      add(seed, simulation::run(std::move(plan), coverage), coverage);
    }
    worker.done = true;
  }

  void add(std::uint64_t seed, const RunResult& result, const Coverage& covered) {
    const std::lock_guard lock(mutex_);
    coverage_.add(covered);
    ++runs_;
    steps_ += result.steps;
    counts_.add(result.counts);
    if (!result.violation) return;
    stop_ = true;
    if (violation_) return;
    violation_ = result.violation;
    broken_seed_ = seed;
  }

  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(Clock::now() - start_).count();
  }
  [[nodiscard]] double million_steps() const { return static_cast<double>(steps_) / 1e6; }
  [[nodiscard]] std::uint64_t per_minute(std::uint64_t count) const {
    return static_cast<std::uint64_t>(static_cast<double>(count) * 60 / seconds());
  }

  void print_progress() {
    const std::lock_guard lock(mutex_);
    fmt::print(stderr,
               "{:>5.0f} s  {} runs, {:.1f} million steps, {:.2f} million steps/s, {} granted\n",
               seconds(), runs_, million_steps(), million_steps() / seconds(), counts_.granted);
  }

  void print_figures() const {
    fmt::print("{}empty cells: {}\n", coverage_.table(), coverage_.empty_cells());
    fmt::print("{} runs in {:.1f} s: {} steps ({:.2f} million a second)\n", runs_, seconds(),
               steps_, million_steps() / seconds());
    fmt::print("acquisitions asked for {} ({} a minute), attempts {}, granted {} ({} a minute)\n",
               counts_.requests, per_minute(counts_.requests), counts_.attempts, counts_.granted,
               per_minute(counts_.granted));
    fmt::print("the longest that a free lock was waited for: {} ms\n",
               counts_.longest_free / std::chrono::milliseconds(1));
    fmt::print("leases lost {}, stale accesses turned away {}\n", counts_.lost,
               counts_.stale_writes);
  }

  const Arguments& arguments_;
  const Clock::time_point start_ = Clock::now();
  std::atomic<std::uint64_t> next_seed_;
  std::vector<Worker> workers_;
  std::atomic<bool> stop_{false};
  std::mutex mutex_;  // of what all threads have done together:
  Coverage coverage_;
  std::uint64_t runs_ = 0;
  std::uint64_t steps_ = 0;
  Invariants::Counts counts_;
  std::uint64_t broken_seed_ = 0;
  std::optional<Violation> violation_;
};

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app{"Runs the protocol in simulated worlds, each made by a seed."};
  app.add_option("--seed", arguments.seed, "replay this one, step by step");
  app.add_option("--for", arguments.length, "explore for so long (90s, 10m, 2h)")
      ->transform(
          CLI::AsNumberWithUnit(std::map<std::string, int>{{"s", 1}, {"m", 60}, {"h", 3600}}));
  app.add_option("--from", arguments.from, "explore from this seed on (otherwise: by the clock)");
  app.add_option("--threads", arguments.threads, "explore on so many cores");
  app.add_option("--bug", arguments.bug, "with this bug planted");
  app.add_flag("--promises", arguments.promises,
               "judge what is promised, and not by which rules it is kept");
  app.add_flag("--waiting", arguments.waiting, "explore only worlds that judge how callers wait");
  app.add_flag("--changes", arguments.changes, "explore only worlds whose set changes its members");
  app.add_flag("--clones", arguments.clones,
               "explore only worlds that judge exclusion where two clients draw one owner");
  app.add_option("--hashes", arguments.hashes, "print the trace hashes of so many seeds");
  CLI11_PARSE(app, argc, argv);

  if (!is_bug(arguments.bug)) {
    fmt::print(stderr, "no such bug; there are:\n");
    for (const std::string_view name : all_bugs()) fmt::print(stderr, "  {}\n", name);
    return 64;
  }
  if (arguments.hashes != 0) return print_hashes(arguments.hashes);
  if (arguments.seed == 0) return Exploration(arguments).run();
  const Planted planted(arguments.bug);
  return replay(arguments.plan(arguments.seed));
}

}  // namespace
}  // namespace redlock::simulation

int main(int argc, char** argv) {
  return redlock::simulation::main(argc, argv);
}
