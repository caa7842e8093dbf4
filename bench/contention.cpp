// SPDX-License-Identifier: MIT
// Many callers want one lock: how often it changes hands, how long they wait, and how evenly it is
// shared. In order (fifo), in no order (barging), and by plain random polling, in turns on the same
// five nodes; beside them what one caller does that contends with nobody, and bare hiredis. Callers
// are threads of several processes (this program again, with --worker).
#include <algorithm>
#include <array>
#include <benchmark/benchmark.h>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fmt/format.h>
#include <map>
#include <random>
#include <spawn.h>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <redlock/redlock.hpp>

#include "bare_hiredis.hpp"
#include "cluster/fleet.hpp"
#include "rounds.hpp"

extern char** environ;

namespace {

using redlock::BootClock;
using redlock::cluster::Fleet;
using std::chrono::microseconds;
using std::chrono::milliseconds;

/// What callers do with the lock.
struct Scene {
  const char* name;
  int processes;
  int callers;  // in each
  milliseconds section;
  milliseconds think;
};

constexpr std::array scenes{
    Scene{"empty section, 4 x 8", 4, 8, milliseconds(0), milliseconds(0)},
    Scene{"5 ms, then 10 ms, 4 x 8", 4, 8, milliseconds(5), milliseconds(10)},
    Scene{"5 ms section, 6 x 1", 6, 1, milliseconds(5), milliseconds(0)},
    Scene{"empty section, 2 x 1", 2, 1, milliseconds(0), milliseconds(0)},
    Scene{"empty section, 1 x 8", 1, 8, milliseconds(0), milliseconds(0)},
    Scene{"empty section, 1 x 1", 1, 1, milliseconds(0), milliseconds(0)},
};

enum class Way { fifo, barging, polling };

constexpr std::array ways{"fifo", "barging", "polling"};

redlock::Client connect(std::vector<std::string> uris, Way way) {
  redlock::ClientOptions options;
  options.nodes = std::move(uris);
  options.quarantine = redlock::Quarantine::off;  // the nodes are new
  options.node_timeout = std::chrono::seconds(1);
  if (way != Way::fifo) options.ordering = redlock::Ordering::barging;
  auto client = redlock::Client::create(std::move(options));
  if (!client) throw std::runtime_error(client.error().message);
  return std::move(*client);
}

/// Waits that one caller had until it was granted the lock, in us.
using Waits = std::vector<std::uint32_t>;

redlock::Lease take(redlock::RedLock& lock, Way way, std::minstd_rand& random) {
  for (;;) {
    const auto wait = way == Way::polling ? milliseconds(0) : milliseconds(60'000);
    auto lease = lock.acquire({.wait = wait});
    if (lease) return std::move(*lease);
    if (way != Way::polling) throw std::runtime_error(lease.error().message);
    std::this_thread::sleep_for(milliseconds(50 + random() % 100));
  }
}

void call(const redlock::Client& client, const Scene& scene, Way way, BootClock::time_point end,
          unsigned seed, Waits& waits) {
  redlock::RedLock lock = client.lock("bench");
  std::minstd_rand random(seed);
  while (BootClock::now() < end) {
    const auto start = BootClock::now();
    redlock::Lease lease = take(lock, way, random);
    const auto waited = std::chrono::duration_cast<microseconds>(BootClock::now() - start);
    waits.push_back(static_cast<std::uint32_t>(waited.count()));
    if (scene.section.count() > 0) std::this_thread::sleep_for(scene.section);
    lease.release();
    if (scene.think.count() > 0) std::this_thread::sleep_for(scene.think);
  }
}

/// --worker SCENE WAY MILLISECONDS SEED URI...: writes each caller's waits, after their number.
int work(int argc, char** argv) {
  const Scene& scene = scenes.at(std::stoul(argv[2]));
  const auto way = static_cast<Way>(std::stoi(argv[3]));
  const auto seed = static_cast<unsigned>(std::stoul(argv[5]));
  const redlock::Client client = connect({argv + 6, argv + argc}, way);
  { auto warm = client.lock("warm").acquire({.wait = std::chrono::seconds(10)}); }
  const auto end = BootClock::now() + milliseconds(std::stoi(argv[4]));
  std::vector<Waits> waits(static_cast<std::size_t>(scene.callers));
  std::vector<std::thread> callers;
  for (std::size_t i = 0; i < waits.size(); ++i) {
    callers.emplace_back(
        [&, i] { call(client, scene, way, end, seed + static_cast<unsigned>(i), waits[i]); });
  }
  for (std::thread& caller : callers) caller.join();
  for (const Waits& one : waits) {
    const std::uint32_t count = static_cast<std::uint32_t>(one.size());
    std::fwrite(&count, sizeof count, 1, stdout);
    std::fwrite(one.data(), sizeof(std::uint32_t), one.size(), stdout);
  }
  return EXIT_SUCCESS;
}

class Worker {
 public:
  explicit Worker(std::vector<std::string> arguments) {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) throw std::runtime_error("no pipe");
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    const int failed =
        ::posix_spawn(&process_, "/proc/self/exe", &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    if (failed != 0) throw std::runtime_error("cannot start a worker");
    output_ = ::fdopen(ends[0], "r");
  }

  /// Its callers' waits, once it has ended.
  std::vector<Waits> waits() {
    std::vector<Waits> all;
    std::uint32_t count = 0;
    while (std::fread(&count, sizeof count, 1, output_) == 1) {
      Waits& one = all.emplace_back(count);
      if (std::fread(one.data(), sizeof(std::uint32_t), count, output_) != count) break;
    }
    std::fclose(output_);
    int status = 0;
    ::waitpid(process_, &status, 0);
    if (status != 0) throw std::runtime_error("a worker failed");
    return all;
  }

 private:
  pid_t process_ = 0;
  std::FILE* output_ = nullptr;
};

/// What a node has done so far.
struct Load {
  double calls = 0;  // of scripts
  double cpu = 0;    // seconds
};

double number_after(const std::string& text, const std::string& field) {
  const std::size_t at = text.find(field);
  return at == std::string::npos ? 0 : std::stod(text.substr(at + field.size()));
}

Load load_of(const Fleet& fleet, std::size_t node) {
  redisContext* const connection = redisConnect("127.0.0.1", fleet.port(node));
  std::string text;
  for (const char* part : {"INFO commandstats", "INFO cpu"}) {
    auto* const reply = static_cast<redisReply*>(redisCommand(connection, part));
    text.append(reply->str, reply->len);
    freeReplyObject(reply);
  }
  redisFree(connection);
  return {number_after(text, "cmdstat_evalsha:calls="),
          number_after(text, "used_cpu_sys:") + number_after(text, "used_cpu_user:")};
}

/// Time of the processor that workers have used which have ended.
double cpu_of_workers() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  const auto of = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return of(usage.ru_utime) + of(usage.ru_stime);
}

struct Figures {
  Waits waits;
  std::vector<std::size_t> grants;  // of each caller
  double seconds = 0;
  Load nodes;             // of all of them
  double client_cpu = 0;  // seconds

