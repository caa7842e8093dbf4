// SPDX-License-Identifier: MIT
// Fencing in a storm: processes increment counters in Redis, SQLite and PostgreSQL under one lock
// over five nodes, while everything that a lock cannot help happens. Fenced, the counters must end
// exact to what was acknowledged; unfenced, they must not, or the storm would prove nothing.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fmt/core.h>
#include <future>
#include <optional>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "cluster/fleet.hpp"
#include "fencing/clock_shim.hpp"
#include "fencing/postgres_server.hpp"
#include "fencing/storm/board.hpp"
#include "fencing/storm/counter.hpp"
#include "fencing/storm/troubles.hpp"
#include "fencing/storm/worker.hpp"
#include "support/temporary_directory.hpp"

namespace redlock::storm {
namespace {

using namespace std::chrono_literals;
using cluster::Fleet;

constexpr std::size_t odd_node = 4;  // whose clock jumps
constexpr std::uint64_t fewest_refused = 100;
// A machine may be busy; one on which nothing happens for so long is not only that.
constexpr auto longest_standstill = 2min;

struct Options {
  std::uint64_t increments = 1000;
  std::size_t processes = 8;
  bool unfenced = false;
};

class Storm {
 public:
  explicit Storm(const Options& options)
      : options_(options),
        nodes_({.nodes = 5, .persistence = cluster::Persistence::always, .adopted = true}),
        redis_({.nodes = 1}),
        board_(Board::make_shared()) {
    check_clock_can_be_set(nodes_, odd_node);
    if (testing::PostgresServer::is_installed()) {
      postgres_.emplace();
    } else {
      // Not in the words by which a test counts as skipped: the other two have their storm.
      fmt::print("the server of PostgreSQL is NOT INSTALLED and left out\n");
    }
    places_ = {redis_.port(0), (place_.path() / "counters.db").string(),
               postgres_ ? postgres_->connection() : ""};
    connect(places_);
  }

  int run() {
    start_workers();
    const auto start = std::chrono::steady_clock::now();
    auto stopped = std::async(std::launch::async, [&] { return stop_holders(board_, workers_); });
    auto killed = std::async(std::launch::async, [&] { return kill_nodes(board_, nodes_); });
    auto jumped =
        std::async(std::launch::async, [&] { return move_clock(board_, nodes_, odd_node); });
    await_increments();
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    stopped.wait();  // it sends signals to processes that are still there
    const bool workers_well = end_workers();
    fmt::print("{} processes, 5 nodes, {}: {} increments in {:.1f} s\n", options_.processes,
               options_.unfenced ? "NOT fenced" : "fenced", board_.rounds.load(), time.count());
    fmt::print(
        "holders stopped past their lease {} times, nodes killed and restarted {} times, "
        "the clock of one jumped by an hour {} times\n",
        stopped.get(), killed.get(), jumped.get());
    return report() && workers_well ? EXIT_SUCCESS : EXIT_FAILURE;
  }

 private:
  void start_workers() {
    const pid_t supervisor = ::getpid();
    for (std::size_t number = 0; number < options_.processes; ++number) {
      const pid_t pid = ::fork();
      if (pid < 0) throw std::runtime_error("cannot start a worker");
      if (pid == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != supervisor) ::_exit(EXIT_FAILURE);
        const Fencing fencing = options_.unfenced ? Fencing::off : Fencing::on;
        ::_exit(be_worker({number, nodes_.uris(), places_, fencing}, board_));
      }
      workers_.push_back(pid);
    }
  }

  void await_increments() {
    const std::uint64_t part = std::max<std::uint64_t>(options_.increments / 10, 1);
    std::uint64_t seen = 0;
    auto last_change = std::chrono::steady_clock::now();
    while (board_.rounds < options_.increments) {
      const auto now = std::chrono::steady_clock::now();
      if (const std::uint64_t rounds = board_.rounds; rounds != seen) {
        last_change = now;
        if (rounds / part != seen / part) {
          fmt::print("{} of {} increments, {} stale writes refused\n", rounds, options_.increments,
                     refused_so_far());
          std::fflush(stdout);
        }
        seen = rounds;
      } else if (now - last_change > longest_standstill) {
        fmt::print("there has been no increment for too long\n");
        break;
      }
      std::this_thread::sleep_for(10ms);
    }
    board_.ended = true;
  }

  [[nodiscard]] std::uint64_t refused_so_far() const {
    std::uint64_t sum = 0;
    for (const Tally& tally : board_.tallies) sum += tally.refused;
    return sum;
  }

  bool end_workers() {
    bool well = true;
    for (const pid_t pid : workers_) {
      ::kill(pid, SIGCONT);
      int status = 0;
      ::waitpid(pid, &status, 0);
      well = well && status == 0;
    }
    return well;
  }

  bool report() {
    bool as_it_should = board_.rounds >= options_.increments;
    const std::uint64_t refused = refused_so_far();
    fmt::print("{:<12}{:>8}{:>14}{:>8}{:>17}{:>17}\n", "counter", "value", "acknowledged", "lost",
               "writes refused", "reads refused");
    const auto counters = connect(places_);
    for (std::size_t i = 0; i < counters.size(); ++i) {
      const Tally& tally = board_.tallies[i];
      const std::int64_t value = counters[i]->open(last_token()).value();
      const auto lost = static_cast<std::int64_t>(tally.written.load()) - value;
      fmt::print("{:<12}{:>8}{:>14}{:>8}{:>17}{:>17}\n", counters[i]->name(), value,
                 tally.written.load(), lost, tally.refused.load(), tally.not_open.load());
      as_it_should = as_it_should && (options_.unfenced ? lost > 0 : lost == 0);
    }
    const std::string wrong = wrong_with_history(board_);
    fmt::print("{} tokens: {}\n", board_.grant_count.load(),
               wrong.empty() ? "unique, and rising in real-time order" : wrong);
    fmt::print("{} stale writes refused; {} acquisitions failed\n", refused,
               board_.failed_acquires.load());
    if (!options_.unfenced) {
      as_it_should = as_it_should && refused >= std::min(fewest_refused, options_.increments / 10);
    }
    return as_it_should && wrong.empty();
  }

  [[nodiscard]] std::uint64_t last_token() const {
    return options_.unfenced ? 1 : board_.largest_token.load();
  }

  Options options_;
  testing::TemporaryDirectory place_;
  Fleet nodes_;
  Fleet redis_;
  std::optional<testing::PostgresServer> postgres_;
  Places places_;
  Board& board_;
  std::vector<pid_t> workers_;
};

int run(int argc, char** argv) {
  Options options;
  CLI::App app("Increments under a lock while everything goes wrong.");
  app.add_option("--increments", options.increments, "How many; default 1000");
  app.add_option("--processes", options.processes, "How many; default 8")
      ->check(CLI::Range(std::size_t{2}, most_workers));
  app.add_flag("--unfenced", options.unfenced, "Show that without fencing updates are lost");
  CLI11_PARSE(app, argc, argv);
  const testing::TemporaryDirectory place;
  ::setenv("REDLOCK_REDIS_SERVER", testing::server_with_clock(place).c_str(), 1);
  return Storm(options).run();
}

}  // namespace
}  // namespace redlock::storm

int main(int argc, char** argv) {
  try {
    return redlock::storm::run(argc, argv);
  } catch (const std::exception& failure) {
    fmt::print(stderr, "{}\n", failure.what());
    return EXIT_FAILURE;
  }
}
