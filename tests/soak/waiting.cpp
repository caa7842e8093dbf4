// SPDX-License-Identifier: MIT
// Processes wait in order for a few locks on five nodes without persistence. Every second one of
// the processes and one of the nodes is killed, or stopped for a while, and comes back. Nobody may
// hold a lock that somebody else holds, tokens rise, and each call whose process runs has the lock
// within a bound; in the end nothing is left on the nodes, and no process has grown. Unless holders
// go on without asking whether their lease is valid: then two must hold one, or this would prove
// nothing.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fmt/format.h>
#include <functional>
#include <malloc.h>
#include <map>
#include <optional>
#include <random>
#include <signal.h>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <redlock/redlock.hpp>

#include "cluster/fleet.hpp"
#include "soak/footprint.hpp"
#include "soak/ledger.hpp"
#include "soak/verdict.hpp"

namespace {

using namespace redlock;
using namespace std::chrono_literals;
using cluster::Fleet;
using soak::Ledger;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t names = 4;
constexpr std::size_t workers = 12;  // worker w waits for name w % names; the first few are spared
constexpr int callers = 2;           // in each worker
constexpr milliseconds longest_lease = 1s;
constexpr milliseconds longest_section = 30ms;
constexpr milliseconds window = 20ms;        // for which nodes keep a lock for the next waiter
constexpr milliseconds queue_expiry = 3s;    // of the keys of a queue
constexpr milliseconds between_faults = 1s;  // of waiters; also of nodes
constexpr std::size_t most_nodes_out = 2;    // at a time

struct Plan {
  int length = 3600;  // seconds
  std::uint32_t seed = 1;
  bool careless = false;   // holders do not ask whether their lease is valid
  bool unhurried = false;  // on a machine that may be slow

  [[nodiscard]] milliseconds node_timeout() const { return unhurried ? 2s : 250ms; }
  /// In which a call that waits is served. Before it are all other callers of the name, each for
  /// its section and two windows; one holder that was killed or stopped, with its lease; one node
  /// that did not answer. As long as that takes, further faults come, which add a part of it.
  [[nodiscard]] milliseconds bound() const {
    if (unhurried) return 2min;
    const milliseconds dead_holder = longest_lease + 2 * window;
    const milliseconds base = (workers / names * callers - 1) * (longest_section + 2 * window) +
                              dead_holder + node_timeout();
    const auto added = dead_holder / names + node_timeout();  // in between_faults
    return base * between_faults.count() / (between_faults - added).count();
  }
};

/// What processes tell each other, beside the ledger.
struct Board {
  std::atomic<std::uint64_t> served;
  std::atomic<std::uint64_t> failed;       // calls that waited for ever, and ended
  std::atomic<std::uint64_t> late;         // served later than the bound
  std::atomic<std::uint64_t> most_before;  // others that were served while one waited
  std::atomic<std::int64_t> stalled_ms;    // for which the machine did not let a process run
  std::array<std::atomic<std::uint64_t>, names> grants;
  std::array<std::atomic<int>, workers> holding;
  std::array<std::atomic<BootClock::rep>, workers> resumed;  // when it went on after a stop

  static Board& make_shared() {
    void* const place =
        ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (place == MAP_FAILED) throw std::runtime_error("cannot share memory");
    return *new (place) Board{};
  }
};

template <typename Number>
void raise(std::atomic<Number>& largest, Number to) {
  Number known = largest;
  while (known < to && !largest.compare_exchange_weak(known, to)) {
  }
}

/// One thread that waits, holds and gives back until the end.
class Caller {
 public:
  Caller(const Plan& plan, Ledger& ledger, Board& board, std::size_t worker, std::uint32_t seed)
      : plan_(plan), ledger_(ledger), board_(board), worker_(worker), random_(seed) {}

  void run(const Client& client) {
    RedLock lock = client.lock(fmt::format("waiting:{}", name_));
    while (!ledger_.ended) take_one(lock);
  }

 private:
  void take_one(RedLock& lock) {
    const bool brief = below(8) == 0;
    const auto asked = BootClock::now();
    const std::uint64_t before = board_.grants[name_];
    const std::int64_t stalled = board_.stalled_ms;
    auto lease = lock.acquire({.lease = longest_lease,
                               .renewal = Renewal::never,
                               .wait = brief ? milliseconds(1 + below(100)) : forever});
    if (!lease) {
      ++(brief ? ledger_.given_up : board_.failed);
      if (!brief) fmt::print(stderr, "worker {}: {}\n", worker_, lease.error().message);
      return;
    }
    ++board_.served;
    const auto grants = board_.grants[name_]++;
    // Of a call whose process was stopped meanwhile nothing is promised.
    if (board_.resumed[worker_] < asked.time_since_epoch().count()) {
      const auto wait = std::chrono::ceil<milliseconds>(BootClock::now() - asked).count();
      raise(ledger_.longest_wait_ms, std::int64_t{wait});
      raise(board_.most_before, grants - before);
      if (milliseconds(wait - (board_.stalled_ms - stalled)) > plan_.bound()) ++board_.late;
    }
    hold(*lease);
    const auto released = lease->release();
  }

