// SPDX-License-Identifier: MIT
// Many callers want one lock: how often it changes hands, how long they wait, and how evenly it is
// shared. In order (fifo), in no order (barging), and by plain random polling, in turns on the same
// five nodes; beside them what one caller does that contends with nobody, and bare hiredis. Callers
// are threads of several processes (this program again, with --worker). Then what a crowd, nodes
// that are stopped, users who may not subscribe (all, or one of four), faults of holders and
// waiters, and a caller far away from the nodes cost those who wait in order. --scene TEXT runs the
// scenes whose names contain it.
#include <algorithm>
#include <array>
#include <benchmark/benchmark.h>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fmt/format.h>
#include <map>
#include <random>
#include <string>
#include <sys/resource.h>
#include <thread>
#include <vector>

#include <redlock/redlock.hpp>

#include "bare_hiredis.hpp"
#include "cluster/fleet.hpp"
#include "rounds.hpp"
#include "samples.hpp"
#include "support/proxy.hpp"
#include "waiting_faults.hpp"

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
  bool awaits_release = true;  // before the next call
};

constexpr std::array scenes{
    Scene{"empty section, 4 x 8", 4, 8, milliseconds(0), milliseconds(0)},
    Scene{"5 ms, then 10 ms, 4 x 8", 4, 8, milliseconds(5), milliseconds(10)},
    Scene{"5 ms section, 6 x 1", 6, 1, milliseconds(5), milliseconds(0)},
    Scene{"empty section, 2 x 1", 2, 1, milliseconds(0), milliseconds(0)},
    Scene{"empty section, 1 x 8", 1, 8, milliseconds(0), milliseconds(0)},
    Scene{"empty section, 1 x 1", 1, 1, milliseconds(0), milliseconds(0)},
    Scene{"5 ms section, 1 x 64", 1, 64, milliseconds(5), milliseconds(0)},
    Scene{"empty section, 4 x 250", 4, 250, milliseconds(0), milliseconds(0)},
    Scene{"5 ms section, 4 x 1", 4, 1, milliseconds(5), milliseconds(0), false},
    Scene{"5 ms section, release awaited, 4 x 1", 4, 1, milliseconds(5), milliseconds(0)},
    Scene{"5 ms, then 10 ms, 4 x 1", 4, 1, milliseconds(5), milliseconds(10), false},
    Scene{"empty section, 4 x 1", 4, 1, milliseconds(0), milliseconds(0), false},
};
constexpr std::size_t in_turns = 7;  // of which: in every way

/// Those who wait in order, as usual and otherwise, in turns.
struct Comparison {
  const char* name;
  std::size_t usual;
  std::size_t other;
  bool two_stopped;  // nodes
  bool denied;       // to subscribe
  double bar;        // how much longer a hand-off may take; 0: none
};

constexpr std::array comparisons{
    Comparison{"1,000 waiters, empty section", 0, 7, false, false, 1.25},
    Comparison{"two nodes stopped, empty section", 0, 0, true, false, 1.1},
    Comparison{"two nodes stopped, 5 ms, then 10 ms", 1, 1, true, false, 1.1},
    Comparison{"subscribe denied, empty section", 0, 0, false, true, 0},
    Comparison{"subscribe denied, 5 ms, then 10 ms", 1, 1, false, true, 0},
};

/// Three callers near the nodes, and a fourth as far away as this. One that awaits the answer to
/// its release is in no line meanwhile, for a round trip and a half.
struct FarCase {
  const char* name;
  std::size_t scene;
  std::size_t way;
};
constexpr std::array far_cases{FarCase{"fifo", 8, 0}, FarCase{"fifo, release awaited", 9, 0},
                               FarCase{"barging", 8, 1}};
constexpr std::array far_round_trips{milliseconds(1), milliseconds(10), milliseconds(60),
                                     milliseconds(150)};

