// SPDX-License-Identifier: MIT
#include "fencing/storm/troubles.hpp"

#include <csignal>
#include <random>
#include <stdexcept>
#include <thread>

#include "fencing/clock_shim.hpp"

namespace redlock::storm {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr std::chrono::seconds an_hour = 1h;
// Most of them. Counted in rounds, so that a fast machine has as many stops as a slow one.
constexpr std::size_t rounds_between_stops = 16;

class Dice {
 public:
  explicit Dice(unsigned seed) : random_(seed) {}
  std::size_t below(std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random_);
  }
  void sleep(milliseconds from, milliseconds to) {
    const auto span = static_cast<std::size_t>((to - from).count()) + 1;
    std::this_thread::sleep_for(from + milliseconds(below(span)));
  }

 private:
  std::mt19937 random_;
};

bool await_larger_token(const Board& board, std::uint64_t token) {
  while (board.largest_token <= token && !board.ended) std::this_thread::sleep_for(1ms);
  return !board.ended;
}

void await_rounds(const Board& board, std::uint64_t rounds) {
  while (board.rounds < rounds && !board.ended) std::this_thread::sleep_for(1ms);
}

}  // namespace

std::uint64_t stop_holders(Board& board, const std::vector<pid_t>& workers) {
  Dice dice(1);
  std::uint64_t stopped = 0;
  while (!board.ended) {
    const std::size_t worker = dice.below(workers.size());
    if (board.inside[worker] == 0) {
      std::this_thread::sleep_for(100us);
      continue;
    }
    ::kill(workers[worker], SIGSTOP);
    // It may have left, or have come in again, meanwhile.
    if (const std::uint64_t token = board.inside[worker]; token != 0) {
      if (await_larger_token(board, token)) ++stopped;
      dice.sleep(0ms, 10ms);
    }
    ::kill(workers[worker], SIGCONT);
    await_rounds(board, board.rounds + dice.below(rounds_between_stops));
  }
  return stopped;
}

std::uint64_t kill_nodes(Board& board, cluster::Fleet& fleet) {
  Dice dice(2);
  std::uint64_t killed = 0;
  while (!board.ended) {
    dice.sleep(200ms, 1200ms);
    const std::size_t node = dice.below(fleet.size());
    fleet.kill(node);
    dice.sleep(100ms, 600ms);
    fleet.restart(node, cluster::Data::kept);
    ++killed;
  }
  return killed;
}

void check_clock_can_be_set(const cluster::Fleet& fleet, std::size_t node) {
  for (const auto ahead : {an_hour, 0s}) {
    testing::set_clock_ahead(fleet.directory(node), ahead);
    const auto now = std::chrono::seconds(std::stoll(fleet.run(node, {"TIME"})));
    const auto ours = std::chrono::system_clock::now().time_since_epoch();
    if (std::chrono::abs(now - ahead - ours) > 10min) {
      throw std::runtime_error("the clock of the node cannot be set");
    }
  }
}

std::uint64_t move_clock(Board& board, const cluster::Fleet& fleet, std::size_t node) {
  Dice dice(3);
  std::uint64_t jumps = 0;
  while (!board.ended) {
    dice.sleep(300ms, 1500ms);
    testing::set_clock_ahead(fleet.directory(node), jumps % 2 == 0 ? an_hour : 0s);
    ++jumps;
  }
  return jumps;
}

}  // namespace redlock::storm