  void hold(const Lease& lease) {
    const auto length = milliseconds(below(static_cast<std::size_t>(longest_section.count())));
    const auto from = BootClock::now();
    if (!lease.valid()) return;
    soak::Hold* const written = ledger_.open({name_, from, from, lease.token()});
    ++board_.holding[worker_];
    for (auto now = from; now - from < length;) {
      std::this_thread::sleep_for(2ms);
      now = BootClock::now();
      if (!plan_.careless && !lease.valid()) break;
      if (written != nullptr) written->to = now;
    }
    --board_.holding[worker_];
  }

  std::size_t below(std::size_t end) {
    return std::uniform_int_distribution<std::size_t>(0, end - 1)(random_);
  }

  const Plan& plan_;
  Ledger& ledger_;
  Board& board_;
  const std::size_t worker_;
  const std::size_t name_ = worker_ % names;
  std::mt19937 random_;
};

class Run {
 public:
  explicit Run(const Plan& plan) : plan_(plan), random_(plan.seed) {}

  bool run() {
    fmt::print(
        "{} processes with {} callers each, {} names, {} nodes without persistence, leases of {} "
        "ms, seed {}; holders {}\n",
        workers, callers, names, soak::nodes, longest_lease.count(), plan_.seed,
        plan_.careless ? "DO NOT ASK whether their lease is valid" : "ask whether they are");
    fmt::print("a call whose process runs is to be served within {} ms\n", plan_.bound().count());
    std::fflush(stdout);  // or each process would print it again
    for (std::size_t worker = 0; worker < workers; ++worker) start_worker(worker);
    stall_watch_ = start([this] { watch_stalls(); });
    await_first_grants();
    make_faults();
    const bool ended_well = end_workers();
    const bool clean = await_no_keys();
    return report(clean) && ended_well;
  }

 private:
  using Clock = BootClock;

  // --- processes

  template <typename Work>
  pid_t start(const Work& work) {
    const pid_t pid = ::fork();
    if (pid < 0) throw std::runtime_error("cannot start a process");
    if (pid > 0) return pid;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    try {
      work();
      ::_exit(EXIT_SUCCESS);
    } catch (const std::exception& error) {
      fmt::print(stderr, "soak_waiting: {}\n", error.what());
      ::_exit(EXIT_FAILURE);
    }
  }

  void start_worker(std::size_t worker) {
    board_.holding[worker] = 0;
    const auto seed = static_cast<std::uint32_t>(random_());
    workers_[worker] = start([&] { be_worker(worker, seed); });
  }

  void be_worker(std::size_t worker, std::uint32_t seed) {
    ClientOptions options;
    options.nodes = fleet_.uris();
    options.lease = options.max_lease = longest_lease;
    options.node_timeout = plan_.node_timeout();
    const auto client = Client::create(std::move(options));
    if (!client) throw std::runtime_error(client.error().message);
    std::vector<std::jthread> threads;
    for (std::uint32_t i = 0; i < callers; ++i) {
      threads.emplace_back(
          [&, i] { Caller(plan_, ledger_, board_, worker, seed + i).run(*client); });
    }
    // What the allocator keeps for later, more and more after bursts, is not in use.
    while (!ledger_.ended) {
      std::this_thread::sleep_for(100ms);
      ::malloc_trim(0);
    }
  }

  [[noreturn]] void watch_stalls() {
    constexpr milliseconds step(5);
    for (;;) {
      const auto before = Clock::now();
      std::this_thread::sleep_for(step);
      const auto late = Clock::now() - before - 2 * step;
      if (late > late.zero()) board_.stalled_ms += std::chrono::ceil<milliseconds>(late).count();
    }
  }