/// Three callers that are woken, and a fourth that may not subscribe.
struct DeniedCase {
  const char* name;
  std::size_t scene;
};
constexpr std::array denied_cases{DeniedCase{"5 ms section", 8}, DeniedCase{"5 ms, then 10 ms", 10},
                                  DeniedCase{"empty section", 11}};

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

/// What one caller had. Those that wait when the time is over have the lock after it: their waits
/// count, as long ones would not be seen otherwise, but not their number.
struct Calls {
  std::vector<std::uint32_t> begins;  // in us since the callers' common start
  std::vector<std::uint32_t> waits;   // until it was granted the lock, in us
  std::uint32_t in_time = 0;          // grants
};

redlock::Lease take(redlock::RedLock& lock, Way way, std::minstd_rand& random) {
  for (;;) {
    const auto wait = way == Way::polling ? milliseconds(0) : milliseconds(60'000);
    auto lease = lock.acquire({.wait = wait});
    if (lease) return std::move(*lease);
    if (way != Way::polling) throw std::runtime_error(lease.error().message);
    std::this_thread::sleep_for(milliseconds(50 + random() % 100));
  }
}

std::uint32_t us_between(BootClock::time_point from, BootClock::time_point to) {
  return static_cast<std::uint32_t>(std::chrono::duration_cast<microseconds>(to - from).count());
}

void call(const redlock::Client& client, const Scene& scene, Way way, BootClock::time_point start,
          milliseconds length, unsigned seed, Calls& calls) {
  redlock::RedLock lock = client.lock("bench");
  std::minstd_rand random(seed);
  const auto end = start + length;
  while (BootClock::now() < end) {
    const auto began = BootClock::now();
    redlock::Lease lease = take(lock, way, random);
    const auto granted = BootClock::now();
    calls.begins.push_back(us_between(start, began));
    calls.waits.push_back(us_between(began, granted));
    if (granted < end) ++calls.in_time;
    if (scene.section.count() > 0) std::this_thread::sleep_for(scene.section);
    if (scene.awaits_release) lease.release();
    lease = {};
    if (scene.think.count() > 0) std::this_thread::sleep_for(scene.think);
  }
}

/// --worker SCENE WAY START MILLISECONDS SEED URI...: calls from START on, which all workers share,
/// and writes when each caller's calls began and how long they waited, after their number.
int work(int argc, char** argv) {
  const Scene& scene = scenes.at(std::stoul(argv[2]));
  const auto way = static_cast<Way>(std::stoi(argv[3]));
  const BootClock::time_point start(BootClock::duration(std::stoll(argv[4])));
  const milliseconds length(std::stoi(argv[5]));
  const auto seed = static_cast<unsigned>(std::stoul(argv[6]));
  const redlock::Client client = connect({argv + 7, argv + argc}, way);
  { auto warm = client.lock("warm").acquire({.wait = std::chrono::seconds(10)}); }
  std::vector<Calls> calls(static_cast<std::size_t>(scene.callers));
  std::vector<std::thread> callers;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    callers.emplace_back([&, i] {
      std::this_thread::sleep_for(start - BootClock::now());
      call(client, scene, way, start, length, seed + static_cast<unsigned>(i), calls[i]);
    });
  }
  for (std::thread& caller : callers) caller.join();
  for (const Calls& one : calls) {
    const std::array numbers{static_cast<std::uint32_t>(one.waits.size()), one.in_time};
    std::fwrite(numbers.data(), sizeof(std::uint32_t), numbers.size(), stdout);
    std::fwrite(one.begins.data(), sizeof(std::uint32_t), one.begins.size(), stdout);
    std::fwrite(one.waits.data(), sizeof(std::uint32_t), one.waits.size(), stdout);
  }
  return EXIT_SUCCESS;
}

