// SPDX-License-Identifier: MIT
// Processes wait in order for a few locks on five nodes without persistence. Every second one of
// the processes and one of the nodes is killed, or stopped for a while, and comes back. What is
// promised then stands below, where its help is made. Unless holders go on without asking whether
// their lease is valid: then two must hold one, or this would prove nothing.
#include <array>
#include <malloc.h>
#include <map>
#include <optional>
#include <signal.h>
#include <sys/wait.h>

#include "soak/crew.hpp"

namespace redlock::soak {
namespace {

constexpr std::size_t names = 4;
constexpr std::size_t workers = 12;  // worker w waits for name w % names; the first few are spared
constexpr int callers = 2;           // in each worker
constexpr milliseconds longest_lease = 1s;
constexpr milliseconds longest_section = 30ms;
constexpr milliseconds turn_window = 20ms;   // for which nodes keep a lock for the next waiter
constexpr milliseconds line_expiry = 3s;     // of the keys of a line
constexpr milliseconds between_faults = 1s;  // of waiters; also of nodes
constexpr std::size_t most_nodes_out = 2;    // at a time

struct WaitingPlan {
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
    const milliseconds dead_holder = longest_lease + 2 * turn_window;
    const milliseconds base =
        (workers / names * callers - 1) * (longest_section + 2 * turn_window) + dead_holder +
        node_timeout();
    const auto added = dead_holder / names + node_timeout();  // in between_faults
    return base * between_faults.count() / (between_faults - added).count();
  }
};

/// One thread that waits, holds and gives back until the end.
class Caller {
 public:
  Caller(const WaitingPlan& plan, Board& board, std::size_t worker, std::uint32_t seed)
      : plan_(plan), board_(board), worker_(worker), random_(seed) {}

  void run(const Client& client) {
    RedLock lock = client.lock(fmt::format("waiting:{}", name_));
    while (!board_.ended) take_one(lock);
  }

 private:
  void take_one(RedLock& lock) {
    const bool brief = random_.below(8) == 0;
    const auto asked = BootClock::now();
    const std::uint64_t before = board_.grants_of[name_];
    const std::int64_t stalled = board_.stalled_ms;
    auto lease = lock.acquire({.lease = longest_lease,
                               .renewal = Renewal::never,
                               .wait = brief ? milliseconds(1 + random_.below(100)) : forever});
    if (!lease) {
      ++(brief ? board_.given_up : board_.failed);
      if (!brief) fmt::print(stderr, "worker {}: {}\n", worker_, lease.error().message);
      return;
    }
    ++board_.grants;
    const auto grants = board_.grants_of[name_]++;
    // Of a call whose process was stopped meanwhile nothing is promised.
    if (board_.resumed[worker_] < asked.time_since_epoch().count()) {
      const auto wait = std::chrono::ceil<milliseconds>(BootClock::now() - asked).count();
      raise(board_.longest_wait_ms, std::int64_t{wait});
      raise(board_.most_before, grants - before);
      if (milliseconds(wait - (board_.stalled_ms - stalled)) > plan_.bound()) ++board_.late;
    }
    hold(*lease);
    const auto released = lease->release();
  }

  void hold(const Lease& lease) {
    const auto length = random_.below(longest_section);
    const auto from = BootClock::now();
    if (!lease.valid()) return;
    Hold* const written = board_.open({name_, from, from, lease.token()});
    ++board_.holding[worker_];
    for (auto now = from; now - from < length;) {
      std::this_thread::sleep_for(2ms);
      now = BootClock::now();
      if (!plan_.careless && !lease.valid()) break;
      if (written != nullptr) written->to = now;
    }
    --board_.holding[worker_];
  }

  const WaitingPlan& plan_;
  Board& board_;
  const std::size_t worker_;
  const std::size_t name_ = worker_ % names;
  Random random_;
};

class Waiting {
 public:
  explicit Waiting(const WaitingPlan& plan) : plan_(plan), random_(plan.seed) {}