  void await_first_grants() {
    const auto start = Clock::now();
    const auto all_had_one = [&] {
      return std::ranges::all_of(board_.grants, [](const auto& grants) { return grants > 0; });
    };
    while (!all_had_one()) {
      if (Clock::now() > start + 2min) throw std::runtime_error("nobody is ever served");
      std::this_thread::sleep_for(10ms);
    }
    // Calls that began before also waited for the quarantine of new nodes.
    for (auto& resumed : board_.resumed) resumed = Clock::now().time_since_epoch().count();
    ledger_.longest_wait_ms = 0;
    board_.late = 0;
    board_.most_before = 0;
  }

  // --- faults

  void make_faults() {
    start_ = Clock::now();
    auto next_fault = start_;
    auto next_line = start_ + 10s;
    while (Clock::now() < start_ + seconds(plan_.length)) {
      if (Clock::now() >= next_fault) {
        next_fault += between_faults;
        fault_of_node();
        fault_of_worker();
        note_footprint();
      }
      if (Clock::now() >= next_line) {
        next_line += 10s;
        print_progress();
      }
      mend(Clock::now());
      std::this_thread::sleep_for(10ms);
    }
    mend(Clock::time_point::max());
    // What dead waiters and holders left is gone by itself, and all nodes vote.
    std::this_thread::sleep_for(std::max(queue_expiry, 3 * longest_lease));
  }

  /// Does by then what is to be done later.
  void mend(Clock::time_point by) {
    while (!later_.empty() && later_.begin()->first <= by) {
      const auto what = later_.extract(later_.begin());
      what.mapped()();
    }
  }

