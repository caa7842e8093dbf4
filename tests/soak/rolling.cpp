// SPDX-License-Identifier: MIT
// Five nodes without persistence are restarted one after the other, each coming back empty, while
// processes take, hold and give back the same locks. The next one is restarted as soon as every
// process counts the vote of the last one again. Nobody may hold a lock that somebody else holds,
// and nobody may lose one; unless the quarantine is off: then two must hold one, or this would
// prove nothing. A renewal may have to be repeated: of a lease that a bare quorum had granted, when
// one of these nodes forgot it and the others are still to be healed.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fmt/format.h>
#include <memory>
#include <random>
#include <set>
#include <signal.h>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <redlock/redlock.hpp>

#include "cluster/fleet.hpp"
#include "soak/ledger.hpp"
#include "soak/verdict.hpp"

namespace {

using namespace redlock;
using namespace std::chrono_literals;
using cluster::Fleet;
using soak::Ledger;
using std::chrono::milliseconds;

struct Plan {
  std::size_t restarts = 50;
  std::size_t workers = 8;
  std::size_t names = 6;
  bool careless = false;  // without the quarantine
};

/// Writes down what the library tells a worker.
class Scribe final : public Observer {
 public:
  Scribe(Ledger& ledger, std::size_t worker) : ledger_(ledger), worker_(worker) {}

  void on_attempt(std::string_view, const Errc*, const std::vector<NodeVote>& votes,
                  std::chrono::nanoseconds elapsed) override {
    const auto began = (BootClock::now() - elapsed).time_since_epoch().count();
    for (std::size_t node = 0; node < votes.size(); ++node) {
      if (votes[node].vote == Vote::unavailable) continue;
      // No answer yet: it was asked, which a node in quarantine is not; or there is no connection,
      // and it is not known whether it will be.
      const bool asked = up_.contains(votes[node].node);
      if (votes[node].vote != Vote::pending || asked) ledger_.voted[worker_][node] = began;
    }
  }
  void on_node_up(std::string_view node, std::string_view) override { up_.emplace(node); }
  void on_node_down(std::string_view node, Cause, std::string_view) override {
    up_.erase(std::string(node));
  }
  void on_renewal(std::string_view, bool ok, std::chrono::nanoseconds) override {
    ++(ok ? ledger_.renewals : ledger_.failed_renewals);
  }
  void on_lost(std::string_view, std::uint64_t, LossReason) override { ++ledger_.lost; }

 private:
  Ledger& ledger_;
  const std::size_t worker_;
  std::set<std::string> up_;
};

class Worker {
 public:
  Worker(const Plan& plan, Ledger& ledger, std::size_t number)
      : plan_(plan),
        ledger_(ledger),
        scribe_(std::make_shared<Scribe>(ledger, number)),
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
    const auto client = Client::create(std::move(options));
    if (!client) throw std::runtime_error(client.error().message);
    while (!ledger_.ended) take_one(*client);
  }

 private:
  void take_one(const Client& client) {
    const std::size_t name = below(plan_.names);
    const auto asked = BootClock::now();
    auto lease = client.lock(fmt::format("rolling:{}", name)).acquire({.wait = 10s});
    if (!lease) {
      ++ledger_.given_up;
      return;
    }
    note_wait(std::chrono::duration_cast<milliseconds>(BootClock::now() - asked));
    hold(client, *lease, name);
    const auto released = lease->release();
    if (released && *released == Released::already_gone) ++ledger_.lost;
  }

  /// Mostly for a moment; one in twenty through several renewals, and perhaps a restart.
  void hold(const Client& client, const Lease& lease, std::size_t name) {
    RedLock own = client.lock(fmt::format("rolling:own:{}", ::getpid()));
    const auto length = below(20) > 0 ? 1ms + 1ms * below(10) : 500ms + 1ms * below(4000);
    const auto from = BootClock::now();
    auto to = from;
    for (auto now = from; lease.valid(); now = BootClock::now()) {
      to = now;
      if (now - from >= length || ledger_.ended) break;
      std::this_thread::sleep_for(std::min<BootClock::duration>(20ms, from + length - now));
      const auto to_see_who_votes = own.acquire();
    }
    ledger_.write({name, from, to, lease.token()});
  }

  void note_wait(milliseconds wait) {
    std::int64_t longest = ledger_.longest_wait_ms;
    while (longest < wait.count() &&
           !ledger_.longest_wait_ms.compare_exchange_weak(longest, wait.count())) {
    }
  }

  std::size_t below(std::size_t end) {
    return std::uniform_int_distribution<std::size_t>(0, end - 1)(random_);
  }

  const Plan& plan_;
  Ledger& ledger_;
  std::shared_ptr<Scribe> scribe_;
  std::mt19937 random_;
};