  void add(const std::vector<Waits>& callers) {
    std::size_t at = 0;
    for (const Waits& one : callers) {
      waits.insert(waits.end(), one.begin(), one.end());
      if (grants.size() <= at) grants.push_back(0);
      grants[at++] += one.size();
    }
  }
  [[nodiscard]] double wait(double part) {
    if (waits.empty()) return 0;
    const auto nth =
        waits.begin() + static_cast<std::ptrdiff_t>(part * static_cast<double>(waits.size() - 1));
    std::nth_element(waits.begin(), nth, waits.end());
    return *nth / 1000.0;
  }
};

std::vector<std::string> summary;

class Contention {
 public:
  explicit Contention(milliseconds length) : length_(length) {}

  void run(benchmark::State& state, std::size_t scene) {
    std::array<Figures, ways.size()> figures;
    Figures floor;
    for ([[maybe_unused]] auto _ : state) {
      measure_floor(floor);
      for (std::size_t way = 0; way < ways.size(); ++way) measure(figures[way], scene, way);
    }
    const double cycles = static_cast<double>(floor.waits.size()) / floor.seconds;
    summary.push_back(
        fmt::format("\n{}; bare hiredis {:.0f} cycles/s", scenes[scene].name, cycles));
    for (std::size_t way = 0; way < ways.size(); ++way) report(state, figures[way], way, cycles);
  }

