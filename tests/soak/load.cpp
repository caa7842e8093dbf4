// SPDX-License-Identifier: MIT
// Many clients come and go all the time, in several processes, over five durable nodes of which one
// is killed every second and started again. Each has a few locks meanwhile, of thousands and of a
// few that all of them want, and some leave with a call under way. Nobody may hold a lock that
// somebody else holds, tokens rise, each call ends by its deadline, what left has left nothing
// behind in its process, and nodes that come back, and read their data, see no more connections
// than the pauses between attempts permit.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fmt/format.h>
#include <future>
#include <malloc.h>
#include <map>
#include <new>
#include <optional>
#include <random>
#include <signal.h>
#include <stdexcept>
#include <string>
#include <string_view>
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
#include "soak/stalls.hpp"
#include "soak/verdict.hpp"

namespace {

using namespace redlock;
using namespace std::chrono_literals;
using cluster::Fleet;
using soak::Ledger;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t wanted_names = 50;    // half of all calls are for these
constexpr milliseconds longest_life = 8s;   // of a client
constexpr milliseconds longest_pause = 2s;  // between two of its calls
constexpr milliseconds longest_wait = 3s;   // until the deadline of a call
constexpr milliseconds longest_outage = 300ms;
constexpr milliseconds lease_length = 3s;
constexpr double own_connections = 20;  // of the fleet, to a node that it starts

struct Plan {
  int length = 600;       // seconds
  int kill_every = 1000;  // ms
  std::size_t processes = 4;
  std::size_t clients = 200;
  std::size_t names = 10'000;
  std::uint32_t seed = 1;
  bool unhurried = false;  // on a machine that may be slow

  [[nodiscard]] milliseconds node_timeout() const { return unhurried ? 2s : 250ms; }
  /// How long after its deadline a call may end.
  [[nodiscard]] milliseconds bound() const { return unhurried ? 30s : 3s; }
  /// Connections that nodes may see, for each that the pauses between attempts permit: a machine
  /// without time for a handshake has it repeated.
  [[nodiscard]] double most_connections() const { return unhurried ? 3 : 1.25; }
};

/// How often a client may try to connect to a node that accepts and is not ready for so long, with
/// the shortest pauses that it may make, and once more when the node is.
double attempts_within(milliseconds time) {
  double attempts = 1;
  milliseconds pause = 10ms;
  for (milliseconds at = pause; at <= time; at += pause) {
    ++attempts;
    pause = std::min<milliseconds>(pause == 10ms ? 100ms : 2 * pause, 500ms);
  }
  return attempts;
}

/// What processes tell each other, beside the ledger.
struct Board {
  std::atomic<std::uint64_t> lives;  // clients that began
  std::atomic<std::uint64_t> grants;
  std::atomic<std::uint64_t> contended;  // until their deadline
  std::atomic<std::uint64_t> without_quorum;
  std::atomic<std::uint64_t> late;   // calls that ended later than the bound
  std::atomic<std::uint64_t> stuck;  // that had not ended long after their client had
  std::atomic<std::uint64_t> leaks;  // processes with more in the end than in the beginning
  std::atomic<std::int64_t> latest_ms;
  std::atomic<std::size_t> ready;  // processes

  static Board& make_shared() {
    void* const place =
        ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (place == MAP_FAILED) throw std::runtime_error("cannot share memory");
    return *new (place) Board{};
  }
};

/// One thread: a client, and when that has left the next one.
class Seat {
 public:
  Seat(const Plan& plan, Ledger& ledger, Board& board, const ClientOptions& options,
       const soak::Stalls& stalls, std::uint32_t seed)
      : plan_(plan),
        ledger_(ledger),
        board_(board),
        options_(options),
        stalls_(stalls),
        random_(seed) {}

  void run() {
    while (!ledger_.ended) live();
  }

 private:
  void live() {
    auto created = Client::create(options_);
    if (!created) throw std::runtime_error(created.error().message);
    ++board_.lives;
    std::optional<Client> client(std::move(*created));
    const auto until = BootClock::now() + below(longest_life);
    while (!ledger_.ended && BootClock::now() < until) {
      call(*client);
      std::this_thread::sleep_for(below(longest_pause));
    }
    std::future<Result<Lease>> under_way;
    if (below(4) == 0) {
      under_way = client->lock(name_of(below(wanted_names)))
                      .async_acquire({.lease = lease_length, .wait = forever})
                      .as_future();
    }
    const Call end(*this, BootClock::now() + 2 * plan_.node_timeout());
    client.reset();
    end.judge();
    if (!under_way.valid()) return;
    if (under_way.wait_for(plan_.bound()) != std::future_status::ready) ++board_.stuck;
  }

