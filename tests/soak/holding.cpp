// SPDX-License-Identifier: MIT
// One process holds many leases over five real nodes, some of which stop answering: with a quorum
// alive none may be lost; without one every loss must be told before the validity ends. Or all of
// its connections break at once: again and again by CLIENT KILL, and then because every node is
// killed and comes back with its data at another address. Then every lease must be renewed after
// each break, and nothing may be left when they were given back. Prints what that costs the process
// in time and memory.
#include <condition_variable>
#include <fstream>
#include <future>
#include <mutex>

#include "soak/soak.hpp"
#include "support/own_use.hpp"

namespace redlock::soak {
namespace {

using testing::heap_in_use;
using testing::processor_time;

struct HoldingPlan {
  std::size_t leases = 100'000;
  int lease = 30;
  int length = 300;
  std::size_t stopped = 0;
  int running = 0;         // ms of each tenth of a second in which the nodes run; 0: always
  std::size_t breaks = 0;  // of all connections
  std::size_t moves = 0;   // of all nodes
  double most_cpu = 0;     // per cent of one core; 0: not judged
  double most_memory = 0;  // bytes a lease; 0: not judged

  [[nodiscard]] bool breaking() const { return breaks + moves > 0; }
};

/// The nodes have names in that case, and keep their data.
cluster::FleetOptions nodes_for(const HoldingPlan& plan) {
  cluster::FleetOptions options{.nodes = nodes};
  if (plan.breaking()) {
    options.persistence = cluster::Persistence::always;
    options.adopted = true;
    options.settings = {"bind 127.0.0.1 127.0.0.2"};
  } else {
    options.settings = {"maxmemory 1gb"};  // a million take 240 MB
  }
  return options;
}

void on_every_node(const std::function<void(std::size_t)>& act) {
  std::vector<std::future<void>> acts;
  for (std::size_t node = 0; node < nodes; ++node) {
    acts.push_back(std::async(std::launch::async, act, node));
  }
  for (auto& each : acts) each.get();
}

/// Nodes that have a small part of a processor: they are stopped but for so long in each tenth of a
/// second.
class Starvation {
 public:
  Starvation(Fleet& fleet, int running)
      : fleet_(fleet), thread_([this, running](const std::stop_token& stop) {
          while (running > 0 && !stop.stop_requested()) turn(milliseconds(running));
        }) {}

 private:
  void turn(milliseconds running) {
    for (std::size_t node = 0; node < nodes; ++node) fleet_.pause(node);
    std::this_thread::sleep_for(100ms - running);
    for (std::size_t node = 0; node < nodes; ++node) fleet_.resume(node);
    std::this_thread::sleep_for(running);
  }

  Fleet& fleet_;
  std::jthread thread_;
};

class Leases final : public Observer {
 public:
  explicit Leases(std::size_t count)
      : leases_(count), margins_(count, milliseconds::max()), renewed_after_(count) {}

  void on_renewal(std::string_view name, bool ok, std::chrono::nanoseconds) override {
    ++(ok ? renewals : failed_renewals);
    if (ok && !name.ends_with("warm")) renewed_after_[index_of(name)] = breaks.load();
  }
  void on_node_down(std::string_view, Cause, std::string_view detail) override {
    ++broken_connections;
    if (breaks == 0) fmt::print(stderr, "node down: {}\n", detail);
  }
  void on_lost(std::string_view name, std::uint64_t, LossReason) override {
    const auto index = index_of(name);
    margins_[index] = std::chrono::duration_cast<milliseconds>(leases_[index].remaining());
    ++lost;
  }

