// SPDX-License-Identifier: MIT
// Callers of one client beside each other, each with a name of its own, in cycles of acquire and
// release: how many cycles a second, with and without the rule that a caller who is alone runs the
// loop itself (a client with an observer, which does nothing here, does without), and by callbacks
// with as many in flight; beside what nothing but hiredis gets out of the same nodes, with as many
// cycles in flight (the floor) and with as many to a write, without a quorum (pipeline). The ways
// take turns of --turn-ms milliseconds (250) on the same five nodes, --rounds N times (12); the
// figures are medians. --callers N measures N callers alone, --only callback one way.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <fmt/format.h>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <redlock/redlock.hpp>

#include "bench/peers/redlock/bare_crowd.hpp"
#include "cluster/fleet.hpp"
#include "fleet_client.hpp"
#include "pipeline.hpp"
#include "rounds.hpp"
#include "samples.hpp"

namespace {

using namespace std::chrono_literals;
using redlock::cluster::Fleet;

class Turn {
 public:
  explicit Turn(std::chrono::milliseconds length) : end_(redlock::BootClock::now() + length) {}
  [[nodiscard]] bool over() const { return redlock::BootClock::now() >= end_; }

 private:
  redlock::BootClock::time_point end_;
};

void require(bool well) {
  if (!well) throw std::runtime_error("a call failed");
}

/// Cycles a second.
double by_threads(redlock::Client& client, std::size_t callers, std::chrono::milliseconds length) {
  std::atomic<std::size_t> cycles{0};
  const Turn turn(length);
  const auto begin = redlock::BootClock::now();
  std::vector<std::jthread> threads;
  for (std::size_t number = 0; number < callers; ++number) {
    threads.emplace_back([&, number] {
      redlock::RedLock lock = client.lock("bench-" + std::to_string(number));
      while (!turn.over()) {
        auto lease = lock.acquire({.wait = 5s});
        require(lease.has_value());
        require(lease->release() == redlock::Released::released);
        ++cycles;
      }
    });
  }
  threads.clear();
  const std::chrono::duration<double> took = redlock::BootClock::now() - begin;
  return static_cast<double>(cycles) / took.count();
}

/// One in flight, which begins anew in its own callbacks until the turn is over.
class Flight {
 public:
  Flight(redlock::Client& client, std::size_t number, const Turn& turn, std::atomic<int>& flying,
         std::atomic<std::size_t>& cycles)
      : lock_(client.lock("bench-" + std::to_string(number))),
        turn_(turn),
        flying_(flying),
        cycles_(cycles) {}

  void begin() {
    lock_.async_acquire({.wait = 5s}).start([this](redlock::Result<redlock::Lease> lease) {
      require(lease.has_value());
      lease_ = std::move(*lease);
      lease_.async_release().start([this](const redlock::Result<redlock::Released>& released) {
        require(released == redlock::Released::released);
        ++cycles_;
        if (!turn_.over()) return begin();
        --flying_;
        flying_.notify_one();
      });
    });
  }

 private:
  redlock::RedLock lock_;
  redlock::Lease lease_;
  const Turn& turn_;
  std::atomic<int>& flying_;
  std::atomic<std::size_t>& cycles_;
};

double by_callbacks(redlock::Client& client, std::size_t callers,
                    std::chrono::milliseconds length) {
  std::atomic<std::size_t> cycles{0};
  std::atomic<int> flying{static_cast<int>(callers)};
  const Turn turn(length);
  const auto begin = redlock::BootClock::now();
  std::vector<std::unique_ptr<Flight>> flights;
  for (std::size_t number = 0; number < callers; ++number) {
    flights.push_back(std::make_unique<Flight>(client, number, turn, flying, cycles));
    flights.back()->begin();
  }
  for (int left = flying; left != 0; left = flying) flying.wait(left);
  const std::chrono::duration<double> took = redlock::BootClock::now() - begin;
  return static_cast<double>(cycles) / took.count();
}

double by_hiredis(peers::BareCrowd& floor, std::size_t callers, std::chrono::milliseconds length) {
  std::istringstream order(fmt::format("{} {} 0 floor- -", length.count(), callers));
  const auto begin = redlock::BootClock::now();
  std::size_t cycles = 0;
  for (const peers::Calls& calls : floor.run(peers::Run(order))) cycles += calls.released.size();
  const std::chrono::duration<double> took = redlock::BootClock::now() - begin;
  return static_cast<double>(cycles) / took.count();
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = bench::take_rounds(argc, argv, 12);
  const auto turn = bench::take_flag(argc, argv, "--turn-ms");
  const std::chrono::milliseconds length(turn ? std::atoi(turn->c_str()) : 250);
  std::vector<std::size_t> counts{1, 2, 4, 16, 64};
  if (const auto only = bench::take_flag(argc, argv, "--callers")) {
    counts = {static_cast<std::size_t>(std::max(1, std::atoi(only->c_str())))};
  }
  const auto one_way = bench::take_flag(argc, argv, "--only");

  const Fleet fleet({.nodes = 5});
  std::vector<std::uint16_t> ports;
  for (std::size_t node = 0; node < fleet.size(); ++node) ports.push_back(fleet.port(node));
  redlock::Client with = bench::connect(fleet);
  redlock::Client without = bench::connect(fleet, std::make_shared<redlock::Observer>());
  redlock::Client callbacks = bench::connect(fleet);
  peers::BareCrowd floor(ports);
  for (redlock::Client* each : {&with, &without, &callbacks}) by_threads(*each, 1, 50ms);

  const std::array<std::string, 5> ways{"seat", "no seat", "callback", "floor", "pipeline"};
  fmt::print("Cycles a second:");
  for (const std::string& way : ways) fmt::print(" {:>9}", way);
  fmt::print(" {:>14} {:>14} {:>15} {:>18}\n", "seat/no seat", "seat/callback", "callback/floor",
             "callback/pipeline");
  for (const std::size_t callers : counts) {
    bench::Pipeline pipeline(ports, callers);
    std::array<std::vector<double>, 5> found;
    const auto measure = [&](std::size_t way, auto&& cycles_a_second) {
      if (one_way && ways[way] != *one_way) return;
      found[way].push_back(cycles_a_second());
    };
    for (int round = 0; round < rounds; ++round) {
      measure(0, [&] { return by_threads(with, callers, length); });
      measure(1, [&] { return by_threads(without, callers, length); });
      measure(2, [&] { return by_callbacks(callbacks, callers, length); });
      measure(3, [&] { return by_hiredis(floor, callers, length); });
      measure(4, [&] { return pipeline.run(length); });
    }
    std::array<double, 5> of{};
    std::ranges::transform(found, of.begin(), median);
    const auto [seat, none, callback, bare, most] = of;
    fmt::print("{:>3} callers     ", callers);
    for (const double figure : of) fmt::print(" {:>9.0f}", figure);
    if (!one_way) {
      fmt::print(" {:>14.2f} {:>14.2f} {:>15.2f} {:>18.2f}", seat / none, seat / callback,
                 callback / bare, callback / most);
    }
    fmt::print("\n");
  }
  return EXIT_SUCCESS;
}