  void call(const Client& client) {
    const std::size_t name = below(2) == 0 ? below(wanted_names) : below(plan_.names);
    const bool long_one = below(50) == 0;  // renewed, through the loss of a node
    const auto deadline = BootClock::now() + 1ms + below(longest_wait);
    const Call acquiring(*this, deadline);
    auto lease = client.lock(name_of(name))
                     .acquire({.lease = lease_length,
                               .renewal = long_one ? Renewal::always : Renewal::never,
                               .wait = forever,
                               .deadline = deadline});
    acquiring.judge();
    if (!lease) return count(lease.error());
    ++board_.grants;
    hold(*lease, name, long_one ? milliseconds(5s) : below(20ms));
    const Call releasing(*this, BootClock::now() + plan_.node_timeout());
    static_cast<void>(lease->release());
    releasing.judge();
  }

  void count(const Error& error) {
    const bool contended = error.code == Errc::contended || error.code == Errc::timed_out;
    ++(contended ? board_.contended : board_.without_quorum);
  }

  void hold(const Lease& lease, std::size_t name, milliseconds length) {
    const auto from = BootClock::now();
    if (!lease.valid()) return;
    auto to = from;
    while (to - from < length && !ledger_.ended) {
      std::this_thread::sleep_for(2ms);
      const auto now = BootClock::now();
      if (!lease.valid()) break;
      to = now;
    }
    ledger_.write({name, from, to, lease.token()});
  }

  /// One that is to end by a moment.
  class Call {
   public:
    Call(const Seat& seat, BootClock::time_point deadline)
        : seat_(seat), deadline_(deadline), stalled_(seat.stalls_.sum()) {}

    /// Now that it has ended. What the machine took from this process does not count.
    void judge() const {
      const auto late = BootClock::now() - deadline_ - (seat_.stalls_.sum() - stalled_);
      const auto late_ms = std::chrono::ceil<milliseconds>(late).count();
      std::int64_t known = seat_.board_.latest_ms;
      while (known < late_ms && !seat_.board_.latest_ms.compare_exchange_weak(known, late_ms)) {
      }
      if (late > seat_.plan_.bound()) ++seat_.board_.late;
    }

   private:
    const Seat& seat_;
    BootClock::time_point deadline_;
    milliseconds stalled_;
  };

  static std::string name_of(std::size_t index) { return fmt::format("load:{:05}", index); }

  std::size_t below(std::size_t end) {
    return std::uniform_int_distribution<std::size_t>(0, end - 1)(random_);
  }
  milliseconds below(milliseconds end) {
    return milliseconds(below(static_cast<std::size_t>(end.count())));
  }

  const Plan& plan_;
  Ledger& ledger_;
  Board& board_;
  const ClientOptions& options_;
  const soak::Stalls& stalls_;
  std::mt19937 random_;
};

/// A process with many clients.
class Worker {
 public:
  Worker(const Plan& plan, Ledger& ledger, Board& board, std::vector<std::string> nodes)
      : plan_(plan), ledger_(ledger), board_(board) {
    options_.nodes = std::move(nodes);
    options_.node_timeout = plan.node_timeout();
    if (plan.unhurried) options_.connect_timeout = 10s;
  }

  void run(std::uint32_t seed) {
    warm_up();
    const soak::Footprint before = soak::footprint_of(::getpid());
    ++board_.ready;
    run_seats(seed);
    // The kernel shows a thread a little longer than it lives.
    const auto limit = BootClock::now() + 10s;
    soak::Footprint after = soak::footprint_of(::getpid());
    while (after.threads > before.threads && BootClock::now() < limit) {
      std::this_thread::sleep_for(10ms);
      after = soak::footprint_of(::getpid());
    }
    if (after.descriptors <= before.descriptors && after.threads <= before.threads) return;
    ++board_.leaks;
    fmt::print(
        "without clients a process had {:.0f} descriptors and {:.0f} threads, and then {:.0f} and "
        "{:.0f}\n",
        before.descriptors, before.threads, after.descriptors, after.threads);
  }

 private:
  /// What the first client of a process makes for all.
  void warm_up() {
    const auto client = Client::create(options_);
    if (!client) throw std::runtime_error(client.error().message);
    const auto lease = client->lock("load:warm-up").acquire({.wait = 1min});
    if (!lease) throw std::runtime_error(lease.error().message);
  }