/// Of a worker's callers, once it has ended.
std::vector<Calls> calls_of(bench::Process& worker) {
  std::vector<Calls> all;
  std::array<std::uint32_t, 2> numbers{};
  while (std::fread(numbers.data(), sizeof numbers, 1, worker.output()) == 1) {
    Calls& one = all.emplace_back();
    one.in_time = numbers[1];
    bool whole = true;
    for (auto* const part : {&one.begins, &one.waits}) {
      part->resize(numbers[0]);
      whole = whole && std::fread(part->data(), sizeof(std::uint32_t), numbers[0],
                                  worker.output()) == numbers[0];
    }
    if (!whole) break;
  }
  if (worker.wait() != 0) throw std::runtime_error("a worker failed");
  return all;
}

/// Grants to calls that began a millisecond or more after another caller's call which then waited
/// on.
std::size_t out_of_order(const std::vector<Calls>& callers) {
  struct Call {
    std::uint32_t begins, granted;
  };
  std::vector<Call> calls;
  for (const Calls& one : callers) {
    for (std::size_t i = 0; i < one.waits.size(); ++i) {
      calls.push_back({one.begins[i], one.begins[i] + one.waits[i]});
    }
  }
  constexpr std::uint32_t near = 1'000;
  return static_cast<std::size_t>(std::ranges::count_if(calls, [&](const Call& call) {
    return std::ranges::any_of(calls, [&](const Call& other) {
      return other.begins + near <= call.begins && other.granted > call.granted;
    });
  }));
}

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
  std::vector<std::uint32_t> waits;
  std::vector<std::size_t> grants;  // of each caller
  std::size_t in_time = 0;          // of them
  double seconds = 0;
  Load nodes;             // of all of them
  double client_cpu = 0;  // seconds

  void add(const std::vector<Calls>& callers) {
    std::size_t at = 0;
    for (const Calls& one : callers) {
      waits.insert(waits.end(), one.waits.begin(), one.waits.end());
      if (grants.size() <= at) grants.push_back(0);
      grants[at++] += one.waits.size();
      in_time += one.in_time;
    }
  }
  [[nodiscard]] double rate() const { return static_cast<double>(in_time) / seconds; }
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
    const double cycles = floor.rate();
    summary.push_back(
        fmt::format("\n{}; bare hiredis {:.0f} cycles/s", scenes[scene].name, cycles));
    for (std::size_t way = 0; way < ways.size(); ++way) {
      report(state, figures[way], ways[way], cycles);
    }
  }

  void run(benchmark::State& state, const Comparison& what) {
    Figures usual;
    Figures other;
    Figures floor;
    for ([[maybe_unused]] auto _ : state) {
      measure_floor(floor);
      measure(usual, what.usual, 0);
      disturb(what);
      measure(other, what.other, 0);
      restore(what);
    }
    const double cycles = floor.rate();
    summary.push_back(fmt::format("\n{}; bare hiredis {:.0f} cycles/s", what.name, cycles));
    report(state, usual, "usual", cycles);
    report(state, other, "changed", cycles);
    const double longer = usual.rate() / std::max(other.rate(), 0.001);
    const char* verdict = longer <= what.bar ? "met" : "MISSED";
    summary.push_back(
        what.bar == 0 ? fmt::format("  a hand-off takes {:.2f} times as long", longer)
                      : fmt::format("  a hand-off takes {:.2f} times as long; at most {:.2f}: {}",
                                    longer, what.bar, verdict));
  }

  /// The fourth of four callers may not subscribe.
  void run_one_denied(milliseconds length) {
    permit("deaf", {"on", ">deaf", "~*", "&*", "+@all", "-subscribe"});
    std::vector<std::string> denied = fleet_.uris();
    for (std::string& uri : denied) uri.insert(uri.find("//") + 2, "deaf:deaf@");
    summary.push_back(fmt::format("\nthe last of four callers may not subscribe, {:.1f} s",
                                  std::chrono::duration<double>(length).count()));
    for (const auto& [name, scene] : denied_cases) {
      const auto all_may = calls_of_workers(scene, 0, length, {});
      const auto one_may_not = calls_of_workers(scene, 0, length, denied);
      report(name, {"", "denied "}, all_may, one_may_not, length);
    }
  }

  /// Each case in one piece: a far caller is granted the lock a few times in a second.
  void run_far(milliseconds round_trip, milliseconds length) {
    const auto relays = redlock::testing::proxies_of(fleet_);
    for (const auto& relay : relays) relay->delay(microseconds(round_trip) / 2);
    summary.push_back(fmt::format("\n5 ms section, three callers near and one {} ms away, {:.1f} s",
                                  round_trip.count(),
                                  std::chrono::duration<double>(length).count()));
    for (const auto& [name, scene, way] : far_cases) {
      const auto all_near = calls_of_workers(scene, way, length, {});
      const auto one_far = calls_of_workers(scene, way, length, uris_of(relays));
      report(name, {"near ", "far "}, all_near, one_far, length);
    }
  }

 private:
  void disturb(const Comparison& what) {
    for (const std::size_t node : {1U, 3U}) {
      if (what.two_stopped) fleet_.pause(node);
    }
    if (what.denied) permit("default", {"-subscribe"});
  }
  void restore(const Comparison& what) {
    for (const std::size_t node : {1U, 3U}) {
      if (what.two_stopped) fleet_.resume(node);
    }
    if (what.denied) permit("default", {"+subscribe"});
  }
  /// Until all workers know all nodes: those that do not answer, after some node timeouts.
  [[nodiscard]] milliseconds warming_up() const {
    const bool all_run = fleet_.state(1) == redlock::cluster::NodeState::running;
    return milliseconds(all_run ? 1'000 : 4'000);
  }
  void permit(const char* user, const std::vector<std::string>& rights) const {
    std::vector<std::string> command{"ACL", "SETUSER", user};
    command.insert(command.end(), rights.begin(), rights.end());
    for (std::size_t node = 0; node < fleet_.size(); ++node) fleet_.run(node, command);
  }

  void measure_floor(Figures& figures) {
    std::vector<std::uint16_t> ports;
    for (std::size_t node = 0; node < fleet_.size(); ++node) ports.push_back(fleet_.port(node));
    bench::BareHiredis bare(ports);
    const auto start = BootClock::now();
    while (BootClock::now() - start < length_ / 2) {
      bare.acquire("floor");
      bare.release("floor");
      ++figures.in_time;
    }
    figures.seconds += std::chrono::duration<double>(BootClock::now() - start).count();
  }

  void measure(Figures& figures, std::size_t scene, std::size_t way) {
    const Load before = load();
    const double cpu_before = cpu_of_workers();
    figures.add(calls_of_workers(scene, way, length_, {}));
    figures.seconds += std::chrono::duration<double>(length_).count();
    const Load after = load();
    figures.nodes.calls += after.calls - before.calls;
    figures.nodes.cpu += after.cpu - before.cpu;
    figures.client_cpu += cpu_of_workers() - cpu_before;
  }

  /// The last process reaches the nodes by these URIs, if there are any.
  std::vector<Calls> calls_of_workers(std::size_t scene, std::size_t way, milliseconds length,
                                      const std::vector<std::string>& uris_of_last) const {
    const BootClock::time_point start = BootClock::now() + warming_up();
    std::vector<bench::Process> workers;
    for (int process = 0; process < scenes[scene].processes; ++process) {
      const bool other = !uris_of_last.empty() && process == scenes[scene].processes - 1;
      std::vector<std::string> arguments{"--worker",
                                         std::to_string(scene),
                                         std::to_string(way),
                                         std::to_string(start.time_since_epoch().count()),
                                         std::to_string(length.count()),
                                         std::to_string(1000 * process + 1)};
      for (const std::string& uri : other ? uris_of_last : fleet_.uris()) {
        arguments.push_back(uri);
      }
      workers.emplace_back(std::move(arguments));
    }
    std::vector<Calls> callers;
    for (bench::Process& worker : workers) {
      for (Calls& calls : calls_of(worker)) callers.push_back(std::move(calls));
    }
    return callers;
  }

  [[nodiscard]] Load load() const {
    Load sum;
    for (std::size_t node = 0; node < fleet_.size(); ++node) {
      if (fleet_.state(node) != redlock::cluster::NodeState::running) continue;
      const Load one = load_of(fleet_, node);
      sum.calls += one.calls;
      sum.cpu += one.cpu;
    }
    return sum;
  }

  void report(benchmark::State& state, Figures& figures, const std::string& way,
              double cycles) const {
    const auto grants = static_cast<double>(figures.waits.size());
    const auto [fewest, most] = std::ranges::minmax(figures.grants);
    const double median = figures.wait(0.5);
    const double rate = figures.rate();
    const auto nodes = static_cast<double>(fleet_.size());
    state.counters[way + "_of_floor"] = rate / cycles;
    summary.push_back(fmt::format(
        "  {:<8} {:>7.0f}/s {:>5.2f} of the floor; waits: median {:>7.1f} p99 {:>7.1f} ({:>4.1f}x) "
        "longest {:>7.1f} ms; grants {} to {}; a grant and node: {:.2f} calls, {:.0f} us; clients "
        "{:.0f} "
        "us a grant",
        way, rate, rate / cycles, median, figures.wait(0.99),
        figures.wait(0.99) / std::max(median, 0.001), figures.wait(1), fewest, most,
        figures.nodes.calls / grants / nodes, 1e6 * figures.nodes.cpu / grants / nodes,
        1e6 * figures.client_cpu / grants));
  }

  /// `kinds`: of the first three callers, and of the last one where that is another.
  static void report(const char* name, std::array<const char*, 2> kinds,
                     const std::vector<Calls>& all_same, const std::vector<Calls>& one_other,
                     milliseconds length) {
    const auto hand_offs = [length](const std::vector<Calls>& callers) {
      double grants = 0;
      for (const Calls& one : callers) grants += one.in_time;
      return grants / std::chrono::duration<double>(length).count();
    };
    const auto longest_wait = [](const Calls& calls) {
      return calls.waits.empty() ? 0 : std::ranges::max(calls.waits) / 1000;
    };
    const auto of_each = [&](const std::vector<Calls>& callers, const auto& what) {
      std::string text;
      for (std::size_t i = 0; i < callers.size(); ++i) {
        const bool last = i + 1 == callers.size();
        text += fmt::format("{}{}{}",
                            i == 0 ? ""
                            : last ? "; "
                                   : ", ",
                            last     ? kinds[1]
                            : i == 0 ? kinds[0]
                                     : "",
                            what(callers[i]));
      }
      return text;
    };
    summary.push_back(fmt::format(
        "  {:<21} grants: {}, {} of them out of order; longest wait in ms: {}; {:.1f} hand-offs/s, "
        "{:.2f} of the {:.1f} with four equal callers",
        name, of_each(one_other, [](const Calls& calls) { return calls.in_time; }),
        out_of_order(one_other), of_each(one_other, longest_wait), hand_offs(one_other),
        hand_offs(one_other) / std::max(hand_offs(all_same), 0.001), hand_offs(all_same)));
  }

  milliseconds length_;
  Fleet fleet_{{.nodes = 5}};
};

