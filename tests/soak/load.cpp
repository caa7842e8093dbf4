// SPDX-License-Identifier: MIT
// Many clients come and go all the time, in several processes, over five durable nodes of which one
// is killed every second and started again. Each has a few locks meanwhile, of thousands and of a
// few that all of them want, and some leave with a call under way. What is promised then stands
// below, where its help is made.
#include <array>
#include <future>
#include <malloc.h>
#include <optional>
#include <unistd.h>

#include "soak/crew.hpp"

namespace redlock::soak {
namespace {

constexpr std::size_t all_names = 10'000;
constexpr std::size_t wanted_names = 50;    // half of all calls are for these
constexpr milliseconds longest_life = 8s;   // of a client
constexpr milliseconds longest_pause = 2s;  // between two of its calls
constexpr milliseconds longest_wait = 3s;   // until the deadline of a call
constexpr milliseconds longest_outage = 300ms;
constexpr milliseconds between_kills = 1s;
constexpr milliseconds lease_length = 3s;
constexpr double own_connections = 20;  // of the fleet, to a node that it starts

struct LoadPlan {
  int length = 600;  // seconds
  std::size_t processes = 4;
  std::size_t clients = 200;
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

/// One thread: a client, and when that has left the next one.
class Seat {
 public:
  Seat(const LoadPlan& plan, Board& board, const ClientOptions& options, const Stalls& stalls,
       std::uint32_t seed)
      : plan_(plan), board_(board), options_(options), stalls_(stalls), random_(seed) {}

  void run() {
    while (!board_.ended) live();
  }

 private:
  void live() {
    std::optional<Client> client(start_client(options_));
    ++board_.lives;
    const auto until = BootClock::now() + below(longest_life);
    while (!board_.ended && BootClock::now() < until) {
      call(*client);
      std::this_thread::sleep_for(below(longest_pause));
    }
    std::future<Result<Lease>> under_way;
    if (below(4) == 0) {
      under_way = client->lock(name_of(below(wanted_names)))
                      .async_acquire({.lease = lease_length, .wait = forever})
                      .as_future();
    }
    const Call end = call_until(BootClock::now() + 2 * plan_.node_timeout());
    client.reset();
    end.judge();
    if (!under_way.valid()) return;
    if (under_way.wait_for(plan_.bound()) != std::future_status::ready) ++board_.stuck;
  }

  void call(const Client& client) {
    const std::size_t name = below(2) == 0 ? below(wanted_names) : below(all_names);
    const bool long_one = below(50) == 0;  // renewed, through the loss of a node
    const auto deadline = BootClock::now() + 1ms + below(longest_wait);
    const Call acquiring = call_until(deadline);
    auto lease = client.lock(name_of(name))
                     .acquire({.lease = lease_length,
                               .renewal = long_one ? Renewal::always : Renewal::never,
                               .wait = forever,
                               .deadline = deadline});
    acquiring.judge();
    if (!lease) return board_.count(lease.error());
    ++board_.grants;
    hold(*lease, name, long_one ? milliseconds(5s) : below(20ms));
    const Call releasing = call_until(BootClock::now() + plan_.node_timeout());
    static_cast<void>(lease->release());
    releasing.judge();
  }

  void hold(const Lease& lease, std::size_t name, milliseconds length) {
    const auto from = BootClock::now();
    if (!lease.valid()) return;
    auto to = from;
    while (to - from < length && !board_.ended) {
      std::this_thread::sleep_for(2ms);
      const auto now = BootClock::now();
      if (!lease.valid()) break;
      to = now;
    }
    board_.open({name, from, to, lease.token()});
  }

  [[nodiscard]] Call call_until(BootClock::time_point deadline) const {
    return {board_, stalls_, deadline, plan_.bound()};
  }

  static std::string name_of(std::size_t index) { return fmt::format("load:{:05}", index); }

  std::size_t below(std::size_t end) { return random_.below(end); }
  milliseconds below(milliseconds end) { return random_.below(end); }