  /// All of them, some at a time.
  void acquire(const Client& client, milliseconds lease) {
    constexpr std::size_t at_once = 200;
    for (std::size_t i = 0; i < leases_.size(); ++i) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return under_way_ < at_once; });
      ++under_way_;
      lock.unlock();
      client.lock(fmt::format("soak:{:06}", i))
          .async_acquire({.lease = lease, .renewal = Renewal::always, .wait = 30s})
          .start([this, i](Result<Lease> granted) { take(i, std::move(granted)); });
    }
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return under_way_ == 0; });
  }

  /// How many were held to the end.
  std::size_t give_back() {
    std::vector<std::future<Result<Released>>> answers;
    for (Lease& lease : leases_) answers.push_back(lease.async_release().as_future());
    return static_cast<std::size_t>(std::ranges::count_if(
        answers, [](auto& answer) { return answer.get() == Released::released; }));
  }
  void drop() { leases_.clear(); }

  [[nodiscard]] bool all_renewed() const {
    return std::ranges::all_of(renewed_after_, [&](const auto& after) { return after == breaks; });
  }

  /// How long before the end of its validity each loss was told: a line for each tenth of the
  /// largest.
  void print_margins() const {
    std::vector<milliseconds> margins = margins_;
    std::ranges::sort(margins);
    const auto width = margins.back().count() / 10 + 1;
    fmt::print("told before the validity ended: from {} ms to {} ms\n", margins.front().count(),
               margins.back().count());
    for (int part = 0; part < 10; ++part) {
      const auto in_part = std::ranges::count_if(
          margins, [&](milliseconds margin) { return margin.count() / width == part; });
      fmt::print("  {:>6} to {:>6} ms {:>8}\n", part * width, (part + 1) * width, in_part);
    }
  }
  [[nodiscard]] milliseconds least_margin() const { return *std::ranges::min_element(margins_); }

  std::atomic<std::size_t> renewals{0};
  std::atomic<std::size_t> failed_renewals{0};
  std::atomic<std::size_t> lost{0};
  std::atomic<std::size_t> refused{0};
  std::atomic<std::size_t> breaks{0};
  std::atomic<std::size_t> broken_connections{0};

 private:
  static std::size_t index_of(std::string_view name) {
    return std::stoul(std::string(name.substr(name.rfind(':') + 1)));
  }

  void take(std::size_t index, Result<Lease> granted) {
    if (granted) {
      leases_[index] = std::move(*granted);
    } else if (++refused == 1) {
      fmt::print(stderr, "{}\n", granted.error().message);
    }
    const std::scoped_lock lock(mutex_);
    --under_way_;
    changed_.notify_one();
  }

  std::vector<Lease> leases_;
  std::vector<milliseconds> margins_;
  std::vector<std::atomic<std::size_t>> renewed_after_;  // which break
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t under_way_ = 0;
};

class Holding {
 public:
  explicit Holding(const HoldingPlan& plan)
      : plan_(plan), leases_(std::make_shared<Leases>(plan.leases)) {}

  bool run() {
    const Client client = start();
    // They keep the client, which keeps its observer, where they are.
    const std::shared_ptr<void> at_end(nullptr, [this](void*) { leases_->drop(); });
    acquire(client);
    return plan_.breaking() ? break_all() && release() && leases_->lost == 0 : stay();
  }

 private:
  bool stay() {
    for (std::size_t node = 0; node < plan_.stopped; ++node) fleet_.pause(node);
    {
      const Starvation starvation(fleet_, plan_.running);
      hold();
    }
    const bool well = plan_.stopped > 2 ? judge_losses() : judge_holding();
    for (std::size_t node = 0; node < plan_.stopped; ++node) fleet_.resume(node);
    return well && leases_->refused == 0;
  }

  Client start() {
    ClientOptions options;
    options.observer = leases_;
    options.max_lease = std::max<milliseconds>(60s, seconds(plan_.lease));
    if (plan_.breaking()) {
      set_address("127.0.0.2");
      for (std::size_t node = 0; node < nodes; ++node) {
        options.nodes.push_back(fmt::format("redis://node-{}.example:{}", node, fleet_.port(node)));
      }
      // A busy machine must not look like a node that is gone.
      options.node_timeout = options.connect_timeout = options.resolve_timeout = 10s;
    } else {
      options.nodes = fleet_.uris();
      options.quarantine = Quarantine::off;  // the nodes are new
      options.node_timeout = 1s;
    }
    return start_client(std::move(options));
  }