std::string distribution(const bench::Samples& samples) {
  return fmt::format("median {:>6.1f}, 90% {:>6.1f}, longest {:>6.1f} ms", samples.median() / 1000,
                     samples.quantile(0.9) / 1000, samples.quantile(1) / 1000);
}

void run_head_faults(benchmark::State& state) {
  using Fault = bench::WaitingFaults::Fault;
  constexpr double turn = 20;  // ms for which nodes keep a lock
  // Nodes count in ms, and who is behind comes up to 2 ms later, at random.
  constexpr double bar = 1.15;
  constexpr auto& names = bench::WaitingFaults::names;
  bench::WaitingFaults faults;
  std::array<bench::Samples, names.size()> first;
  std::array<bench::Samples, names.size()> all;
  for ([[maybe_unused]] auto _ : state) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      faults.head(static_cast<Fault>(i), first[i], all[i]);
    }
  }
  summary.emplace_back("\nfaults of the first waiter, eight behind it: from the release");
  for (std::size_t i = 0; i < names.size(); ++i) {
    summary.push_back(fmt::format("  {:<8} first grant: {}; all eight: {}", names[i],
                                  distribution(first[i]), distribution(all[i])));
    if (i == 0) continue;
    const double lost = (all[i].median() - all[0].median()) / 1000 / turn;
    summary.push_back(fmt::format("           {:.2f} turns are lost; at most {}: {}", lost, bar,
                                  lost <= bar ? "met" : "MISSED"));
  }
}