  bool run() {
    say("{} processes with {} callers each, {} names, {} nodes without persistence, leases of {} "
        "ms, seed {}; holders {}\n",
        workers, callers, names, nodes, longest_lease.count(), plan_.seed,
        plan_.careless ? "DO NOT ASK whether their lease is valid" : "ask whether they are");
    say("a call whose process runs is to be served within {} ms\n", plan_.bound().count());
    adopt(fleet_, longest_lease);
    for (std::size_t worker = 0; worker < workers; ++worker) start_worker(worker);
    stall_watch_ = start_process([this] { Stalls::watch({}, board_.stalled_ms); });
    await_first_grants();
    make_faults();
    // They end when their last calls have been served.
    const bool ended_well = end_processes(workers_, board_, plan_.bound());
    ::kill(stall_watch_, SIGKILL);
    ::waitpid(stall_watch_, nullptr, 0);
    const bool clean = await_no_keys();
    return report(clean) && ended_well;
  }

 private:
  // --- processes

  void start_worker(std::size_t worker) {
    board_.holding[worker] = 0;
    workers_[worker] = start_process([&, seed = random_.seed()] { be_worker(worker, seed); });
  }

  void be_worker(std::size_t worker, std::uint32_t seed) {
    ClientOptions options;
    options.nodes = fleet_.uris();
    options.lease = options.max_lease = longest_lease;
    options.node_timeout = plan_.node_timeout();
    const Client client = start_client(std::move(options));
    std::vector<std::jthread> threads;
    for (std::uint32_t i = 0; i < callers; ++i) {
      threads.emplace_back([&, i] { Caller(plan_, board_, worker, seed + i).run(client); });
    }
    // What the allocator keeps for later, more and more after bursts, is not in use.
    while (!board_.ended) {
      std::this_thread::sleep_for(100ms);
      ::malloc_trim(0);
    }
  }

  void await_first_grants() {
    const auto all_had_one = [&] {
      return std::ranges::count_if(board_.grants_of, [](const auto& of) { return of > 0; }) ==
             names;
    };
    await(all_had_one, 2min, "nobody is ever served");
    // Calls that began before also waited for the quarantine of new nodes.
    for (auto& resumed : board_.resumed) resumed = BootClock::now().time_since_epoch().count();
    board_.longest_wait_ms = 0;
    board_.late = 0;
    board_.most_before = 0;
  }

  // --- faults

  void make_faults() {
    start_ = BootClock::now();
    Every fault(between_faults, start_);
    Every line(10s, start_ + 10s);
    while (BootClock::now() < start_ + seconds(plan_.length)) {
      if (fault.is_due()) {
        fault_of_node();
        fault_of_worker();
        // Of the workers that nothing happens to.
        footprints_.note({workers_.begin(), workers_.begin() + names});
      }
      if (line.is_due()) print_progress();
      mend(BootClock::now());
      std::this_thread::sleep_for(10ms);
    }
    mend(BootClock::time_point::max());
    // What dead waiters and holders left is gone by itself, and all nodes vote.
    std::this_thread::sleep_for(std::max(line_expiry, 3 * longest_lease));
  }

  /// Does by then what is to be done later.
  void mend(BootClock::time_point by) {
    while (!later_.empty() && later_.begin()->first <= by) {
      const auto what = later_.extract(later_.begin());
      what.mapped()();
    }
  }