  void fault_of_node() {
    const auto now = Clock::now();
    const auto out = std::ranges::count_if(out_until_, [&](auto until) { return until > now; });
    const std::size_t node = below(soak::nodes);
    if (static_cast<std::size_t>(out) >= most_nodes_out || out_until_[node] > now) return;
    out_until_[node] = Clock::time_point::max();
    const bool killed = below(2) == 0;
    if (killed) {
      fleet_.kill(node);
      ++nodes_killed_;
    } else {
      fleet_.pause(node);
      ++nodes_stopped_;
    }
    later_.emplace(now + milliseconds(below(1'500)), [this, node, killed] {
      if (killed) fleet_.restart(node, cluster::Data::empty);
      if (!killed) fleet_.resume(node);
      // Then it is in quarantine.
      out_until_[node] = Clock::now() + (killed ? 3 * longest_lease : milliseconds(0));
    });
  }

  void fault_of_worker() {
    // In turn, so that no name has more of them than the bound counts.
    const std::size_t name = turn_++ % names;
    std::size_t worker = name + names * (1 + below(workers / names - 1));
    if (plan_.careless || below(2) == 0) worker = await_holder(name).value_or(worker);
    if (stopped_[worker]) return;
    if (!plan_.careless && below(2) == 0) {
      ::kill(workers_[worker], SIGKILL);
      ::waitpid(workers_[worker], nullptr, 0);
      ++workers_killed_;
      return start_worker(worker);
    }
    ::kill(workers_[worker], SIGSTOP);
    ++workers_stopped_;
    stopped_[worker] = true;
    // For less than a lease, or more.
    const milliseconds length = plan_.careless ? 2 * longest_lease : milliseconds(below(2'000));
    later_.emplace(Clock::now() + length, [this, worker] {
      stopped_[worker] = false;
      board_.resumed[worker] = Clock::now().time_since_epoch().count();
      ::kill(workers_[worker], SIGCONT);
    });
  }

  /// A worker that may be killed, and has the lock now.
  std::optional<std::size_t> await_holder(std::size_t name) {
    for (int i = 0; i < 100; ++i) {
      for (std::size_t worker = name + names; worker < workers; worker += names) {
        if (board_.holding[worker] > 0 && !stopped_[worker]) return worker;
      }
      std::this_thread::sleep_for(1ms);
    }
    return {};
  }

  // --- the end

  /// They end when their last calls have been served.
  bool end_workers() {
    ledger_.ended = true;
    const auto start = Clock::now();
    std::size_t ended_well = 0;
    for (const pid_t pid : workers_) {
      int status = 0;
      while (::waitpid(pid, &status, WNOHANG) == 0) {
        if (Clock::now() > start + plan_.bound()) ::kill(pid, SIGKILL);
        std::this_thread::sleep_for(1ms);
      }
      if (status == 0) ++ended_well;
    }
    ::kill(stall_watch_, SIGKILL);
    ::waitpid(stall_watch_, nullptr, 0);
    if (ended_well < workers) {
      fmt::print("{} processes did not end, or not well\n", workers - ended_well);
    }
    return ended_well == workers;
  }

  bool await_no_keys() {
    const auto start = Clock::now();
    const milliseconds most = plan_.unhurried ? 30s : std::max(queue_expiry, longest_lease);
    while (keys_left() > 0 && Clock::now() < start + most) {
      std::this_thread::sleep_for(10ms);
    }
    const std::size_t left = keys_left();
    fmt::print("{} keys of locks and queues are left {:.1f} s after the last call\n", left,
               std::chrono::duration<double>(Clock::now() - start).count());
    return left == 0;
  }

  [[nodiscard]] std::size_t keys_left() const {
    std::size_t count = 0;
    for (std::size_t node = 0; node < soak::nodes; ++node) {
      const auto keys = fleet_.run(node, {"KEYS", "redlock:lock:*"});
      if (keys == "(empty array)") continue;
      count += 1 + static_cast<std::size_t>(std::ranges::count(keys, '\n'));
    }
    return count;
  }

  // --- figures

  /// Of the workers that nothing happens to.
  void note_footprint() { footprints_.note({workers_.begin(), workers_.begin() + names}); }

  void print_progress() const {
    fmt::print(
        "after {:4.0f} s: {} served, longest wait {} ms, {} too late; killed {} processes and {} "
        "nodes, stopped {} and {}; {:.1f} descriptors, {:.2f} MiB\n",
        std::chrono::duration<double>(Clock::now() - start_).count(), board_.served.load(),
        ledger_.longest_wait_ms.load(), board_.late.load(), workers_killed_, nodes_killed_,
        workers_stopped_, nodes_stopped_, footprints_.latest().descriptors,
        footprints_.latest().memory);
    std::fflush(stdout);
  }

  bool report(bool clean) const {
    print_progress();
    const soak::Judgement found = soak::judge(ledger_);
    fmt::print(
        "{} grants, {} calls that gave up, {} that failed; two holders at once: {}; tokens that do "
        "not rise: {}\n",
        board_.served.load(), ledger_.given_up.load(), board_.failed.load(), found.overlaps,
        found.falling_tokens);
    fmt::print(
        "longest wait {} ms, {} longer than {} ms; at most {} others were served meanwhile; "
        "the machine stood still for {} ms\n",
        ledger_.longest_wait_ms.load(), board_.late.load(), plan_.bound().count(),
        board_.most_before.load(), board_.stalled_ms.load());
    const bool flat = footprints_.are_flat(1, 1);
    if (plan_.careless) return found.overlaps > 0;
    return clean && flat && found.overlaps == 0 && found.falling_tokens == 0 && board_.late == 0 &&
           board_.failed == 0;
  }

  std::size_t below(std::size_t end) {
    return std::uniform_int_distribution<std::size_t>(0, end - 1)(random_);
  }

  const Plan plan_;
  std::mt19937 random_;
  Ledger& ledger_ = Ledger::make_shared();
  Board& board_ = Board::make_shared();
  Fleet fleet_{{.nodes = soak::nodes}};
  std::array<pid_t, workers> workers_{};
  std::array<bool, workers> stopped_{};
  pid_t stall_watch_ = 0;
  std::array<Clock::time_point, soak::nodes> out_until_{};
  std::multimap<Clock::time_point, std::function<void()>> later_;
  soak::Footprints footprints_;
  Clock::time_point start_;
  std::size_t turn_ = 0;
  std::size_t workers_killed_ = 0;
  std::size_t workers_stopped_ = 0;
  std::size_t nodes_killed_ = 0;
  std::size_t nodes_stopped_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  Plan plan;
  CLI::App app{"Waits in order while waiters and nodes are killed and stopped every second."};
  app.add_option("--for", plan.length, "so long (20s, 15m, 1h); default 1h")
      ->transform(
          CLI::AsNumberWithUnit(std::map<std::string, int>{{"s", 1}, {"m", 60}, {"h", 3600}}));
  app.add_option("--seed", plan.seed, "of which waiters and nodes, and when; default 1");
  app.add_flag("--unhurried", plan.unhurried,
               "for a machine that may be slow: waits end, whenever that is");
  app.add_flag("--careless", plan.careless,
               "holders that are stopped go on without a valid lease: two must hold a lock");
  app.footer(
      "Prints a line every 10 s. It ends with 0 if nobody held a lock that another held,\n"
      "tokens rose, each call whose process ran was served within the bound that is printed\n"
      "first, no key was left on the nodes, and processes that lived throughout had as many\n"
      "descriptors and as much memory in the last minute as in the first (of runs of four\n"
      "minutes and more).");
  CLI11_PARSE(app, argc, argv);
  return redlock::soak::verdict_of("soak_waiting", [&] { return Run(plan).run(); });
}