void run_holder_faults(benchmark::State& state) {
  using Fault = bench::WaitingFaults::Fault;
  bench::WaitingFaults faults;
  std::array<bench::Samples, 2> first;
  std::array<bench::Samples, 2> all;
  for ([[maybe_unused]] auto _ : state) {
    for (std::size_t i = 0; i < first.size(); ++i) {
      faults.holder(static_cast<Fault>(i), first[i], all[i]);
    }
  }
  summary.emplace_back(
      "\nfaults of the holder, 32 wait: from the release, or the end of the lease");
  for (std::size_t i = 0; i < first.size(); ++i) {
    summary.push_back(fmt::format("  {:<8} first grant: {}; all after it: {}",
                                  bench::WaitingFaults::names[i], distribution(first[i]),
                                  distribution(all[i])));
  }
  const double after = first[1].median() / 1000;
  const double rest = all[1].median() / all[0].median();
  summary.push_back(
      fmt::format("  first within 5 ms: {}; the rest takes {:.2f} times as long as usual",
                  after <= 5 ? "met" : "MISSED", rest));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 7 && std::string(argv[1]) == "--worker") return work(argc, argv);
  if (argc > 4 && std::string(argv[1]) == "--take") return bench::take_and_keep(argc, argv);
  const int rounds = bench::take_rounds(argc, argv, 3);
  const std::string chosen = bench::take_flag(argc, argv, "--scene").value_or("");
  std::string names;
  int added = 0;
  benchmark::Initialize(&argc, argv);
  constexpr milliseconds length(1'500);
  Contention contention(length);
  const auto add = [&](const std::string& name, int times, auto&& what) {
    names += "  " + name + '\n';
    if (name.find(chosen) == std::string::npos) return;
    ++added;
    benchmark::RegisterBenchmark(name.c_str(), what)
        ->Iterations(times)
        ->Unit(benchmark::kMillisecond);
  };
  for (std::size_t scene = 0; scene < in_turns; ++scene) {
    add(scenes[scene].name, rounds,
        [&, scene](benchmark::State& state) { contention.run(state, scene); });
  }
  for (const Comparison& what : comparisons) {
    add(what.name, rounds, [&](benchmark::State& state) { contention.run(state, what); });
  }
  add("one of four may not subscribe", 1, [&](benchmark::State& state) {
    for ([[maybe_unused]] auto _ : state) contention.run_one_denied(rounds * length);
  });
  for (const milliseconds round_trip : far_round_trips) {
    add(fmt::format("far, {} ms", round_trip.count()), 1, [&, round_trip](benchmark::State& state) {
      for ([[maybe_unused]] auto _ : state) contention.run_far(round_trip, rounds * length);
    });
  }
  add("faults of the first waiter", 7 * rounds, run_head_faults);
  add("faults of the holder", 7 * rounds, run_holder_faults);
  if (added == 0) {
    fmt::print(stderr, "no scene's name contains '{}'; there are:\n{}", chosen, names);
    return 64;
  }
  benchmark::RunSpecifiedBenchmarks();
  for (const std::string& line : summary) fmt::print("{}\n", line);
  return EXIT_SUCCESS;
}