  void acquire(const Client& client) {
    // What grows once for all: buffers, tables of the library.
    { auto first = client.lock("soak:warm").acquire(); }
    const std::size_t before = heap_in_use();
    const auto start = BootClock::now();
    leases_->acquire(client, seconds(plan_.lease));
    memory_ = static_cast<double>(heap_in_use() - before) / static_cast<double>(plan_.leases);
    say("{} leases of {} s acquired in {:.1f} s; {:.0f} bytes of heap each\n", plan_.leases,
        plan_.lease, seconds_since(start), memory_);
  }

  void hold() {
    const auto start = BootClock::now();
    const auto cpu_before = processor_time();
    const auto steps = std::max(1, plan_.length / 10);
    for (int i = 0; i < steps; ++i) {
      std::this_thread::sleep_for(seconds(plan_.length) / steps);
      const auto wall = BootClock::now() - start;
      cpu_ = 100 * std::chrono::duration<double>(processor_time() - cpu_before) / wall;
      say("after {:3.0f} s: {} renewals, {} of them not in time; {} lost; {:.1f} % of a core\n",
          std::chrono::duration<double>(wall).count(), leases_->renewals.load(),
          leases_->failed_renewals.load(), leases_->lost.load(), cpu_);
    }
  }

  /// A quorum is alive.
  [[nodiscard]] bool judge_holding() const {
    bool well = leases_->lost == 0;
    const auto bar = [&](const char* what, double is, double most) {
      if (most == 0) return;
      fmt::print("{}: {:.1f}, at most {:.1f} wanted\n", what, is, most);
      well = well && is <= most;
    };
    bar("processor, % of a core", cpu_, plan_.most_cpu);
    bar("memory, bytes a lease", memory_, plan_.most_memory);
    return well;
  }

  [[nodiscard]] bool judge_losses() const {
    const Stalls stalls;  // a machine that stands still leaves nobody the time to tell
    const auto limit = BootClock::now() + seconds(2 * plan_.lease);
    while (leases_->lost < plan_.leases && BootClock::now() < limit) {
      std::this_thread::sleep_for(100ms);
    }
    if (leases_->lost < plan_.leases) {
      fmt::print("of {} leases only {} were told lost\n", plan_.leases, leases_->lost.load());
      return false;
    }
    leases_->print_margins();
    if (leases_->least_margin() > 0ms) return true;
    fmt::print("this process stood still for {} ms of that time; the margin is {} ms\n",
               stalls.sum().count(), 100 * plan_.lease);
    return stalls.sum() >= seconds(plan_.lease) / 10 / 2;
  }

  // --- breaks

  bool break_all() {
    for (std::size_t i = 0; i < plan_.breaks; ++i) {
      // Every second one breaks a round of renewals; the others come right after one.
      const std::size_t before = leases_->renewals;
      if (i % 2 == 1) await([&] { return leases_->renewals > before; }, 1min, "nothing is renewed");
      break_and_wait("all connections dropped", [this] { drop_connections(); });
    }
    for (std::size_t i = 0; i < plan_.moves; ++i) {
      const std::string to = i % 2 == 0 ? "127.0.0.3" : "127.0.0.2";
      break_and_wait("all nodes moved to " + to, [&] { move_nodes(to); });
      if (!all_connected_to(to)) return false;
    }
    return true;
  }

  /// Waits until every lease was renewed after the break.
  void break_and_wait(const std::string& what, const std::function<void()>& cause) {
    const std::size_t broken_before = leases_->broken_connections;
    cause();
    ++leases_->breaks;
    await(
        [&] {
          return leases_->broken_connections >= broken_before + nodes && leases_->all_renewed();
        },
        seconds(3 * plan_.lease), "not all are renewed");
    say("{}, and all leases were renewed: {} renewals so far, {} not in time; {} lost\n", what,
        leases_->renewals.load(), leases_->failed_renewals.load(), leases_->lost.load());
  }

  void drop_connections() {
    on_every_node([&](std::size_t node) {
      // To the server what is subscribed is of a type of its own.
      for (const char* type : {"normal", "pubsub"}) {
        fleet_.run(node, {"CLIENT", "KILL", "TYPE", type});
      }
    });
  }