  void run_seats(std::uint32_t seed) {
    const soak::Stalls stalls;
    std::vector<std::jthread> seats;
    for (std::size_t i = 0; i < plan_.clients / plan_.processes; ++i) {
      seats.emplace_back([this, &stalls, own = seed + static_cast<std::uint32_t>(i)] {
        try {
          Seat(plan_, ledger_, board_, options_, stalls, own).run();
        } catch (const std::exception& error) {
          fmt::print(stderr, "soak_load: {}\n", error.what());
          ::_exit(EXIT_FAILURE);
        }
      });
    }
    // What the allocator keeps for later is not in use; but to give it back often costs much.
    for (int turn = 0; !ledger_.ended; ++turn) {
      std::this_thread::sleep_for(100ms);
      if (turn % 100 == 99) ::malloc_trim(0);
    }
  }

  const Plan& plan_;
  Ledger& ledger_;
  Board& board_;
  ClientOptions options_;
};

class Run {
 public:
  explicit Run(const Plan& plan) : plan_(plan), random_(plan.seed) {}

  bool run() {
    fmt::print(
        "{} clients in {} processes, {} names, {} durable nodes of which one is killed every {} "
        "ms, seed {}\n",
        plan_.clients, plan_.processes, plan_.names, soak::nodes, plan_.kill_every, plan_.seed);
    fmt::print("a call is to end within {} ms of its deadline\n", plan_.bound().count());
    std::fflush(stdout);  // or each process would print it again
    for (std::size_t i = 0; i < plan_.processes; ++i) start_worker();
    await_workers();
    make_faults();
    const bool ended_well = end_workers();
    return report() && ended_well;
  }

 private:
  using Clock = BootClock;

  void start_worker() {
    const auto seed = static_cast<std::uint32_t>(random_());
    const pid_t pid = ::fork();
    if (pid < 0) throw std::runtime_error("cannot start a process");
    if (pid > 0) return workers_.push_back(pid);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    try {
      Worker(plan_, ledger_, board_, fleet_.uris()).run(seed);
      std::fflush(stdout);
      ::_exit(EXIT_SUCCESS);
    } catch (const std::exception& error) {
      fmt::print(stderr, "soak_load: {}\n", error.what());
      ::_exit(EXIT_FAILURE);
    }
  }

  void await_workers() const {
    const auto limit = Clock::now() + 2min;
    while (board_.ready < plan_.processes || board_.grants == 0) {
      if (Clock::now() > limit) throw std::runtime_error("nobody is ever served");
      std::this_thread::sleep_for(10ms);
    }
  }

  // --- faults

  void make_faults() {
    start_ = Clock::now();
    auto next_kill = start_;
    auto next_note = start_;
    auto next_line = start_ + 10s;
    while (Clock::now() < start_ + seconds(plan_.length) || kills_ <= soak::nodes) {
      if (Clock::now() >= next_note) {
        next_note += 1s;
        footprints_.note(workers_);
      }
      if (Clock::now() >= next_line) {
        next_line += 10s;
        print_progress();
      }
      if (Clock::now() >= next_kill) {
        next_kill = std::max(next_kill + milliseconds(plan_.kill_every), Clock::now());
        kill_and_restart(kills_++ % soak::nodes);
      }
      std::this_thread::sleep_for(10ms);
    }
  }

  void kill_and_restart(std::size_t node) {
    const std::uint64_t lives = board_.lives;
    count_connections(node, lives);
    fleet_.kill(node);
    std::uniform_int_distribution<milliseconds::rep> outage(0, longest_outage.count());
    std::this_thread::sleep_for(milliseconds(outage(random_)));
    const std::uint64_t lives_before = board_.lives;
    const auto start = Clock::now();
    fleet_.restart(node);
    // The more it has to read, the longer clients find it loading.
    const auto loading = std::chrono::ceil<milliseconds>(Clock::now() - start);
    longest_start_ = std::max(longest_start_, loading);
    lives_at_start_[node] = board_.lives;
    const auto early = static_cast<double>(plan_.clients + lives_at_start_[node] - lives_before);
    wanted_at_start_[node] = early * attempts_within(loading);
  }

  /// Since the node was started, and as many as there may have been.
  void count_connections(std::size_t node, std::uint64_t lives) {
    const std::string text = fleet_.run(node, {"INFO", "stats"});
    constexpr std::string_view field = "total_connections_received:";
    const auto at = text.find(field);
    if (at == std::string::npos) throw std::runtime_error("a node does not count connections");
    const auto received = static_cast<double>(std::stoull(text.substr(at + field.size())));
    received_ += received;
    wanted_ += own_connections + wanted_at_start_[node] +
               static_cast<double>(lives - lives_at_start_[node]);
  }

  // --- the end

  bool end_workers() {
    ledger_.ended = true;
    const auto limit = Clock::now() + longest_wait + 2 * plan_.bound() + 30s;
    std::size_t ended_well = 0;
    for (const pid_t pid : workers_) {
      int status = 0;
      while (::waitpid(pid, &status, WNOHANG) == 0) {
        if (Clock::now() > limit) ::kill(pid, SIGKILL);
        std::this_thread::sleep_for(1ms);
      }
      if (status == 0) ++ended_well;
    }
    if (ended_well < workers_.size()) {
      fmt::print("{} processes did not end, or not well\n", workers_.size() - ended_well);
    }
    return ended_well == workers_.size();
  }