class Run {
 public:
  explicit Run(const Plan& plan) : plan_(plan) {}

  bool run() {
    fmt::print(
        "{} processes, {} names, {} nodes without persistence, max_lease 2 s; quarantine {}\n",
        plan_.workers, plan_.names, soak::nodes, plan_.careless ? "OFF" : "on");
    std::fflush(stdout);  // or each worker would print it again
    start_workers();
    const auto start = BootClock::now();
    for (std::size_t node = 0; node < soak::nodes; ++node) await_votes(node, start);
    fmt::print("all nodes vote after {:.1f} s\n", seconds_since(start));
    for (std::size_t i = 0; i < plan_.restarts; ++i) restart(i);
    ledger_.ended = true;
    return end_workers() && report();
  }

 private:
  static double seconds_since(BootClock::time_point start) {
    return std::chrono::duration<double>(BootClock::now() - start).count();
  }

  void start_workers() {
    for (std::size_t number = 0; number < plan_.workers; ++number) {
      const pid_t pid = ::fork();
      if (pid < 0) throw std::runtime_error("cannot start a worker");
      if (pid == 0) ::_exit(be_worker(number));
      workers_.push_back(pid);
    }
  }

  int be_worker(std::size_t number) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    try {
      Worker(plan_, ledger_, number).run(fleet_.uris());
      return EXIT_SUCCESS;
    } catch (const std::exception& error) {
      fmt::print(stderr, "worker {}: {}\n", number, error.what());
      return EXIT_FAILURE;
    }
  }

  /// Until each worker has counted this node's vote in an attempt that began since.
  void await_votes(std::size_t node, BootClock::time_point since) {
    for (std::size_t worker = 0; worker < plan_.workers; ++worker) {
      while (ledger_.voted[worker][node] < since.time_since_epoch().count()) {
        if (BootClock::now() > since + 1min) throw std::runtime_error("a node is never counted");
        std::this_thread::sleep_for(1ms);
      }
    }
  }

  void restart(std::size_t index) {
    const std::size_t node = index % soak::nodes;
    fleet_.restart(node, cluster::Data::empty);
    const auto back = BootClock::now();
    // On a slow machine all clients need longer for that than a lease lasts: no overlap would show.
    plan_.careless ? std::this_thread::sleep_for(50ms) : await_votes(node, back);
    fmt::print(
        "restart {}: node {} {} after {:.1f} s; {} holds, {} renewals, {} not "
        "in time, {} lost\n",
        index + 1, node + 1, plan_.careless ? "is up" : "is counted by all", seconds_since(back),
        ledger_.hold_count.load(), ledger_.renewals.load(), ledger_.failed_renewals.load(),
        ledger_.lost.load());
    std::fflush(stdout);
  }

  bool end_workers() {
    bool well = true;
    for (const pid_t pid : workers_) {
      int status = 0;
      ::waitpid(pid, &status, 0);
      well = well && status == 0;
    }
    return well;
  }

  [[nodiscard]] bool report() const {
    const soak::Judgement found = soak::judge(ledger_);
    fmt::print(
        "{} restarts; {} grants, {} of them held for more than a second; {} renewals, {} not "
        "in time; {} lost\n",
        plan_.restarts, ledger_.hold_count.load(), found.longer_than_a_second,
        ledger_.renewals.load(), ledger_.failed_renewals.load(), ledger_.lost.load());
    fmt::print(
        "longest wait for a grant {} ms, {} waited in vain for 10 s; two holders at once: {}; "
        "tokens that do not rise: {}\n",
        ledger_.longest_wait_ms.load(), ledger_.given_up.load(), found.overlaps,
        found.falling_tokens);
    if (plan_.careless) return found.overlaps > 0;
    return found.overlaps == 0 && found.falling_tokens == 0 && ledger_.lost == 0 &&
           ledger_.renewals > 0;
  }

  Plan plan_;
  Ledger& ledger_ = Ledger::make_shared();
  Fleet fleet_{{.nodes = soak::nodes}};
  std::vector<pid_t> workers_;
};

}  // namespace

int main(int argc, char** argv) {
  Plan plan;
  CLI::App app{"Restarts empty nodes one after the other, while processes hold locks on them."};
  app.add_option("--restarts", plan.restarts, "how many; default 50");
  app.add_option("--workers", plan.workers, "processes; default 8")
      ->check(CLI::Range(std::size_t{2}, soak::most_workers));
  app.add_flag("--careless", plan.careless, "without the quarantine: two must hold a lock");
  CLI11_PARSE(app, argc, argv);
  return redlock::soak::verdict_of("soak_rolling", [&] { return Run(plan).run(); });
}