  /// The names lead elsewhere once the nodes are gone; where they were, nobody listens any more.
  void move_nodes(const std::string& to) {
    on_every_node([&](std::size_t node) { fleet_.kill(node); });
    set_address(to);
    on_every_node([&](std::size_t node) {
      std::ofstream(fleet_.directory(node) / "redis.conf", std::ios::app)
          << "bind 127.0.0.1 " << to << '\n';
      fleet_.restart(node, cluster::Data::kept);
    });
  }

  [[nodiscard]] bool all_connected_to(const std::string& address) const {
    for (std::size_t node = 0; node < nodes; ++node) {
      const auto clients = fleet_.run(node, {"CLIENT", "LIST"});
      if (clients.find(fmt::format("laddr={}:{} ", address, fleet_.port(node))) ==
          std::string::npos) {
        fmt::print("node {} has no connection at {}\n", node + 1, address);
        return false;
      }
    }
    return true;
  }

  /// True if every lease was held to the end, and no node has a lock left.
  bool release() {
    const std::size_t released = leases_->give_back();
    // Not so long that what was left would have expired.
    const auto patience = BootClock::now() + milliseconds(1000 * plan_.lease / 3);
    while (keys_left(fleet_) > 0 && BootClock::now() < patience) std::this_thread::sleep_for(10ms);
    const std::size_t left = keys_left(fleet_);
    fmt::print("{} of {} released; {} keys left; {} names looked up\n", released, plan_.leases,
               left, look_ups());
    return released == plan_.leases && left == 0;
  }

  HoldingPlan plan_;
  Fleet fleet_{nodes_for(plan_)};
  std::shared_ptr<Leases> leases_;
  double memory_ = 0;
  double cpu_ = 0;
};

}  // namespace

void add_holding(CLI::App& soak, Run& chosen) {
  const auto plan = std::make_shared<HoldingPlan>();
  auto& run = *soak.add_subcommand(
      "holding",
      "Holds many leases while nodes hang or connections break, and says what that costs.");
  run.add_option("--leases", plan->leases, "how many; default 100000")
      ->check(CLI::Range(1, 1000000));
  run.add_option("--lease", plan->lease, "seconds; default 30")->check(CLI::Range(1, 600));
  run.add_option("--for", plan->length, "seconds to hold them; default 300")
      ->check(CLI::Range(1, 86400));
  auto* const stopped = run.add_option("--stopped", plan->stopped, "of the nodes, so many hang")
                            ->check(CLI::Range(0, 5));
  auto* const running =
      run.add_option("--running", plan->running,
                     "ms of each 100 in which the nodes run: they have too little of a processor")
          ->check(CLI::Range(1, 100));
  for (auto* const fault :
       {run.add_option("--breaks", plan->breaks,
                       "all connections are dropped so often, in place of --for; each lease is "
                       "renewed after each"),
        run.add_option("--moves", plan->moves,
                       "then all nodes move to another address so often, at once")}) {
    fault->excludes(stopped)->excludes(running);
  }
  run.add_option("--most-cpu", plan->most_cpu, "fail above this many per cent of a core");
  run.add_option("--most-memory", plan->most_memory, "fail above this many bytes a lease");
  run.footer(
      "It ends with 0 if no lease was lost while a quorum of the nodes answered, and if none was\n"
      "told late where none did. Needs the machine for itself.\n\n"
      "100,000 leases, judged (five minutes):\n"
      "  soak holding --most-cpu 5 --most-memory 400\n"
      "a million (seven minutes; 2 GB of memory for the nodes):\n"
      "  soak holding --leases 1000000 --lease 120 --most-cpu 100\n"
      "nodes with too little of a processor, of which none may lose a lease:\n"
      "  soak holding --leases 20000 --lease 6 --for 15 --running 8\n"
      "all connections dropped, and all nodes moved:\n"
      "  soak holding --leases 1000 --lease 9 --breaks 20 --moves 4");
  run.callback([plan, &chosen] { chosen = [plan] { return Holding(*plan).run(); }; });
}

}  // namespace redlock::soak