 private:
  void measure_floor(Figures& figures) {
    std::vector<std::uint16_t> ports;
    for (std::size_t node = 0; node < fleet_.size(); ++node) ports.push_back(fleet_.port(node));
    bench::BareHiredis bare(ports);
    const auto start = BootClock::now();
    while (BootClock::now() - start < length_ / 2) {
      bare.acquire("floor");
      bare.release("floor");
      figures.waits.push_back(0);
    }
    figures.seconds += std::chrono::duration<double>(BootClock::now() - start).count();
  }

  void measure(Figures& figures, std::size_t scene, std::size_t way) {
    const Load before = load();
    const double cpu_before = cpu_of_workers();
    std::vector<Worker> workers;
    for (int process = 0; process < scenes[scene].processes; ++process) {
      std::vector<std::string> arguments{"bench_contention",
                                         "--worker",
                                         std::to_string(scene),
                                         std::to_string(way),
                                         std::to_string(length_.count()),
                                         std::to_string(1000 * process + 1)};
      for (const std::string& uri : fleet_.uris()) arguments.push_back(uri);
      workers.emplace_back(std::move(arguments));
    }
    std::vector<Waits> callers;
    for (Worker& worker : workers) {
      for (Waits& waits : worker.waits()) callers.push_back(std::move(waits));
    }
    figures.add(callers);
    figures.seconds += std::chrono::duration<double>(length_).count();
    const Load after = load();
    figures.nodes.calls += after.calls - before.calls;
    figures.nodes.cpu += after.cpu - before.cpu;
    figures.client_cpu += cpu_of_workers() - cpu_before;
  }

  [[nodiscard]] Load load() const {
    Load sum;
    for (std::size_t node = 0; node < fleet_.size(); ++node) {
      const Load one = load_of(fleet_, node);
      sum.calls += one.calls;
      sum.cpu += one.cpu;
    }
    return sum;
  }

  void report(benchmark::State& state, Figures& figures, std::size_t way, double cycles) const {
    const auto grants = static_cast<double>(figures.waits.size());
    const auto [fewest, most] = std::ranges::minmax(figures.grants);
    const double median = figures.wait(0.5);
    const double rate = grants / figures.seconds;
    const auto nodes = static_cast<double>(fleet_.size());
    state.counters[std::string(ways[way]) + "_of_floor"] = rate / cycles;
    summary.push_back(fmt::format(
        "  {:<8} {:>7.0f}/s {:>5.2f} of the floor; waits: median {:>7.1f} p99 {:>7.1f} ({:>4.1f}x) "
        "longest {:>7.1f} ms; grants {} to {}; a grant and node: {:.2f} calls, {:.0f} us; clients "
        "{:.0f} "
        "us a grant",
        ways[way], rate, rate / cycles, median, figures.wait(0.99),
        figures.wait(0.99) / std::max(median, 0.001), figures.wait(1), fewest, most,
        figures.nodes.calls / grants / nodes, 1e6 * figures.nodes.cpu / grants / nodes,
        1e6 * figures.client_cpu / grants));
  }

  milliseconds length_;
  Fleet fleet_{{.nodes = 5}};
};

}  // namespace

int main(int argc, char** argv) {
  if (argc > 6 && std::string(argv[1]) == "--worker") return work(argc, argv);
  const int rounds = bench::take_rounds(argc, argv, 3);
  benchmark::Initialize(&argc, argv);
  Contention contention(milliseconds(1'500));
  for (std::size_t scene = 0; scene < scenes.size(); ++scene) {
    benchmark::RegisterBenchmark(
        scenes[scene].name, [&, scene](benchmark::State& state) { contention.run(state, scene); })
        ->Iterations(rounds)
        ->Unit(benchmark::kMillisecond);
  }
  benchmark::RunSpecifiedBenchmarks();
  for (const std::string& line : summary) fmt::print("{}\n", line);
  return EXIT_SUCCESS;
}