  void fault_of_node() {
    const auto now = BootClock::now();
    const auto out = std::ranges::count_if(out_until_, [&](auto until) { return until > now; });
    const std::size_t node = random_.below(nodes);
    if (static_cast<std::size_t>(out) >= most_nodes_out || out_until_[node] > now) return;
    out_until_[node] = BootClock::time_point::max();
    const bool killed = random_.below(2) == 0;
    if (killed) {
      fleet_.kill(node);
      ++nodes_killed_;
    } else {
      fleet_.pause(node);
      ++nodes_stopped_;
    }
    later_.emplace(now + milliseconds(random_.below(1'500)), [this, node, killed] {
      if (killed) fleet_.restart(node, cluster::Data::empty);
      if (!killed) fleet_.resume(node);
      // Then it is in quarantine.
      out_until_[node] = BootClock::now() + (killed ? 3 * longest_lease : milliseconds(0));
    });
  }

  void fault_of_worker() {
    // In turn, so that no name has more of them than the bound counts.
    const std::size_t name = turn_++ % names;
    std::size_t worker = name + names * (1 + random_.below(workers / names - 1));
    if (plan_.careless || random_.below(2) == 0) worker = await_holder(name).value_or(worker);
    if (stopped_[worker]) return;
    if (!plan_.careless && random_.below(2) == 0) {
      ::kill(workers_[worker], SIGKILL);
      ::waitpid(workers_[worker], nullptr, 0);
      ++workers_killed_;
      return start_worker(worker);
    }
    ::kill(workers_[worker], SIGSTOP);
    ++workers_stopped_;
    stopped_[worker] = true;
    // For less than a lease, or more.
    const milliseconds length =
        plan_.careless ? 2 * longest_lease : milliseconds(random_.below(2'000));
    later_.emplace(BootClock::now() + length, [this, worker] {
      stopped_[worker] = false;
      board_.resumed[worker] = BootClock::now().time_since_epoch().count();
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

  bool await_no_keys() {
    const auto start = BootClock::now();
    const milliseconds most = plan_.unhurried ? 30s : std::max(line_expiry, longest_lease);
    while (keys_left(fleet_) > 0 && BootClock::now() < start + most) {
      std::this_thread::sleep_for(10ms);
    }
    const std::size_t left = keys_left(fleet_);
    fmt::print("{} keys of locks and lines are left {:.1f} s after the last call\n", left,
               seconds_since(start));
    return left == 0;
  }

  void print_progress() const {
    say("after {:4.0f} s: {} served, longest wait {} ms, {} too late; killed {} processes and {} "
        "nodes, stopped {} and {}; {:.1f} descriptors, {:.2f} MiB\n",
        seconds_since(start_), board_.grants.load(), board_.longest_wait_ms.load(),
        board_.late.load(), workers_killed_, nodes_killed_, workers_stopped_, nodes_stopped_,
        footprints_.latest().descriptors, footprints_.latest().memory);
  }

  bool report(bool clean) const {
    print_progress();
    const Judgement found = board_.judge();
    fmt::print("{} grants, {} calls that gave up, {} that failed; {}\n", board_.grants.load(),
               board_.given_up.load(), board_.failed.load(), found.in_words());
    fmt::print(
        "longest wait {} ms, {} longer than {} ms; at most {} others were served meanwhile; "
        "the machine stood still for {} ms\n",
        board_.longest_wait_ms.load(), board_.late.load(), plan_.bound().count(),
        board_.most_before.load(), board_.stalled_ms.load());
    const bool flat = footprints_.are_flat(1, 1);
    if (plan_.careless) return found.overlaps > 0;
    return clean && flat && found.is_sound() && board_.late == 0 && board_.failed == 0;
  }

  const WaitingPlan plan_;
  Random random_;
  Board& board_ = Board::make_shared();
  Fleet fleet_{{.nodes = nodes}};
  std::vector<pid_t> workers_ = std::vector<pid_t>(workers);
  std::array<bool, workers> stopped_{};
  pid_t stall_watch_ = 0;
  std::array<BootClock::time_point, nodes> out_until_{};
  std::multimap<BootClock::time_point, std::function<void()>> later_;
  Footprints footprints_;
  BootClock::time_point start_;
  std::size_t turn_ = 0;
  std::size_t workers_killed_ = 0;
  std::size_t workers_stopped_ = 0;
  std::size_t nodes_killed_ = 0;
  std::size_t nodes_stopped_ = 0;
};

}  // namespace

void add_waiting(CLI::App& soak, Run& chosen) {
  const auto plan = std::make_shared<WaitingPlan>();
  auto& run = *soak.add_subcommand(
      "waiting", "Waits in order while waiters and nodes are killed and stopped every second.");
  add_length(run, plan->length, "so long (20s, 15m, 1h); default 1h");
  run.add_option("--seed", plan->seed, "of which waiters and nodes, and when; default 1");
  run.add_flag("--unhurried", plan->unhurried,
               "for a machine that may be slow: waits end, whenever that is");
  run.add_flag("--careless", plan->careless,
               "holders that are stopped go on without a valid lease: two must hold a lock");
  run.footer(
      "Prints a line every 10 s. It ends with 0 if nobody held a lock that another held,\n"
      "tokens rose, each call whose process ran was served within the bound that is printed\n"
      "first, no key was left on the nodes, and processes that lived throughout had as many\n"
      "descriptors and as much memory in the last minute as in the first (of runs of four\n"
      "minutes and more).");
  run.callback([plan, &chosen] { chosen = [plan] { return Waiting(*plan).run(); }; });
}

}  // namespace redlock::soak