  void print_progress() const {
    const soak::Footprint& now = footprints_.latest();
    fmt::print(
        "after {:4.0f} s: {} clients came, {} grants, {} waited in vain, {} without a quorum, {} "
        "kills; at most {} ms after a deadline; {:.0f} descriptors, {:.0f} threads, {:.1f} MiB\n",
        std::chrono::duration<double>(Clock::now() - start_).count(), board_.lives.load(),
        board_.grants.load(), board_.contended.load(), board_.without_quorum.load(), kills_,
        board_.latest_ms.load(), now.descriptors, now.threads, now.memory);
    std::fflush(stdout);
  }

  bool report() const {
    print_progress();
    const soak::Judgement found = soak::judge(ledger_);
    fmt::print(
        "{} grants, {} of them held for more than a second; two holders at once: {}; tokens that "
        "do not rise: {}\n",
        board_.grants.load(), found.longer_than_a_second, found.overlaps, found.falling_tokens);
    fmt::print("calls that ended too late: {}, never: {}; processes with something left over: {}\n",
               board_.late.load(), board_.stuck.load(), board_.leaks.load());
    fmt::print(
        "nodes saw {:.0f} connections, {:.2f} for each that pauses permit; the longest start of "
        "one "
        "took {} ms\n",
        received_, received_ / wanted_, longest_start_.count());
    const auto each = static_cast<double>(plan_.clients / plan_.processes);
    const bool flat = footprints_.are_flat(each, 4);
    return flat && found.overlaps == 0 && found.falling_tokens == 0 && board_.late == 0 &&
           board_.stuck == 0 && board_.leaks == 0 &&
           received_ / wanted_ <= plan_.most_connections();
  }

  const Plan plan_;
  std::mt19937 random_;
  Ledger& ledger_ = Ledger::make_shared();
  Board& board_ = Board::make_shared();
  Fleet fleet_{
      {.nodes = soak::nodes, .persistence = cluster::Persistence::always, .adopted = true}};
  std::vector<pid_t> workers_;
  soak::Footprints footprints_;
  Clock::time_point start_;
  std::size_t kills_ = 0;
  std::array<std::uint64_t, soak::nodes> lives_at_start_{};
  std::array<double, soak::nodes> wanted_at_start_{};
  double received_ = 0;
  double wanted_ = 0;
  milliseconds longest_start_{0};
};

}  // namespace

int main(int argc, char** argv) {
  Plan plan;
  CLI::App app{"Clients come and go all the time while a node is killed every second."};
  app.add_option("--for", plan.length, "so long (20s, 10m, 1h); default 10m")
      ->transform(
          CLI::AsNumberWithUnit(std::map<std::string, int>{{"s", 1}, {"m", 60}, {"h", 3600}}));
  app.add_option("--kill-every", plan.kill_every, "a node is killed (500ms, 1s); default 1s")
      ->transform(CLI::AsNumberWithUnit(std::map<std::string, int>{{"ms", 1}, {"s", 1000}}))
      ->check(CLI::Range(100, 3'600'000));
  app.add_option("--clients", plan.clients, "at a time; default 200")->check(CLI::Range(1, 10'000));
  app.add_option("--processes", plan.processes, "among which they are divided; default 4")
      ->check(CLI::Range(1, 64));
  app.add_option("--names", plan.names, "of locks; default 10000")->check(CLI::Range(1, 1'000'000));
  app.add_option("--seed", plan.seed, "of who does what, and for how long; default 1");
  app.add_flag("--unhurried", plan.unhurried,
               "for a machine that may be slow: calls end, whenever that is");
  app.footer(
      "Prints a line every 10 s. It ends with 0 if nobody held a lock that another held, tokens\n"
      "rose, each call ended within the bound that is printed first and none of a client that\n"
      "left went unanswered, no process had more descriptors or threads when its clients had\n"
      "left than before they came, nodes saw no more than 1.25 connections for each that the\n"
      "pauses between attempts permit, and the processes had as many descriptors and threads and\n"
      "as much memory in the last minute as in the first (of runs of four minutes and more).");
  CLI11_PARSE(app, argc, argv);
  if (plan.clients < plan.processes) {
    fmt::print(stderr, "soak_load: --clients must be no fewer than --processes\n");
    return EXIT_FAILURE;
  }
  return redlock::soak::verdict_of("soak_load", [&] { return Run(plan).run(); });
}
