// SPDX-License-Identifier: MIT
// Five nodes without persistence are restarted one after the other, each coming back empty, while
// processes take, hold and give back the same locks. The next one is restarted as soon as every
// process counts the vote of the last one again. Nobody may hold a lock that somebody else holds,
// and nobody may lose one; unless the quarantine is off: then two must hold one, or this would
// prove nothing. A renewal may have to be repeated: of a lease that a bare quorum had granted, when
// one of these nodes forgot it and the others are still to be healed.
#include "soak/worker.hpp"

namespace redlock::soak {
namespace {

struct RollingPlan {
  std::size_t restarts = 50;
  bool careless = false;  // without the quarantine
};

class Rolling {
 public:
  explicit Rolling(const RollingPlan& plan) : plan_(plan) {}

  bool run() {
    say("{} processes, {} names, {} nodes without persistence, max_lease 2 s; quarantine {}\n",
        rivals, rival_names, nodes, plan_.careless ? "OFF" : "on");
    if (!plan_.careless) adopt(fleet_, 2s);
    for (std::size_t number = 0; number < rivals; ++number) {
      workers_.push_back(start_process([&] { Worker(board_, number, 30s).run(options()); }));
    }
    const auto start = BootClock::now();
    for (std::size_t node = 0; node < nodes; ++node) await_votes(node, start);
    fmt::print("all nodes vote after {:.1f} s\n", seconds_since(start));
    // How many an overlap takes depends on the machine.
    const auto is_shown = [&] { return plan_.careless && board_.judge().overlaps > 0; };
    for (std::size_t i = 0; i < plan_.restarts && !is_shown(); ++i) restart(i);
    return end_processes(workers_, board_, 2min) && report();
  }

 private:
  [[nodiscard]] ClientOptions options() const {
    ClientOptions options;
    options.nodes = fleet_.uris();
    options.lease = options.max_lease = 2s;
    options.node_timeout = 1s;
    options.quarantine = plan_.careless ? Quarantine::off : Quarantine::on;
    return options;
  }

  void await_votes(std::size_t node, BootClock::time_point since) {
    await([&] { return board_.is_counted(node, rivals, since); }, 1min, "a node is never counted");
  }

  void restart(std::size_t index) {
    const std::size_t node = index % nodes;
    fleet_.restart(node, cluster::Data::empty);
    const auto back = BootClock::now();
    // On a slow machine all clients need longer for that than a lease lasts: no overlap would show.
    plan_.careless ? std::this_thread::sleep_for(50ms) : await_votes(node, back);
    say("restart {}: node {} {} after {:.1f} s; {} holds, {} renewals, {} not in time, {} lost\n",
        index + 1, node + 1, plan_.careless ? "is up" : "is counted by all", seconds_since(back),
        board_.hold_count.load(), board_.renewals.load(), board_.failed_renewals.load(),
        board_.lost.load());
  }

  [[nodiscard]] bool report() const {
    const Judgement found = board_.judge();
    fmt::print(
        "{} restarts; {} grants, {} of them held for more than a second; {} renewals, {} not "
        "in time; {} lost\n",
        plan_.restarts, board_.hold_count.load(), found.longer_than_a_second,
        board_.renewals.load(), board_.failed_renewals.load(), board_.lost.load());
    fmt::print("longest wait for a grant {} ms, {} waited in vain for 10 s, {} failed; {}\n",
               board_.longest_wait_ms.load(), board_.given_up.load(), board_.failed.load(),
               found.in_words());
    if (plan_.careless) return found.overlaps > 0;
    return found.is_sound() && board_.lost == 0 && board_.late == 0 && board_.renewals > 0;
  }

  RollingPlan plan_;
  Board& board_ = Board::make_shared();
  Fleet fleet_{{.nodes = nodes}};
  std::vector<pid_t> workers_;
};

}  // namespace

void add_rolling(CLI::App& soak, Run& chosen) {
  const auto plan = std::make_shared<RollingPlan>();
  auto& run = *soak.add_subcommand(
      "rolling", "Restarts empty nodes one after the other, while processes hold locks on them.");
  run.add_option("--restarts", plan->restarts, "how many; default 50");
  run.add_flag("--careless", plan->careless, "without the quarantine: two must hold a lock");
  run.callback([plan, &chosen] { chosen = [plan] { return Rolling(*plan).run(); }; });
}

}  // namespace redlock::soak