  const LoadPlan& plan_;
  Board& board_;
  const ClientOptions& options_;
  const Stalls& stalls_;
  Random random_;
};

/// A process with many clients.
class LoadWorker {
 public:
  LoadWorker(const LoadPlan& plan, Board& board, std::vector<std::string> nodes)
      : plan_(plan), board_(board) {
    options_.nodes = std::move(nodes);
    options_.node_timeout = plan.node_timeout();
    if (plan.unhurried) options_.connect_timeout = 10s;
  }

  void run(std::uint32_t seed) {
    warm_up();
    const Footprint before = footprint_of(::getpid());
    ++board_.ready;
    run_seats(seed);
    // The kernel shows a thread a little longer than it lives.
    const auto limit = BootClock::now() + 10s;
    Footprint after = footprint_of(::getpid());
    while (after.threads > before.threads && BootClock::now() < limit) {
      std::this_thread::sleep_for(10ms);
      after = footprint_of(::getpid());
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
    const Client client = start_client(options_);
    const auto lease = client.lock("load:warm-up").acquire({.wait = 1min});
    if (!lease) throw std::runtime_error(lease.error().message);
  }

  void run_seats(std::uint32_t seed) {
    const Stalls stalls;
    std::vector<std::jthread> seats;
    for (std::size_t i = 0; i < plan_.clients / plan_.processes; ++i) {
      seats.emplace_back([this, &stalls, own = seed + static_cast<std::uint32_t>(i)] {
        Seat(plan_, board_, options_, stalls, own).run();
      });
    }
    // What the allocator keeps for later is not in use; but to give it back often costs much.
    for (int turn = 0; !board_.ended; ++turn) {
      std::this_thread::sleep_for(100ms);
      if (turn % 100 == 99) ::malloc_trim(0);
    }
  }

  const LoadPlan& plan_;
  Board& board_;
  ClientOptions options_;
};

class Load {
 public:
  explicit Load(const LoadPlan& plan) : plan_(plan), random_(plan.seed) {}

  bool run() {
    say("{} clients in {} processes, {} names, {} durable nodes of which one is killed every {} "
        "ms, seed {}\n",
        plan_.clients, plan_.processes, all_names, nodes, between_kills.count(), plan_.seed);
    say("a call is to end within {} ms of its deadline\n", plan_.bound().count());
    for (std::size_t i = 0; i < plan_.processes; ++i) {
      workers_.push_back(start_process(
          [&, seed = random_.seed()] { LoadWorker(plan_, board_, fleet_.uris()).run(seed); }));
    }
    await([&] { return board_.ready >= plan_.processes && board_.grants > 0; }, 2min,
          "nobody is ever served");
    make_faults();
    const bool ended_well = end_processes(workers_, board_, longest_wait + 2 * plan_.bound() + 30s);
    return report() && ended_well;
  }

 private:
  // --- faults

  void make_faults() {
    start_ = BootClock::now();
    Every kill(between_kills, start_);
    Every note(1s, start_);
    Every line(10s, start_ + 10s);
    while (BootClock::now() < start_ + seconds(plan_.length) || kills_ <= nodes) {
      if (note.is_due()) footprints_.note(workers_);
      if (line.is_due()) print_progress();
      if (kill.is_due()) kill_and_restart(kills_++ % nodes);
      std::this_thread::sleep_for(10ms);
    }
  }

  void kill_and_restart(std::size_t node) {
    const std::uint64_t lives = board_.lives;
    count_connections(node, lives);
    fleet_.kill(node);
    std::this_thread::sleep_for(random_.below(longest_outage));
    const std::uint64_t lives_before = board_.lives;
    const auto start = BootClock::now();
    fleet_.restart(node);
    // The more it has to read, the longer clients find it loading.
    const auto loading = std::chrono::ceil<milliseconds>(BootClock::now() - start);
    longest_start_ = std::max(longest_start_, loading);
    lives_at_start_[node] = board_.lives;
    const auto early = static_cast<double>(plan_.clients + lives_at_start_[node] - lives_before);
    wanted_at_start_[node] = early * attempts_within(loading);
  }

