// SPDX-License-Identifier: MIT
// Five nodes without persistence are restarted one after the other, each coming back empty, while
// processes take, hold and give back the same locks. The next one is restarted as soon as every
// process counts the vote of the last one again. Nobody may hold a lock that somebody else holds,
// and nobody may lose one; unless the quarantine is off: then two must hold one, or this would
// prove nothing. A renewal may have to be repeated: of a lease that a bare quorum had granted, when
// one of these nodes forgot it and the others are still to be healed.
#include <set>
#include <unistd.h>

#include "soak/crew.hpp"

namespace redlock::soak {
namespace {

constexpr std::size_t rolling_workers = 8;
constexpr std::size_t rolling_names = 6;

struct RollingPlan {
  std::size_t restarts = 50;
  bool careless = false;  // without the quarantine
};

/// Writes down what the library tells a worker.
class Scribe final : public Observer {
 public:
  Scribe(Board& board, std::size_t worker) : board_(board), worker_(worker) {}

  void on_attempt(std::string_view, const Errc*, const std::vector<NodeVote>& votes,
                  std::chrono::nanoseconds elapsed) override {
    const auto began = (BootClock::now() - elapsed).time_since_epoch().count();
    for (std::size_t node = 0; node < votes.size(); ++node) {
      if (votes[node].vote == Vote::unavailable) continue;
      // No answer yet: it was asked, which a node in quarantine is not; or there is no connection,
      // and it is not known whether it will be.
      const bool asked = up_.contains(votes[node].node);
      if (votes[node].vote != Vote::pending || asked) board_.voted[worker_][node] = began;
    }
  }
  void on_node_up(std::string_view node, std::string_view) override { up_.emplace(node); }
  void on_node_down(std::string_view node, Cause, std::string_view) override {
    up_.erase(std::string(node));
  }
  void on_renewal(std::string_view, bool ok, std::chrono::nanoseconds) override {
    ++(ok ? board_.renewals : board_.failed_renewals);
  }
  void on_lost(std::string_view, std::uint64_t, LossReason) override { ++board_.lost; }

 private:
  Board& board_;
  const std::size_t worker_;
  std::set<std::string> up_;
};

class RollingWorker {
 public:
  RollingWorker(const RollingPlan& plan, Board& board, std::size_t number)
      : plan_(plan),
        board_(board),
        scribe_(std::make_shared<Scribe>(board, number)),
        random_(static_cast<std::uint32_t>(number)) {}

  void run(std::vector<std::string> uris) {
    ClientOptions options;
    options.nodes = std::move(uris);
    options.lease = options.max_lease = 2s;
    options.node_timeout = 1s;
    options.retry_min = 5ms;
    options.retry_max = 20ms;
    options.retry_cap = 50ms;
    options.quarantine = plan_.careless ? Quarantine::off : Quarantine::on;
    options.observer = scribe_;
    const Client client = start_client(std::move(options));
    while (!board_.ended) take_one(client);
  }

 private:
  void take_one(const Client& client) {
    const std::size_t name = random_.below(rolling_names);
    const auto asked = BootClock::now();
    auto lease = client.lock(fmt::format("rolling:{}", name)).acquire({.wait = 10s});
    if (!lease) {
      ++board_.given_up;
      return;
    }
    raise(board_.longest_wait_ms, std::int64_t{(BootClock::now() - asked) / 1ms});
    hold(client, *lease, name);
    const auto released = lease->release();
    if (released && *released == Released::already_gone) ++board_.lost;
  }

  /// Mostly for a moment; one in twenty through several renewals, and perhaps a restart.
  void hold(const Client& client, const Lease& lease, std::size_t name) {
    RedLock own = client.lock(fmt::format("rolling:own:{}", ::getpid()));
    const auto length =
        random_.below(20) > 0 ? 1ms + random_.below(10ms) : 500ms + random_.below(4s);
    const auto from = BootClock::now();
    auto to = from;
    for (auto now = from; lease.valid(); now = BootClock::now()) {
      to = now;
      if (now - from >= length || board_.ended) break;
      std::this_thread::sleep_for(std::min<BootClock::duration>(20ms, from + length - now));
      const auto to_see_who_votes = own.acquire();
    }
    board_.open({name, from, to, lease.token()});
  }

  const RollingPlan& plan_;
  Board& board_;
  std::shared_ptr<Scribe> scribe_;
  Random random_;
};

class Rolling {
 public:
  explicit Rolling(const RollingPlan& plan) : plan_(plan) {}

  bool run() {
    say("{} processes, {} names, {} nodes without persistence, max_lease 2 s; quarantine {}\n",
        rolling_workers, rolling_names, nodes, plan_.careless ? "OFF" : "on");
    if (!plan_.careless) adopt(fleet_, 2s);
    for (std::size_t number = 0; number < rolling_workers; ++number) {
      workers_.push_back(
          start_process([&] { RollingWorker(plan_, board_, number).run(fleet_.uris()); }));
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
  /// Until each worker has counted this node's vote in an attempt that began since.
  void await_votes(std::size_t node, BootClock::time_point since) {
    for (std::size_t worker = 0; worker < rolling_workers; ++worker) {
      await([&] { return board_.voted[worker][node] >= since.time_since_epoch().count(); }, 1min,
            "a node is never counted");
    }
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
    fmt::print("longest wait for a grant {} ms, {} waited in vain for 10 s; {}\n",
               board_.longest_wait_ms.load(), board_.given_up.load(), found.in_words());
    if (plan_.careless) return found.overlaps > 0;
    return found.is_sound() && board_.lost == 0 && board_.renewals > 0;
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
