// SPDX-License-Identifier: MIT
#include "fencing/storm/worker.hpp"

#include <chrono>
#include <cstdio>
#include <exception>
#include <random>
#include <thread>

#include <redlock/redlock.hpp>

namespace redlock::storm {
namespace {

using namespace std::chrono_literals;

/// Knows when the attempt that was granted last had begun.
class Attempts : public Observer {
 public:
  void on_attempt(std::string_view /*name*/, const Errc* code,
                  const std::vector<NodeVote>& /*votes*/,
                  std::chrono::nanoseconds elapsed) override {
    if (code == nullptr) began_ = (BootClock::now() - elapsed).time_since_epoch().count();
  }
  [[nodiscard]] BootClock::time_point began() const {
    return BootClock::time_point(BootClock::duration(began_.load()));
  }

 private:
  std::atomic<BootClock::rep> began_{};
};

class Worker {
 public:
  Worker(const WorkerPlan& plan, Board& board)
      : plan_(plan), board_(board), counters_(connect(plan.places)), random_(plan.number) {}

  void run() {
    ClientOptions options;
    options.nodes = plan_.nodes;
    // Short, so that many can be outlived; a busy machine may outlive some by itself.
    options.lease = 200ms;
    options.retry_min = 2ms;
    options.retry_max = 10ms;
    options.retry_cap = 20ms;
    options.observer = attempts_;
    const auto client = Client::create(options);
    if (!client) throw std::runtime_error(client.error().message);
    RedLock lock = client->lock("storm");
    while (!board_.ended) {
      // The nodes come and go: many an attempt fails, and the next one is made.
      if (const auto lease = lock.acquire({.renewal = Renewal::never, .wait = 2s})) {
        board_.enter(plan_.number, {attempts_->began(), BootClock::now(), lease->token()});
        if (increment_all(lease->token())) ++board_.rounds;
        board_.leave(plan_.number);
      } else {
        ++board_.failed_acquires;
      }
      pause(0ms, 20ms);  // for the others to come in
    }
  }

 private:
  /// True if every resource took it.
  bool increment_all(std::uint64_t token) {
    // A resource that is shown the same token by everybody refuses nobody.
    const std::uint64_t shown = plan_.fencing == Fencing::on ? token : 1;
    std::vector<std::optional<std::int64_t>> values;
    for (const auto& counter : counters_) values.push_back(counter->open(shown));
    pause(0ms, 5ms);
    bool all = true;
    for (std::size_t i = 0; i < counters_.size(); ++i) {
      Tally& tally = board_.tallies[i];
      const bool written = values[i] && counters_[i]->write(*values[i] + 1, shown);
      ++(written ? tally.written : values[i] ? tally.refused : tally.not_open);
      all = all && written;
    }
    return all;
  }

  void pause(std::chrono::milliseconds from, std::chrono::milliseconds to) {
    std::uniform_int_distribution<std::int64_t> length(from / 1us, to / 1us);
    std::this_thread::sleep_for(std::chrono::microseconds(length(random_)));
  }

  const WorkerPlan& plan_;
  Board& board_;
  std::vector<std::unique_ptr<Counter>> counters_;
  std::mt19937 random_;
  std::shared_ptr<Attempts> attempts_ = std::make_shared<Attempts>();
};

}  // namespace

int be_worker(const WorkerPlan& plan, Board& board) {
  try {
    Worker(plan, board).run();
    return 0;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "worker %zu: %s\n", plan.number, failure.what());
    board.leave(plan.number);
    return 1;
  }
}

}  // namespace redlock::storm