  /// Since the node was started, and as many as there may have been.
  void count_connections(std::size_t node, std::uint64_t lives) {
    received_ += static_cast<double>(connections_in(fleet_.run(node, {"INFO", "stats"})));
    wanted_ += own_connections + wanted_at_start_[node] +
               static_cast<double>(lives - lives_at_start_[node]);
  }

  void print_progress() const {
    const Footprint& now = footprints_.latest();
    say("after {:4.0f} s: {} clients came, {} grants, {} waited in vain, {} without a quorum, {} "
        "kills; at most {} ms after a deadline; {:.0f} descriptors, {:.0f} threads, {:.1f} MiB\n",
        seconds_since(start_), board_.lives.load(), board_.grants.load(), board_.given_up.load(),
        board_.failed.load(), kills_, board_.latest_ms.load(), now.descriptors, now.threads,
        now.memory);
  }

  bool report() const {
    print_progress();
    const Judgement found = board_.judge();
    fmt::print("{} grants, {} of them held for more than a second; {}\n", board_.grants.load(),
               found.longer_than_a_second, found.in_words());
    fmt::print("calls that ended too late: {}, never: {}; processes with something left over: {}\n",
               board_.late.load(), board_.stuck.load(), board_.leaks.load());
    fmt::print(
        "nodes saw {:.0f} connections, {:.2f} for each that pauses permit; the longest start of "
        "one took {} ms\n",
        received_, received_ / wanted_, longest_start_.count());
    const auto each = static_cast<double>(plan_.clients / plan_.processes);
    const bool flat = footprints_.are_flat(each, 4);
    return flat && found.is_sound() && board_.late == 0 && board_.stuck == 0 && board_.leaks == 0 &&
           received_ / wanted_ <= plan_.most_connections();
  }

  const LoadPlan plan_;
  Random random_;
  Board& board_ = Board::make_shared();
  Fleet fleet_{{.nodes = nodes, .persistence = cluster::Persistence::always, .adopted = true}};
  std::vector<pid_t> workers_;
  Footprints footprints_;
  BootClock::time_point start_;
  std::size_t kills_ = 0;
  std::array<std::uint64_t, nodes> lives_at_start_{};
  std::array<double, nodes> wanted_at_start_{};
  double received_ = 0;
  double wanted_ = 0;
  milliseconds longest_start_{0};
};

}  // namespace

void add_load(CLI::App& soak, Run& chosen) {
  const auto plan = std::make_shared<LoadPlan>();
  auto& run = *soak.add_subcommand(
      "load", "Clients come and go all the time while a node is killed every second.");
  add_length(run, plan->length, "so long (20s, 10m, 1h); default 10m");
  run.add_option("--clients", plan->clients, "at a time; default 200")
      ->check(CLI::Range(1, 10'000));
  run.add_option("--processes", plan->processes, "among which they are divided; default 4")
      ->check(CLI::Range(1, 64));
  run.add_option("--seed", plan->seed, "of who does what, and for how long; default 1");
  run.add_flag("--unhurried", plan->unhurried,
               "for a machine that may be slow: calls end, whenever that is");
  run.footer(
      "Prints a line every 10 s. It ends with 0 if nobody held a lock that another held, tokens\n"
      "rose, each call ended within the bound that is printed first and none of a client that\n"
      "left went unanswered, no process had more descriptors or threads when its clients had\n"
      "left than before they came, nodes saw no more than 1.25 connections for each that the\n"
      "pauses between attempts permit, and the processes had as many descriptors and threads and\n"
      "as much memory in the last minute as in the first (of runs of four minutes and more).");
  run.callback([plan, &chosen] {
    if (plan->clients < plan->processes) {
      throw CLI::ValidationError("--clients", "must be no fewer than --processes");
    }
    chosen = [plan] { return Load(*plan).run(); };
  });
}

}  // namespace redlock::soak
